"""Tuning without a GPU: what wins, and what is said when it cannot run."""

import re
import sys

import pytest
from stopwatch import ROUTINES, Stopwatch, first

from h2gpu.apps.autotune import tune, tune_space
from h2gpu.apps.autotune.tune_limits import Hardware
from h2gpu.apps.benchmarks import batched as bench_batched
from h2gpu.apps.benchmarks.routines.batched import Case
from h2gpu.batched.device import tuning


def test_the_fastest_wins_and_tells_its_rate():
    row, case = first("svd", rank=32), Case("svd", "float64", 1000, (32, 32), method="auto")
    found = [{"method": "register", "columns": "4"}, {"method": "shared", "columns": "2"}]
    trials = Stopwatch(lambda knobs, case: 0.5 if knobs["method"] == "shared" else 1.0)
    new = tune.best("svd", row, found, [case], trials, "Some GPU")
    assert (new["method"], new["columns"], new["rate"]) == ("shared", "2", "0.5")
    assert (new["unit"], new["device"], new["max_rank"]) == ("ms for 1000 of 32x32", "Some GPU", row["max_rank"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", new["date"]) and new.keys() == row.keys()


def test_noise_changes_nothing():
    own, other = {"method": "vendor"}, {"method": "tiles"}
    assert tune.winner([([1.0], own), ([0.99], other)], own)[1] == own
    assert tune.winner([([1.0], own), ([0.95], other)], own)[1] == other
    assert tune.winner([([1.0, 4.0], own), ([2.0, 1.0], other)], own)[1] == other  # geometric mean


def test_candidates_that_fail_are_told_and_left_out(capsys):
    case = Case("gemm", "float64", 10, (64, 64))
    trials = Stopwatch(lambda knobs, case: "wrong: 3 of the allowed error" if knobs["method"] == "tiles" else 1.0)
    new = tune.best("gemm", first("gemm", size=16), [{"method": "tiles"}, {"method": "vendor"}], [case], trials, "GPU")
    assert new["method"] == "vendor" and "method tiles: wrong: 3 of the allowed error" in capsys.readouterr().out
    with pytest.raises(tune.FailureError, match="no candidate works"):
        tune.best("gemm", first("gemm", size=16), [{"method": "tiles"}], [case], trials, "GPU")


def test_a_case_is_timed_once_for_all_candidates_that_agree_in_what_it_depends_on():
    row = first("qr", columns=32, rows=32)
    cases = tune_space.problems("qr", row, [])
    assert {case.routine for case in cases} == {"qr", "qr_r"}
    trials = Stopwatch(lambda knobs, case: 1.0)
    found = [dict(zip(tune_space.KNOBS["qr"], ("32", "1", "10", r, q))) for r in "01" for q in "01"]
    tune.best("qr", row, found, cases, trials, "GPU")
    assert len(trials.measured) == 2 * len(cases)


def test_everything_is_compiled_at_once():
    rows, trials = tuning.rows("qr"), Stopwatch(lambda knobs, case: float(len(trials.calls)))
    chosen = [row for row in rows if row["dtype"] == "float64"][:2]
    tune.tuned("qr", rows, chosen, Hardware(), trials, "GPU", 2)
    assert trials.calls == [len(trials.compiled)] and len({str(job) for job in trials.compiled}) == len(trials.compiled)
    assert len(trials.measured) == len(trials.compiled)


def test_rows_are_left_where_time_is_over(monkeypatch, capsys):
    rows, clock = tuning.rows("svd"), [0.0]
    trials = Stopwatch(lambda knobs, case: 1.0)
    monkeypatch.setattr(tune.time, "perf_counter", lambda: clock[0])
    assert tune.tuned("svd", rows, rows, Hardware(), trials, "GPU", until=0.0) == rows and not trials.measured
    monkeypatch.setattr(trials, "compile", lambda jobs: clock.append(clock.pop() + 2.0))
    assert tune.tuned("svd", rows, rows[:1], Hardware(), trials, "GPU", until=1.0) == rows
    assert "see --seconds" in capsys.readouterr().out


def test_a_dry_run_needs_no_gpu(capsys):
    assert tune.main(["--dry-run"]) == 0
    out = capsys.readouterr().out
    for routine in ROUTINES:
        assert f"{routine} float64" in out and f"{routine} float32" in out
    assert "register_rows: " in out and "candidates on " in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lu"], "ROUTINE: expected some of qr"),
        (["--dtypes", "half"], "--dtypes: expected"),
        (["svd", "--dry-run", "--where", "max_size=3"], r"expected a column of svd\.csv"),
        (["--bogus"], "see tune --help"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, words, capsys):
    assert tune.main(arguments) == 2
    err = capsys.readouterr().err
    assert re.search(words, err) and err.startswith("tune: error: ") and err.count("\n") == 1


@pytest.mark.parametrize("command", [tune.main, bench_batched.main])
def test_without_a_gpu_there_is_one_line(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert command([]) == 1
    out, err = capsys.readouterr()
    assert out == "" and re.fullmatch(r"[\w.]+: error: expected CuPy and a CUDA device, got .*measures a GPU\n", err)


def test_fewer_candidates_are_measured():
    row = first("qr", columns=32)
    stopwatch = Stopwatch(lambda knobs, case: 1.0)
    tune.tuned("qr", tuning.rows("qr"), [row], Hardware(), stopwatch, tuning.FALLBACK, 2)
    assert len({str(knobs) for knobs, _ in stopwatch.measured}) <= 3
