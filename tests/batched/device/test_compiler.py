"""Sources of kernels: what a compiled instance is remembered by."""

import shutil

import pytest

from h2gpu.batched.device import compiler


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the sources that may be changed."""
    shutil.copytree(compiler.source_folder(), tmp_path / "kernels")
    monkeypatch.setattr(compiler, "source_folder", lambda: tmp_path / "kernels")
    yield tmp_path / "kernels"
    forget()


def forget():
    compiler.sources.cache_clear()
    compiler.source_hash.cache_clear()


def kernels():
    """The headers of kernels: those at the top of their rooms."""
    folder = compiler.source_folder()
    return [path.relative_to(folder).as_posix() for path in folder.glob("*/*.cuh")]


def hashes():
    forget()
    return {header: compiler.source_hash(header) for header in kernels()}


def test_a_change_is_seen_by_what_includes_it_alone(copied):
    before = hashes()
    assert len(set(before.values())) == len(before)
    changed = copied / "common" / "block" / "cholesky.cuh"
    changed.write_text(changed.read_text() + "// another\n")
    found = {name for name, value in hashes().items() if value != before[name]}
    including = {name for name in before if "common/block/cholesky.cuh" in compiler.sources(name)}
    assert found == including and 0 < len(found) < len(before)


def test_sources_are_closed_under_inclusion():
    for header in kernels():
        found = compiler.sources(header)
        lines = "".join(found.values()).splitlines()
        assert {line.split('"')[1] for line in lines if line.startswith('#include "')} <= set(found)


def test_sources_of_a_checkout_that_is_not_installed_are_found(monkeypatch):
    """kernels/ beside the package."""
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    assert compiler.source_folder.__wrapped__().joinpath("products", "gemm.cuh").is_file()
