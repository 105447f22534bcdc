"""`make sanitize` reads what compute-sanitizer says, and fails where it should: on a program that says the like."""

import re
import stat
import sys

import pytest
from places import TESTS
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
    false = (("memcheck", "svd::svd_round", "because"),)
    assert [report.kernel for report in unexplained("memcheck", SAID, false)] == ["qr::householder_qr"]
    assert len(unexplained("racecheck", SAID, false)) == 2


def test_every_room_with_kernels_is_covered_and_false_reports_have_reasons():
    assert all((TESTS / file).exists() for file in FILES)
    for tool, pattern, reason in FALSE:
        assert tool in TOOLS and re.compile(pattern) and reason


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
        f'#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $@" >> {log}\n'
        'case "$*" in *test_near_under*) echo "1 failed"; exit 1;; esac\necho "9 passed"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    files = ["batched/systems/test_lu.py"]
    options = ["--program", str(program), "--tool", "memcheck", "--jobs", "2", "--each", "9", "--devices", "4,5"]
    assert main([*options, *files]) == 1
    (every,) = _slices(files, 10**6)
    asked = [word for line in log.read_text().splitlines() for word in line.split(f"{TESTS}/")[1:]]
    assert sorted(name.split(" /")[0].strip() for name in asked) == sorted(every) and len(every) > 18
    assert {line.split()[0] for line in log.read_text().splitlines()} == {"4", "5"}
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
