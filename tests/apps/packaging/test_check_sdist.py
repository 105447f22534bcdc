"""The source archive holds all that a build from it needs; check_sdist tells of what it lacks."""

import tarfile
import tomllib

import pytest
from places import ROOT

from h2gpu.apps.packaging import check_sdist


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return check_sdist.build(tmp_path_factory.mktemp("dist"))


def test_the_archive_holds_kernels_tables_and_licence(sdist):
    names = check_sdist.members(sdist)
    assert not check_sdist.faults(names, ROOT)
    assert {"LICENSE", "CITATION.cff", "h2gpu/__init__.py", "apps/h2krige.py", "kernels/paths.csv"} <= names
    assert any(name.startswith("kernels/tuning/") and name.endswith(".csv") for name in names)
    assert any(name.startswith("kernels/qr/") and name.endswith(".cuh") for name in names)
    assert check_sdist.main([str(sdist)]) == 0


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda names: names - {"LICENSE"}, "1 files absent, among them LICENSE"),
        (lambda names: {n for n in names if not n.endswith(".cuh")}, "absent, among them kernels/"),
        (
            lambda names: names | {"kernels/machine_code/sm_90.zip"},
            "not wanted, among them kernels/machine_code/sm_90.zip",
        ),
    ],
)
def test_what_is_wrong_is_told(sdist, change, told):
    (line,) = check_sdist.faults(change(check_sdist.members(sdist)), ROOT)
    assert told in line


def test_other_files_are_refused(tmp_path, capsys):
    (tmp_path / "a.tar.gz").write_text("no archive")
    assert check_sdist.main([str(tmp_path / "a.tar.gz")]) == 2
    assert check_sdist.main([]) == 2
    with tarfile.open(tmp_path / "empty.tar.gz", "w:gz"):
        pass
    assert check_sdist.main([str(tmp_path / "empty.tar.gz")]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert "expected a source archive" in errors[0] and "either --build" in errors[1] and "files absent" in errors[2]


def test_the_citation_has_the_package_s_version_and_licence():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {project['version']}" in lines and f"license: {project['license']}" in lines
