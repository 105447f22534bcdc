"""The framework of the batteries finds what it is there to find, and gives the case that shows it."""

import sys
import time
from collections import Counter

import cases_files
import numpy as np
import pytest
from battery import BATTERIES, one_line
from checksums import lookup3, repaired, tables
from run import Result, supervised, table, together

BROKEN = """
import os, sys, time
sys.path[:0] = {paths!r}
import battery, run
battery.SLOWEST = 16

def waits():
    time.sleep(300)

@battery.battery("broken", most_memory=1 << 26)
def broken(rng, folder):
    from pathlib import Path
    number = len(list(Path({log!r}).iterdir()))
    (Path({log!r}) / str(number)).touch()
    if number == 1:
        raise ZeroDivisionError("two\\nlines")
    if number == 3:
        os.abort()
    if number == 5:
        battery.in_child(waits)  # keeps nobody who listens to its parent
        time.sleep(300)
    if number == 6:
        battery.ended(battery.in_child(waits))
    if number == 7:
        broken.held = np.ones(1 << 25)
    print("noise")
    return "right"

import numpy as np
sys.exit(run.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_errors_crashes_hangs_and_memory_are_told_by_their_cases(tmp_path):
    begun = time.monotonic()
    (tmp_path / "log").mkdir()
    script = BROKEN.format(paths=sys.path, log=str(tmp_path / "log"))
    result = supervised("broken", 1, 400, 9, (sys.executable, "-c", script))
    found = dict(result.findings)
    assert sorted(found) == [1, 3, 5, 6, 7] and result.words == {"right": 4}
    assert found[1].startswith("ZeroDivisionError") and found[3].startswith("crashes, status -6: ")
    assert "Aborted: <string>:18 in broken < battery.py:" in found[3]
    assert found[5].startswith("hangs: Timeout (0:00:16)!: <string>:21 in broken < battery.py:")
    assert "a child hangs: <string>:8 in waits < battery.py:" in found[6]
    assert found[7].startswith("memory: ") and "| broken | 9 | 4 right | 5 |" in table([result])
    assert time.monotonic() - begun < 80


def test_results_of_several_seeds_are_added():
    first, second = (
        Result("a", 7, Counter(right=2), [(1, "x")], 3.0),
        Result("a", 8, Counter(right=1, refused=4), [], 2.0),
    )
    (both,) = together([first, second])
    assert (
        both.words == {"right": 3, "refused": 4}
        and both.cases == 8
        and both.seconds == 5
        and both.findings == [(1, "x")]
    )
    assert [r.name for r in together([first, Result("b"), second])] == ["a", "b"]


@pytest.mark.parametrize("name", ["2D", "rectangular", "factors"])
def test_checksums_are_those_of_hdf5(name):
    data = cases_files.saved(name)
    found = list(tables(data))
    assert len(found) > 10 and repaired(data) == data
    for first, end in found:
        assert lookup3(data[first:end]).to_bytes(4, "little") == data[end : end + 4]
    lookups = {b"": 0xDEADBEEF, b"Four score and seven years ago": 0x17770551}  # of Jenkins' own test
    assert all(lookup3(text) == value for text, value in lookups.items())


def test_a_case_is_the_same_again(tmp_path):
    chosen = BATTERIES["files: bytes changed"]
    seen = [cases_files.changed(np.random.default_rng((1, k)), bytes(range(256))) for k in (0, 0, 1)]
    assert seen[0] == seen[1] != seen[2]
    assert chosen.run(1, 0, tmp_path) == chosen.run(1, 0, tmp_path)


SLOW = "faults", "numerics: cov", "expressions: against"
QUICK = [name for name in BATTERIES if not name.startswith((*SLOW, "device: "))]


@pytest.mark.parametrize("name", QUICK)
def test_the_first_cases_of_quick_batteries_find_nothing(name, tmp_path):
    for number in range(2):
        assert BATTERIES[name].run(0, number, tmp_path)


ONCE_FOUND = [
    ("numerics: spheres", 20261126, 17),  # twice rtol, in rows that 64 of 329 had missed
    ("numerics: covariance matrices", 20261128, 152),  # float32, where no entry is a normal number
    ("files: arrays changed, checksums right", 20261126, 1361),  # a product that is no normal number
    ("files: structure changed through h5py", 20261126, 3999),  # no attribute is left to be changed
    ("commands: observations and targets", 20261126, 984),  # 68 GB declared, none in the file
    ("commands: observations and targets", 20261127, 1613),  # a chunk of no bytes with a checksum
    ("commands: observations and targets", 20261130, 1292),  # 17 million chunks declared, two in the file
    ("commands: files of points", 20261131, 2617),  # a name that is not UTF-8
]


@pytest.mark.parametrize("name, seed, case", ONCE_FOUND)
def test_what_batteries_found_stays_mended(name, seed, case, tmp_path):
    assert BATTERIES[name].run(seed, case, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in BATTERIES if name.startswith("device: ")])
def test_the_first_faults_of_a_device_find_nothing(name, tmp_path):
    pytest.importorskip("cupy.cuda.compiler")  # a device, not the stand-in
    for number in range(2):
        assert BATTERIES[name].run(0, number, tmp_path)


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[31m", 3000 * "a"])
def test_what_is_not_one_line_is_found(text):
    with pytest.raises(AssertionError, match="not one short line"):
        one_line(ValueError(text))
