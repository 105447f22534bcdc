"""The reference holds every public name."""

import inspect

import api_reference
import pytest

NAMES = [(module, name) for module in api_reference.MODULES for name in api_reference.public(module)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    api_reference.write(folder)
    return folder


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_has_a_page(folder, module, name):
    value = api_reference.public(module)[name]
    page = (folder / (api_reference.page_name(module, name, value) + ".rst")).read_text(encoding="utf-8")
    assert f":: {module}.{name}\n" in page


def test_names_of_all_public_modules_are_there(folder):
    import h2gpu
    from h2gpu import batched, covariance, distributed, solvers, statistics

    for module in (h2gpu, batched, covariance, solvers, statistics, distributed):
        index = (folder / f"{module.__name__}.rst").read_text(encoding="utf-8")
        names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
        assert len(names) > 5
        assert all(f"`~{module.__name__}.{name}`" in index for name in names)


def test_old_pages_go(folder, tmp_path):
    (tmp_path / "h2gpu.gone.rst").write_text("old")
    api_reference.save(tmp_path, {"new.rst": "text"})
    assert [path.name for path in tmp_path.iterdir()] == ["new.rst"]
