"""Several commands at once, in processes: a GPU and cores of its own for each, parts of a table joined at the end."""

import os
from contextlib import nullcontext

import pytest

from h2gpu.apps.benchmarks.figures import __main__ as figures
from h2gpu.apps.benchmarks.figures import command, machine, queue
from h2gpu.apps.benchmarks.figures.entry import Entry, entry
from h2gpu.apps.benchmarks.report import tables

CUPY = """
class cuda:
    class runtime:
        getDeviceCount = staticmethod(lambda: 4)
        getDeviceProperties = staticmethod(lambda i: {"totalGlobalMem": 80 * 10**9, "name": b"NVIDIA H100"})
"""
STUB = """
import os, sys, time
from h2gpu.apps.benchmarks.report import tables
from h2gpu.batched.device.threads import thread_count
name, seconds, *fields = sys.argv[1:]
begun = time.monotonic()
time.sleep(float(seconds))
row = {"field": fields[-1] if fields else "", "gpu": os.environ.get("CUDA_VISIBLE_DEVICES"), "begun": repr(begun)}
row |= {"ended": repr(time.monotonic()), "blas": os.environ["OPENBLAS_NUM_THREADS"], "threads": thread_count()}
tables.write(name, [row], "a machine")
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores are not given to processes here")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for tables, and modules that stand for CuPy with four GPUs and for a benchmark."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "cupy.py").write_text(CUPY)
    (tmp_path / "code" / "stub.py").write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "code"))
    monkeypatch.setenv("H2GPU_COMMIT", "0123456")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(Entry, "commands", lambda self: ((1, "stub", step.split()) for step in self.steps))
    return tmp_path


def stub(name, seconds, slept=0.0, gpus=1, **more):
    return entry("a", f"{name}.csv", seconds, f"benchmarks/a/{name}.csv {slept}", gpus=gpus, **more)


def ran(place, *options):
    return figures.main(["--data", str(place), "--output", str(place / "out"), *options])


def files(place):
    return sorted(str(path.relative_to(place / "out")) for path in (place / "out").rglob("*") if path.is_file())


def rows(place, name):
    return tables.read(place / "out" / "a" / f"{name}.csv")[1]


@pytest.mark.slow
def test_four_gpus_run_four_commands_at_once_within_the_limit(place, monkeypatch, capsys):
    """On 64 cores that are imagined: none is asked of the system."""
    monkeypatch.setattr(machine, "cores", lambda: list(range(64)))
    monkeypatch.setattr(command, "pinned", lambda cores: nullcontext())
    many = [stub(f"t{i}", 30, 1.5) for i in range(6)]
    monkeypatch.setattr(figures, "ON_CUDA", [*many, stub("long", 601), stub("two", 20, gpus=2)])
    assert ran(place, "--device", "cuda", "--limit", "600") == 0
    seen = [rows(place, one.name)[0] for one in many]
    times = [(float(row["begun"]), float(row["ended"])) for row in seen]
    assert max(sum(begun <= time < ended for begun, ended in times) for time, _ in times) == 4
    assert {row["gpu"] for row in seen} == {"0", "1", "2", "3"} and {row["blas"] for row in seen} == {"16"}
    for row, (begun, ended) in zip(seen, times):
        beside = [other for other, (b, e) in zip(seen, times) if other is not row and b < ended and begun < e]
        assert row["gpu"] not in [other["gpu"] for other in beside]
    (alone,) = rows(place, "two")
    assert alone["gpu"] == "0,1,2,3" and alone["blas"] == "64" and float(alone["ended"]) <= min(times)[0]
    out = capsys.readouterr().out
    assert "long left out: about 601 s do not fit into the 600 s that are left" in out
    assert not (place / "out" / "a" / "long.csv").exists()


@pytest.mark.slow
def test_a_command_that_outlasts_patience_is_ended_and_others_are_published(place, monkeypatch, capsys):
    monkeypatch.setattr(figures, "ON_CPU", [stub("hangs", 3, 60.0, gpus=0), stub("good", 2, 0.1, gpus=0)])
    monkeypatch.setattr(queue, "PATIENCE", 2)
    monkeypatch.setattr(queue, "LEAST", 0.0)
    monkeypatch.setattr(machine, "cores", lambda: [0, 1])
    monkeypatch.setattr(command, "pinned", lambda cores: nullcontext())
    assert ran(place, "--jobs", "2", "--limit", "4") == 1
    assert "hangs failed: stopped at its limit, after 6 s" in capsys.readouterr().out
    assert files(place) == [".unfinished/hangs/log", "a/good.csv"]


def test_a_command_on_the_cpu_sees_its_cores_alone(place, monkeypatch):
    monkeypatch.setattr(figures, "ON_CPU", [stub("t", 1, gpus=0)])
    assert ran(place, "--cores", "1") == 0
    (row,) = rows(place, "t")
    assert (row["threads"], row["blas"]) == ("1", "1")


def test_ranks_share_the_cores_of_a_command(place, monkeypatch):
    """Four with a thread of BLAS for each core would wait for each other."""
    (place / "mpiexec").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')  # one rank, that sees what all see
    (place / "mpiexec").chmod(0o755)
    monkeypatch.setattr(machine, "cores", lambda: list(range(8)))
    monkeypatch.setattr(command, "pinned", lambda cores: nullcontext())
    monkeypatch.setattr(command.entries, "mpiexec", lambda: str(place / "mpiexec"))
    monkeypatch.setattr(Entry, "commands", lambda self: ((4, "stub", step.split()) for step in self.steps))
    monkeypatch.setattr(figures, "ON_CPU", [stub("t", 1, gpus=0)])
    assert ran(place, "--cores", "8") == 0
    assert [row["blas"] for row in rows(place, "t")] == ["2"]


def test_parts_of_a_table_are_joined_in_their_order(place, monkeypatch, capsys):
    """Each part by a command of its own; the table of one that is lacking stays what it was."""
    whole = stub("whole", 4, gpus=0, parts="second first")
    monkeypatch.setattr(figures, "ON_CPU", [whole, stub("other", 1, gpus=0)])
    assert ran(place) == 0
    head, found = tables.read(place / "out" / "a" / "whole.csv")
    assert [row["field"] for row in found] == ["second", "first"]
    assert [line.split()[-2:] for line in head if line.startswith("command: ")] == [
        ["--fields", "second"],
        ["--fields", "first"],
    ]
    assert head.count("commit: 0123456") == 1 and sorted(os.listdir(place / "out")) == ["a"]
    before = (place / "out" / "a" / "whole.csv").read_text()
    monkeypatch.setattr(
        Entry,
        "commands",
        lambda self: iter([(1, "stub" if self.part == "first" else "no", ["benchmarks/a/whole.csv", "0"])]),
    )
    assert ran(place, "--only", "whole") == 1
    out, first = capsys.readouterr().out, place / "out" / ".unfinished" / "whole first"
    assert "whole second failed: exit status 1" in out
    assert f"whole lacks other parts than first, kept in {first}: whole.csv (1 rows)" in out
    assert (place / "out" / "a" / "whole.csv").read_text() == before
    kept = [f".unfinished/whole {name}" for name in ("first/whole.csv", "second/log")]
    assert files(place) == [*kept, "a/other.csv", "a/whole.csv"]


def test_parts_of_different_commits_are_not_joined(place, monkeypatch):
    for commit in ("0123456", "abcdef0"):
        monkeypatch.setenv("H2GPU_COMMIT", commit)
        tables.write(place / commit, [{"field": commit}], "a machine")
    with pytest.raises(ValueError, match=r"expected parts of one device and commit, got .*abcdef0"):
        tables.join([place / "0123456", place / "abcdef0"], place / "joined")
    assert not (place / "joined").exists()
