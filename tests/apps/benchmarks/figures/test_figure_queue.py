"""The queue of measurements: nothing shares a GPU, what runs alone runs alone, limits hold, failures stay alone.

Commands of these tests are imagined, on a clock that a pause advances.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2gpu.apps.benchmarks.figures import machine
from h2gpu.apps.benchmarks.figures.entry import entry
from h2gpu.apps.benchmarks.figures.queue import LEAST, PATIENCE, PAUSE, Queue
from h2gpu.apps.command.command import FailureError
from h2gpu.batched.device import threads


class Machine:
    """Commands that take a time and end well or not; remembers who ran when, in which slots."""

    def __init__(self, times, problems=()):
        self.now, self.times, self.problems, self.ran = 0.0, times, dict(problems), []

    def start(self, one, slots):
        command = Imagined(self, one.name, slots)
        self.ran.append(command)
        return command

    def clock(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds


class Imagined:
    def __init__(self, machine, name, slots):
        self.machine, self.name, self.slots, self.begun, self.ended = machine, name, slots, machine.now, None

    def poll(self):
        if self.machine.now - self.begun < self.machine.times[self.name]:
            return None
        self.ended = self.machine.now
        return self.machine.problems.get(self.name, "")

    def stop(self, why):
        self.ended = self.machine.now
        return why


def figures(*seconds, gpus=1, **more):
    """Entries of these rough seconds, called by their numbers."""
    return [entry("a", f"{i}.csv", s, "x", gpus=gpus, **more) for i, s in enumerate(seconds)]


def outcomes(entries, slots, machine, limit=math.inf):
    queue = Queue(entries, slots, machine.start, limit, lambda line: None, machine.clock, machine.pause)
    return {one.entry.name: one for one in queue.run()}


jobs = st.tuples(st.integers(1, 900), st.floats(0.1, 4), st.sampled_from([1, 1, 1, 2, 4]), st.booleans())


@given(st.lists(jobs, max_size=12), st.integers(1, 4), st.one_of(st.just(math.inf), st.integers(10, 2000)))
def test_rules_of_the_queue(drawn, count, limit):
    """Commands of some rough seconds, times as long in truth, on some GPUs, that fail or not."""
    entries = [entry("a", f"{i}.csv", s, "x", gpus=min(gpus, count)) for i, (s, _, gpus, _) in enumerate(drawn)]
    times = {str(i): s * factor for i, (s, factor, *_) in enumerate(drawn)}
    problems = {str(i): "failed" for i, one in enumerate(drawn) if one[-1]}
    there = Machine(times, problems)
    slots = [machine.Slot(str(i), (i,)) for i in range(count)]
    ends = outcomes(entries, slots, there, limit)
    assert sorted(ends) == sorted(one.name for one in entries)
    named = {one.name: one for one in entries}
    alone = {one.name for one in entries if one.gpus > 1}
    for one in there.ran:
        assert len({slot.gpu for slot in one.slots}) == len(one.slots) == (count if one.name in alone else 1)
        assert one.begun + named[one.name].seconds <= limit
        assert one.ended - one.begun <= max(LEAST, PATIENCE * named[one.name].seconds) + PAUSE + 1e-6
        for other in there.ran:
            if other is not one and other.begun < one.ended and one.begun < other.ended:  # at the same time
                assert not {slot.gpu for slot in one.slots} & {slot.gpu for slot in other.slots}
                assert one.name not in alone
    for name, end in ends.items():
        (ran,) = [one for one in there.ran if one.name == name] or [None]
        assert (end.state == "left out") == (ran is None)
        if end.state == "left out":
            assert limit < math.inf
        elif end.state == "done":
            assert name not in problems and end.seconds == ran.ended - ran.begun >= times[name]
        else:
            assert name in problems or "limit" in end.why


def test_a_failure_stops_no_other():
    ends = outcomes(figures(3, 2, 1), machine_of(1), Machine({"0": 3, "1": 2, "2": 1}, {"0": "exit status 1\nlast"}))
    assert [ends[name].state for name in "012"] == ["failed", "done", "done"]
    assert ends["0"].why == "exit status 1\nlast"


def test_the_longest_come_first_and_no_slot_waits():
    there = Machine({"0": 10, "1": 40, "2": 20, "3": 30})
    outcomes(figures(10, 40, 20, 30), machine_of(2), there)
    assert [one.name for one in there.ran] == ["1", "3", "2", "0"]
    assert there.now == pytest.approx(50, abs=5 * PAUSE)


def test_what_does_not_fit_leaves_room_for_what_does():
    there = Machine({"0": 100, "1": 50, "2": 60})
    ends = outcomes(figures(100, 50, 60), machine_of(1), there, limit=90)
    assert [(name, ends[name].state) for name in "012"] == [("0", "left out"), ("1", "left out"), ("2", "done")]
    assert "about 100 s do not fit into the 90 s that are left" in ends["0"].why


def test_what_runs_at_the_limit_may_end_and_nothing_begins_then():
    """An end that was seconds away, as of a table whose last case was measured."""
    there = Machine({"0": 150, "1": 5, "2": 20000})
    ends = outcomes(figures(140, 5), machine_of(1), there, limit=141)
    assert [(ends[name].state, ends[name].seconds) for name in "01"] == [
        ("done", pytest.approx(150, abs=2 * PAUSE)),
        ("left out", 0),
    ]
    (end,) = outcomes(figures(0, 0, 100)[2:], machine_of(1), Machine(there.times), limit=101).values()
    assert end.state == "failed" and end.seconds == pytest.approx(PATIENCE * 100, abs=2 * PAUSE)


def test_whatever_ends_the_queue_ends_its_commands():
    there = Machine({"0": 10, "1": 10})

    def interrupted(_):
        raise KeyboardInterrupt

    queue = Queue(figures(10, 10), machine_of(2), there.start, math.inf, lambda line: None, there.clock, interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.run()
    assert [one.ended for one in there.ran] == [0.0, 0.0]
    assert [(o.entry.name, o.state, o.why) for o in queue.outcomes] == [(n, "failed", "interrupted") for n in "01"]


def machine_of(count):
    return [machine.Slot(str(i), (i,)) for i in range(count)]


@pytest.mark.parametrize(("count", "numbers"), [(1, []), (3, []), (5, ["0", "2"])])
def test_slots_share_no_core(monkeypatch, count, numbers):
    monkeypatch.setattr(machine, "cores", lambda: [0, 4, 1, 5, 2, 6, 3, 7])
    slots = machine.slots(numbers, count)
    assert [slot.gpu for slot in slots] == (numbers or [""] * count)
    taken = sorted(core for slot in slots for core in slot.cores)
    assert len(set(taken)) == len(taken) == (8 if numbers else 2 * count) and all(slot.cores for slot in slots)


@pytest.mark.parametrize("siblings", [1, 2], ids=["cores", "hyperthreads"])
@pytest.mark.parametrize(("count", "each", "share"), [(16, None, 2), (16, 2, 2), (16, 3, 3), (5, None, 2), (4, 16, 16)])
def test_commands_on_the_cpu_have_so_many_cores_each_two_by_default(monkeypatch, siblings, count, each, share):
    """On 64 numbers, of 64 cores or of 32 with two hyperthreads i and i + 32."""
    monkeypatch.setattr(machine.threads, "cores", lambda: set(range(64)))
    monkeypatch.setattr(threads, "first_sibling", lambda core: core % (64 // siblings))
    slots = machine.slots([], count, each)
    taken = [core for slot in slots for core in slot.cores]
    assert {len(slot.cores) for slot in slots} == {share} and len(slots) == count
    assert len(set(taken)) == len(taken) == count * share
    if share == 2 and count <= 16:  # as many cores as are taken are there: none is taken twice
        assert len({core % (64 // siblings) for core in taken}) == len(taken)


def test_a_gpu_has_an_equal_share_of_the_cores_or_so_many(monkeypatch):
    monkeypatch.setattr(machine.threads, "cores", lambda: set(range(64)))
    monkeypatch.setattr(threads, "first_sibling", lambda core: core)
    numbers = ["0", "1", "2", "3"]
    assert [slot.cores for slot in machine.slots(numbers, 1)] == [tuple(range(i, i + 16)) for i in (0, 16, 32, 48)]
    assert [len(slot.cores) for slot in machine.slots(numbers, 1, 8)] == [8] * 4


@pytest.mark.parametrize(
    ("count", "each", "words"), [(3, None, "a core for each of 3"), (2, 2, "2 cores for each of 2")]
)
def test_more_commands_than_cores_are_refused(monkeypatch, count, each, words):
    monkeypatch.setattr(machine, "cores", lambda: [0, 1])
    with pytest.raises(FailureError, match=f"expected {words} commands at once, got 2; give fewer"):
        machine.slots([], count, each)


CUPY = """
class cuda:
    class runtime:
        getDeviceCount = staticmethod(lambda: COUNT)
        getDeviceProperties = staticmethod(lambda i: {"totalGlobalMem": (i + 1) * 10**9, "name": b"NVIDIA H200"})
"""


@pytest.mark.parametrize(
    ("visible", "numbers"), [(None, ["0", "1"]), ("3,5", ["3", "5"])], ids=["all", "those that are visible"]
)
def test_gpus_keep_the_numbers_that_a_command_is_given(tmp_path, monkeypatch, visible, numbers):
    (tmp_path / "cupy.py").write_text(CUPY.replace("COUNT", "2"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.gpus() == [(number, i + 1, "NVIDIA H200") for i, number in enumerate(numbers)]


@pytest.mark.parametrize("cupy", ["raise ImportError('no driver')", CUPY.replace("COUNT", "0")])
def test_no_gpu_is_told(tmp_path, monkeypatch, cupy):
    (tmp_path / "cupy.py").write_text(cupy)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(FailureError, match=r"expected CuPy and a CUDA device, got (ImportError: no driver|none)"):
        machine.gpus()


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("My GPU", "my-gpu"),
    ],
)
def test_a_card_has_a_short_name(name, short):
    assert machine.card(name) == short
