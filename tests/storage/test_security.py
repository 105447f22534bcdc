"""What docs/security.md says: reading starts nothing, runs nothing and opens nothing else; names of temporary files."""

import ast
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from places import ROOT

import h2gpu
from h2gpu.storage import whole_file

FORBIDDEN = {"eval", "exec", "compile", "__import__"}
READERS = ["h2gpu/storage", "h2gpu/covariance", "h2gpu/statistics/results"]
HOSTILE = {
    "name": "Expression",
    "text": "__import__('os').system('touch owned')",
    "dimension": None,
    "numbers": {},
}
WATCHED = """
import os, sys
path = sys.argv[1]
import h2gpu
from h2gpu.apps import h2info
from h2gpu.covariance import from_parameters
h2gpu.load(path), h2gpu.read_header(path)  # what is imported on first use
events = []
def hook(name, arguments):
    if name.split(".")[0] in {"subprocess", "socket", "pickle", "exec", "compile", "ctypes", "marshal", "shutil"}:
        events.append(name)
    if name.startswith("os.") and name not in {"os.listdir", "os.scandir"}:  # fork, exec, system, remove, rename, …
        events.append(name)
    if name == "open" and not os.fsdecode(arguments[0]).startswith((path, "/proc/", "/sys/")):
        events.append(f"open {arguments[0]}")
sys.addaudithook(hook)
h2gpu.load(path)
try:
    from_parameters(h2gpu.read_header(path).attributes["covariance"])
except ValueError:
    print("refused")
print(*events)
"""


@pytest.fixture
def hostile(tmp_path):
    points, path = np.random.default_rng(0).random((200, 2)), tmp_path / "matrix.h5"
    C = h2gpu.covariance_matrix(points, h2gpu.covariance.Exponential(), 1e-3)
    h2gpu.save(C, path, attributes={"covariance": HOSTILE, "source": "$(touch owned)"})
    return path


def test_reading_a_file_starts_no_program_and_opens_no_other_file(hostile):
    """By Python's own audit events, with a covariance in the file that would run a program if it were evaluated."""
    command = [sys.executable, "-c", WATCHED, str(hostile)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=hostile.parent)
    assert (done.returncode, done.stdout.split()) == (0, ["refused"]), done.stdout + done.stderr
    assert os.listdir(hostile.parent) == [hostile.name]


@pytest.mark.parametrize("folder", READERS)
def test_no_reader_evaluates_text_or_unpickles(folder):
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in FORBIDDEN, f"{path}: {node.func.id}"
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [getattr(node, "module", None) or "", *(name.name for name in node.names)]
                assert not {"pickle", "marshal", "shelve", "subprocess", "joblib"} & set(names), path


def test_temporary_names_are_random_and_never_those_of_files_that_exist(tmp_path, monkeypatch):
    names = set()
    for _ in range(20):
        with whole_file(tmp_path / "out") as temporary:
            names.add(temporary.name)
    assert len(names) == 20 and all(re.fullmatch(r"\.out\.[0-9a-f]{12}\.tmp", name) for name in names)
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    planted = tmp_path / f".out.{'0' * 12}.tmp"
    planted.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError), whole_file(tmp_path / "out"):
        pass
    assert planted.is_symlink() and not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.name != "posix", reason="modes")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_new_files_have_the_rights_that_the_umask_leaves(mask, tmp_path):
    before = os.umask(mask)
    try:
        with whole_file(tmp_path / "out") as temporary:
            assert temporary.stat().st_mode & 0o777 == 0o666 & ~mask
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o666 & ~mask


def test_every_sentence_of_the_page_names_a_test_that_exists():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert len(rows) >= 20
    for row in rows:
        named = re.findall(r"`(test_\w+)`|battery “([^”]+)”", row)
        assert named or row.startswith("| it cannot"), row
        for test, battery in named:
            assert f"def {test}(" in tests if test else f'@battery("{battery}")' in tests, row
