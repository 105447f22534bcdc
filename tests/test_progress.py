"""Phases: each begins once, moves forward and ends, also when it fails."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
from reference import points_of

import h2gpu
from h2gpu import progress
from h2gpu.covariance import Exponential
from h2gpu.progress import PhaseTimes, phase, shown, watched_by
from h2gpu.statistics import Kriging


def watching():
    """A list of (name, done, total) and the observer that fills it."""
    seen = []
    return seen, lambda *event: seen.append(event)


def test_a_phase_begins_advances_and_ends():
    seen, observer = watching()
    with watched_by(observer) as given, phase("work", 5) as advance:
        assert given is observer
        advance(2)
        advance(3)
    assert seen == [("work", 0, 5), ("work", 2, 5), ("work", 5, 5), ("work", None, 5)]


def test_a_failing_phase_ends_too():
    seen, observer = watching()
    with watched_by(observer), pytest.raises(KeyError), phase("work"):
        raise KeyError
    assert seen[-1] == ("work", None, 1)


def test_nobody_watches_outside_and_several_may_inside():
    (first, a), (second, b) = watching(), watching()
    with watched_by(a):
        with watched_by(b), phase("both"):
            pass
        with phase("one"):
            pass
    with phase("none"):
        pass
    assert [name for name, done, _ in first if done is None] == ["both", "one"]
    assert [name for name, done, _ in second if done is None] == ["both"]


def test_a_fit_shows_as_much_as_it_is_asked_to(capsys):
    x = points_of("uniform", 60, 2)
    log = logging.getLogger("h2gpu")
    before = log.level, list(log.handlers)
    for verbose in (0, 1, 2):
        kriging = Kriging(Exponential(), fit_parameters=["variance", "nugget"], verbose=verbose).fit(
            x, np.sin(9 * x[:, 0])
        )
        kriging.predict(x, return_std=True)
        out, err = capsys.readouterr()
        assert out == "" and ("maximum likelihood" in err) == (verbose > 0)
        assert ("h2gpu: maximum likelihood: " in err) == (verbose == 2)
        assert (log.level, log.handlers) == before
    with pytest.raises(ValueError, match="verbose: expected 0, 1 or 2, got 3"):
        Kriging(Exponential(), verbose=3).fit(x, x[:, 0])


def test_bars_and_messages_end_with_what_they_showed(capsys):
    with pytest.raises(KeyError), shown(2), phase("work", 4) as advance:
        advance(1)
        raise KeyError
    capsys.readouterr()
    with phase("work", 4):
        logging.getLogger("h2gpu").info("nobody asked")
    assert capsys.readouterr().err == ""


@pytest.fixture
def wait(monkeypatch):
    """A clock that goes on by so many seconds, and not otherwise."""
    now = 0.0

    def wait(seconds):
        nonlocal now
        now += seconds

    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now))
    return wait


def test_times_of_a_phase_add_up(wait):
    calls = []
    with watched_by(PhaseTimes(synchronize=lambda: calls.append(1))) as times:
        for _ in range(2):
            with phase("work", 3) as advance:
                wait(2)
                advance(3)
        with phase("nothing"):
            pass
    assert times.seconds == {"work": 4, "nothing": 0}
    assert len(calls) == 6


def test_seconds_of_a_phase_are_its_own(wait):
    with watched_by(PhaseTimes()) as times, phase("outer"):
        wait(2)
        for _ in range(2):
            with phase("inner"):
                wait(3)
                with phase("outer"):
                    wait(1)
    assert times.seconds == {"outer": 4, "inner": 6}


def test_building_and_compressing_report_phases_that_reach_their_totals():
    seen, observer = watching()
    with watched_by(observer):
        A = h2gpu.build(points_of("uniform", 500, 2), Exponential(1.0, 0.3), leaf_size=16, order=3)
        A.relative_error(h2gpu.compress(A, 1e-3))
    names = [name for name, done, _ in seen if done == 0]
    expected = [
        "cluster",
        "basis",
        "nearfield",
        "couplings",
        "orthogonalize",
        "weights",
        "truncate",
        "project",
        "store",
        "compare",
    ]
    assert names == expected
    for name in ("weights", "truncate", "project", "compare"):
        done = [event[1] for event in seen if event[0] == name]
        assert done[-1] is None and done[:-1] == sorted(done[:-1])
        assert done[-2] == next(total for other, _, total in seen if other == name)
