"""Commands of an entry in processes: their files are published together or not at all, and kept beside then."""

import os
import time

import pytest

from h2gpu.apps.benchmarks.figures import __main__ as figures
from h2gpu.apps.benchmarks.figures.command import Command
from h2gpu.apps.benchmarks.figures.entry import entry
from h2gpu.apps.benchmarks.figures.machine import Slot
from h2gpu.apps.benchmarks.report import tables

STUB = """
import os, subprocess, sys
name, *words = sys.argv[1:]
for word in words:
    if word.startswith("rows="):
        with open(name, "w") as file:
            print("n", *range(int(word[5:])), sep="\\n", file=file)
        print(*range(100), sep="\\n")
if "hangs" in words:
    subprocess.run([sys.executable, "-c", os.environ["CHILD"]])
if "fails" in words:
    sys.exit("the reason")
seen = [os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ["OPENBLAS_NUM_THREADS"], sorted(os.sched_getaffinity(0))]
before = open(name).read() if os.path.exists(name) else ""
found = repr((seen, os.listdir("data"), sorted(os.listdir("benchmarks/a"))))
open(name, "w").write(before + found)
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores are not given to processes here")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with data, a published table, and a module that stands for a benchmark."""
    package = tmp_path / "code" / "h2gpu_stub"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "stub.py").write_text(STUB)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sites.h5").touch()
    (tmp_path / "out" / "a").mkdir(parents=True)
    (tmp_path / "out" / "a" / "t.csv").write_text("before")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "code"))
    monkeypatch.setattr(type(entry("a", "t", 1, gpus=0)), "commands", commands)
    return tmp_path


def commands(self):
    """Those of a stub in place of a benchmark's."""
    for step in self.steps:
        yield 1, "h2gpu_stub.stub", step.split()


def started(place, files, *steps, gpu="", **more):
    cores = tuple(sorted(os.sched_getaffinity(0)))[:1]
    one = entry("a", files, 1, *steps, gpus=int(bool(gpu)), **more)
    return Command(one, [Slot(gpu, cores)], place / "data", place / "out", place / "kept")


def ended(command):
    while (problem := command.poll()) is None:
        time.sleep(0.01)
    return problem


def left(place):
    return sorted(str(path.relative_to(place / "out")) for path in (place / "out").rglob("*") if path.is_file())


def test_a_command_has_its_gpu_its_cores_and_the_data_and_no_old_table(place):
    (place / "out" / "a" / "other.csv").write_text("other")
    (place / "out" / "a" / "third.csv").write_text("third")
    assert ended(started(place, "t.csv", "benchmarks/a/t.csv", gpu="3", beside="other.csv")) == ""
    core = min(os.sched_getaffinity(0))
    assert (place / "out" / "a" / "t.csv").read_text() == repr((["3", "1", [core]], ["sites.h5"], ["other.csv"]))
    assert left(place) == ["a/other.csv", "a/t.csv", "a/third.csv"]
    assert (place / "out" / "a" / "other.csv").read_text() == "other"


def test_steps_come_one_after_another(place):
    assert ended(started(place, "t.csv u.csv", *["benchmarks/a/t.csv"] * 2, "benchmarks/a/u.csv")) == ""
    assert (place / "out" / "a" / "t.csv").read_text().count("sites.h5") == 2
    assert left(place) == ["a/t.csv", "a/u.csv"]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (("benchmarks/a/t.csv", "benchmarks/a/u.csv fails"), ["exit status 1", "the reason"]),
        (("benchmarks/a/t.csv",), ["expected the files a/u.csv, which were not written"]),
    ],
)
def test_what_fails_publishes_nothing(place, steps, words):
    told = ended(started(place, "t.csv u.csv", *steps)).split("\n    ")
    assert told == [words[0], f"kept in {place / 'kept'}: t.csv (0 rows), log", *words[1:]]
    assert left(place) == ["a/t.csv"] and (place / "out" / "a" / "t.csv").read_text() == "before"
    assert os.listdir(place / "out") == ["a"]


def test_what_failed_is_kept_with_its_whole_log_until_it_ends_well(place):
    (place / "out" / "a" / "other.csv").write_text("other")
    (place / "kept").mkdir()
    (place / "kept" / "older.csv").touch()
    told = ended(started(place, "t.csv", "benchmarks/a/t.csv rows=7 fails", beside="other.csv"))
    assert f"kept in {place / 'kept'}: t.csv (7 rows), log" in told and len(told.splitlines()) == 17
    assert sorted(os.listdir(place / "kept")) == ["log", "t.csv"]
    assert (place / "kept" / "t.csv").read_text().split() == ["n", *map(str, range(7))]
    assert (place / "kept" / "log").read_text().split() == [*map(str, range(100)), "the", "reason"]
    assert ended(started(place, "t.csv", "benchmarks/a/t.csv")) == "" and not (place / "kept").exists()


CHILD = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("PLACE", "w").write(str(os.getpid()))
time.sleep(60)
"""


def test_what_is_stopped_ends_with_its_children(place, monkeypatch):
    monkeypatch.setenv("CHILD", CHILD.replace("PLACE", str(place / "child")))
    command = started(place, "t.csv", "benchmarks/a/t.csv rows=3 hangs")
    while not (place / "child").exists() or not (place / "child").read_text():
        time.sleep(0.01)
    assert command.stop("too long").split("\n    ")[:2] == [
        "too long",
        f"kept in {place / 'kept'}: t.csv (3 rows), log",
    ]
    assert (place / "kept" / "log").read_text().split() == [*map(str, range(100))]
    child = int((place / "child").read_text())
    for _ in range(500):
        if not alive(child):
            break
        time.sleep(0.01)
    assert not alive(child) and left(place) == ["a/t.csv"]


def alive(number):
    """Whether a process runs; one that ended and that nobody asked about does not."""
    try:
        with open(f"/proc/{number}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def figure(place, monkeypatch, *entries):
    monkeypatch.setattr(figures, "ON_CPU", entries)
    return figures.main(["--data", str(place / "data"), "--output", str(place / "out")])


def test_the_whole_command(place, monkeypatch, capsys):
    monkeypatch.setattr(tables, "commit", lambda: "abc")
    good = entry("a", "t.csv", 1, "benchmarks/a/t.csv", gpus=0)
    bad = entry("a", "u.csv", 2, "benchmarks/a/u.csv fails", gpus=0)
    poor = entry("a", "v.csv", 3, "benchmarks/a/v.csv", gpus=0, data="missing.h5")
    assert figure(place, monkeypatch, good, bad, poor) == 1
    out, err = capsys.readouterr()
    assert "1 of 3 commands failed: u" in err
    folder = place / "out" / ".unfinished" / "u"
    assert f"u failed: exit status 1\n    kept in {folder}: log\n    the reason" in out
    assert f"u failed, 0 s: exit status 1; kept in {folder}: log" in out
    assert f"v left out: needs {place / 'data' / 'missing.h5'}" in out
    assert left(place) == [".unfinished/u/log", "a/t.csv"]
    assert (place / "out" / "a" / "t.csv").read_text() != "before"
    assert figure(place, monkeypatch, good, poor) == 0


@pytest.mark.parametrize("commit", ["abc-dirty", "unknown"])
def test_sources_that_no_table_could_name_are_refused(place, monkeypatch, capsys, commit):
    monkeypatch.setattr(tables, "commit", lambda: commit)
    assert figure(place, monkeypatch, entry("a", "t.csv", 1, "benchmarks/a/t.csv", gpus=0)) == 1
    assert "--dirty" in capsys.readouterr().err
    figures.check_sources(dirty=True)
