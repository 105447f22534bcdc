"""Every published table says where it is from: a commit of the history, a device, a date and a command."""

import re
import subprocess
from fnmatch import fnmatch

import pytest
from places import ROOT

BENCHMARKS = ROOT / "benchmarks"
TABLES = sorted(BENCHMARKS.glob("[!.]*/*.csv"))


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def head(path):
    """{name: [values]} of the lines that begin with #."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"# (\w+): (.*)", line):
            found.setdefault(match[1], []).append(match[2])
    return found


def faults(path):
    """What a table's head lacks; commits are asked of git."""
    lines = head(path)
    missing = [name for name in ("date", "device", "command", "commit") if not lines.get(name)]
    return missing + [c for c in lines.get("commit", ()) if git("merge-base", "--is-ancestor", c, "HEAD").returncode]


@pytest.fixture(scope="module", autouse=True)
def history():
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("no history of the repository here")


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_is_of_a_commit_of_the_history(path):
    assert faults(path) == []


def named(text):
    """Names in backticks, patterns such as `study_kaust-*` among them."""
    return re.findall(r"`([\w.*-]+)`", text)


def test_every_table_is_in_the_readme():
    names = named((BENCHMARKS / "README.md").read_text(encoding="utf-8"))
    assert [path.stem for path in TABLES if not any(fnmatch(path.stem, name) for name in names)] == []


def test_pictures_that_the_readme_names_are_there():
    names = named((BENCHMARKS / "README.md").read_text(encoding="utf-8"))
    pictures = {path.name for path in BENCHMARKS.glob("[!.]*/*.png")}
    assert {name for name in names if name.endswith(".png")} - pictures == set()


def test_every_picture_is_on_the_page_of_figures():
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted(BENCHMARKS.glob("[!.]*/*.png")) if f"/{path.name})" not in page] == []


def test_a_foreign_commit_is_seen(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("# date: 2026-11-21\n# device: x\n# command: y\n# commit: d9d6fcb\n")
    assert faults(path) == ["d9d6fcb"]
    path.write_text("# date: 2026-11-21\n# commit: HEAD\n")
    assert faults(path) == ["device", "command"]
