"""`make sanitize` reads what compute-sanitizer says, and fails where it should: on a program that says the like."""

import json
import os
import re
import stat
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import pytest
import reached
import sanitize
from places import ROOT, TESTS
from reached import Reached, in_order
from sanitize import FALSE, FILES, TOOLS, _slices, main, reports, unexplained

SAID = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 8 bytes
=========     at void qr::householder_qr<double, 4>(const T1 *, T1 *, int)+0x1a0 in qr.cu:88
=========     by thread (3,0,0) in block (0,0,0)
=========     Saved host backtrace up to driver entry point at kernel launch time
========= Error: Race reported between Write access at svd::svd_round<float, 2>(T1 *)+0x50
=========     at svd::svd_round<float, 2>(T1 *)+0x50 in svd.cu:10
========= ERROR SUMMARY: 2 errors
"""
RACES = """\
========= Error: Race reported between Read access at void systems::lu_column<double, (int)32, (int)8>(T1 *)+0x1d00
=========     and Write access at void systems::lu_column<double, (int)32, (int)8>(T1 *)+0x1e40 [8 hazards]
=========
========= Error: Race reported between Write access at void svd::round<common::Complex<float>>(T1 *)+0x8720
=========     and Read access at void svd::round<common::Complex<float>>(T1 *)+0x2d60 [16 hazards]
=========     and Write access at void svd::round<common::Complex<float>>(T1 *)+0x2fe0 [4 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""


def test_reports_are_told_with_their_kernels():
    found = reports(SAID)
    assert [report.kernel for report in found] == ["qr::householder_qr", "svd::svd_round"]
    assert found[0].what == "Invalid __global__ write of size 8 bytes"
    assert found[0].details[1] == "by thread (3,0,0) in block (0,0,0)"


def test_races_are_told_with_their_kernels_and_the_other_accesses():
    """The kernel stands in a report's first line, behind the type of its result; the other accesses below."""
    column, shared = reports(RACES)
    assert (column.kernel, shared.kernel) == ("systems::lu_column", "svd::round")
    details = column.details + shared.details
    assert all(detail.startswith("and ") for detail in details)
    assert [detail.rpartition("+")[2].partition(" ")[0] for detail in details] == ["0x1e40", "0x2d60", "0x2fe0"]


def test_known_false_races_pass_and_others_do_not():
    assert [report.kernel for report in unexplained("racecheck", RACES)] == ["svd::round"]
    assert len(unexplained("memcheck", RACES)) == 2
    assert not unexplained("racecheck", RACES.replace("svd::round", "systems::lu_shared"))
    assert len(unexplained("racecheck", RACES.replace("lu_column", "lu_column_of"))) == 2


def test_only_what_is_listed_passes():
    false = (("memcheck", "Error: .*", "svd::svd_round", "because"),)
    assert [report.kernel for report in unexplained("memcheck", SAID, false)] == ["qr::householder_qr"]
    assert len(unexplained("racecheck", SAID, false)) == 2
    assert len(unexplained("memcheck", SAID, (("memcheck", "Invalid .*", "svd::svd_round", "because"),))) == 2


def test_every_room_with_kernels_is_covered_and_false_reports_have_reasons():
    assert all((TESTS / file).exists() for file in FILES)
    tests = "".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py"))
    for tool, what, name, reason in FALSE:
        assert tool in TOOLS and re.compile(what) and re.compile(name) and reason
        assert all(f"def {test}(" in tests for test in re.findall(r"test_\w+", reason))


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
@pytest.mark.parametrize(
    ("said", "status", "expected"),
    [
        ("3 passed", 0, 0),
        (SAID + "3 passed", 0, 1),
        (RACES + "3 passed", 0, 1),
        ("no tests ran", 0, 1),
        ("2 passed, 1 failed", 1, 1),
    ],
)
def test_exit_status(said, status, expected, tmp_path, capsys):
    (tmp_path / "said").write_text(said)
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said\nexit {status}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert main(["--program", str(program), "--tool", "memcheck"]) == expected
    assert capsys.readouterr().out.startswith("memcheck: ")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_slices_hold_every_test_once_and_one_bad_slice_is_told(tmp_path, capsys):
    """The program given notes what it was asked to run, on which device, and fails for one test alone."""
    program, log = tmp_path / "compute-sanitizer", tmp_path / "log"
    program.write_text(
        f'#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $SANITIZED $@" >> {log}\n'
        'case "$*" in *test_near_under*) echo "1 failed"; exit 1;; esac\necho "9 passed"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    files = ["batched/systems/test_lu.py"]
    options = ["--program", str(program), "--tool", "memcheck", "--jobs", "2", "--each", "9", "--devices", "4,5"]
    assert main([*options, *files]) == 1
    (every,) = _slices(files, 10**6)
    asked = [word for line in log.read_text().splitlines() for word in line.split(f"{TESTS}/")[1:]]
    assert sorted(name.split(" /")[0].strip() for name in asked) == sorted(every) and len(every) > 18
    assert {tuple(line.split()[:2]) for line in log.read_text().splitlines()} == {("4", "memcheck"), ("5", "memcheck")}
    last = capsys.readouterr().out.splitlines()[-1]
    runs = -(-len(every) // 9)
    assert 0 < int(last.split()[0]) < runs and last.endswith(f"of {runs} runs without reports")


def test_slices_of_nothing_are_no_success(capsys):
    assert main(["--program", "compute-sanitizer", "--jobs", "2", "docs/test_links.py"]) == 2
    assert "expected tests marked gpu, found none in docs/test_links.py" in capsys.readouterr().err


def test_without_the_tool_it_is_one_line(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main([]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_what_does_not_end_in_time_is_told_and_killed_and_the_rest_not_begun(tmp_path, capsys):
    program = tmp_path / "compute-sanitizer"
    program.write_text("#!/bin/sh\necho begun\nsleep 600\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    options = ["--program", str(program), "--tool", "memcheck", "--tool", "initcheck", "--limit", "1"]
    start = time.monotonic()
    assert main(options) == 1 and time.monotonic() - start < 60
    said = capsys.readouterr().out
    assert "begun\n\nnot ended: the limit" in said and "not begun: the limit" in said
    assert said.endswith("0 of 2 runs without reports\n")


def test_the_tests_in_order_reach_every_kernel_first_then_every_instance_and_none_in_vain():
    a1, a2, b, c = ("a.cuh", "a<1>"), ("a.cuh", "a<2>"), ("a.cuh", "b<1>"), ("c.cuh", "c<1>")
    known = {
        "dear": Reached(100.0, frozenset({a1, a2, b, c})),
        "two": Reached(1.0, frozenset({a1, b})),
        "other": Reached(1.0, frozenset({a2})),
        "third": Reached(2.0, frozenset({c})),
        "vain": Reached(9.0, frozenset({b})),
    }
    assert in_order([*known, "unknown"], known) == ["two", "third", "other"]
    assert in_order(["dear", "vain"], known) in (["dear"], ["vain", "dear"])
    for tests in combinations(known, 3):
        every = frozenset().union(*(known[test].instances for test in tests))
        found = [known[test].instances for test in in_order(tests, known)]
        assert frozenset().union(*found) == every
        assert all(one - frozenset().union(*found[:k]) for k, one in enumerate(found))


def test_launches_are_noted_by_the_test_that_makes_them(tmp_path):
    """The plugin beside a kernel of Python: what a test launches, not what it only asks for."""
    (tmp_path / "fake.py").write_text(
        "from h2gpu.batched.device import compiler\n"
        "compiler._function = lambda device, header, instance, definitions: (lambda *a, **k: a)\n"
    )
    (tmp_path / "test_it.py").write_text(
        "from h2gpu.batched.device import compiler\n"
        "def ask(name): return compiler._function(0, 'a.cuh', name, ())\n"
        "kept = []\n"
        "def test_one(): kept.append(ask('one<1>')); assert kept[0](1, 2) == (1, 2)\n"
        "def test_two(): ask('two<1>')\n"
        "def test_three(): kept[0](); ask('three<1>')()\n"
    )
    paths = os.pathsep.join(map(str, [tmp_path, Path(reached.__file__).parent, ROOT]))
    env = {**os.environ, "PYTHONPATH": paths, "REACHED": str(tmp_path / "found")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "fake",
        "-p",
        "reached",
        "-p",
        "no:cacheprovider",
        "test_it.py",
    ]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    (file,) = (tmp_path / "found").iterdir()
    with file.open("a") as more:
        more.write('["test_it.py::cut')
    found = reached.read(tmp_path / "found")
    launched = {test.partition("::")[2]: sorted(name for _, name in r.instances) for test, r in found.items()}
    assert launched == {"test_one": ["one<1>"], "test_two": [], "test_three": ["one<1>", "three<1>"]}


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_of_what_is_known_the_fewest_run_and_what_they_reached_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sanitize, "_pytest", lambda files, *more: ["printf", "%s\\n", *(f"tests/{f}" for f in files)])
    lines = [("x.py::one", 1.0, [("a.cuh", "a<1>")]), ("x.py::two", 1.0, [("a.cuh", "a<1>"), ("b.cuh", "b<1>")])]
    (tmp_path / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    program = tmp_path / "compute-sanitizer"
    program.write_text('#!/bin/sh\necho "1 passed" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    names = [line[0] for line in lines]
    assert main(["--program", str(program), "--tool", "memcheck", "--reached", str(tmp_path), *names]) == 0
    said = capsys.readouterr().out
    assert "x.py::two" in said and "x.py::one" not in said
    assert "memcheck: 2 of 2 kernels, 2 of 2 instances\n1 of 1 runs without reports" in said
    assert main(["--program", str(program), "--tool", "memcheck", "--reached", str(tmp_path), names[0]]) == 0
    assert "memcheck: 1 of 2 kernels, 1 of 2 instances\n  not reached: b.cuh b\n" in capsys.readouterr().out
    assert main(["--program", str(program), "--reached", str(tmp_path / "none")]) == 2
    assert "found nothing in" in capsys.readouterr().err
