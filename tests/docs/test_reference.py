"""The reference holds every public name, and each says what it raises, whence it comes, and shows an example."""

import inspect
import re
from pathlib import Path

import api_reference
import pytest

NAMES = [(module, name) for module in api_reference.MODULES for name in api_reference.public(module)]
ERRORS = re.compile(r"\b[Rr]aises?\b|\w+Error\b")
SOURCE = re.compile(r"\bSource: (.+?)(?:\n\s*\n|\Z)", re.DOTALL)
REFERENCES = (Path(__file__).parents[2] / "docs" / "references.md").read_text(encoding="utf-8")
WORKS = re.findall(r"^- \*\*(.+?)\*\* ", REFERENCES, re.MULTILINE)


def said(value):
    """The docstring of a function; of a class that of its methods too."""
    methods = api_reference.methods(value) if inspect.isclass(value) else []
    return "\n".join([inspect.getdoc(value), *(inspect.getdoc(getattr(value, name)) for name in methods)])


def sources(value):
    """What a name's docstring says after "Source:", piece by piece."""
    match = SOURCE.search(inspect.getdoc(value))
    return " ".join(match[1].split()).removesuffix(".").split("; ") if match else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    api_reference.write(folder)
    return folder


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_has_a_page_an_example_and_a_word_on_errors(folder, module, name):
    value = api_reference.public(module)[name]
    page = (folder / (api_reference.page_name(module, name, value) + ".rst")).read_text(encoding="utf-8")
    assert f":: {module}.{name}\n" in page
    assert ">>> " in inspect.getdoc(value), f"{module}.{name}: its docstring needs an example, as a doctest"
    assert ERRORS.search(said(value)), f"{module}.{name}: its docstring should say what it raises"


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_tells_its_source_which_the_page_of_references_has(module, name):
    """Each piece names a work of docs/references.md, and no year in brackets is of another work."""
    told = sources(api_reference.public(module)[name])
    assert told, f"{module}.{name}: its docstring needs a source, such as 'Source: Börm (2010), chapter 6.'"
    for piece in told:
        works = [work for work in WORKS if re.search("(?<!& )" + re.escape(work), piece)]
        assert works, f"{module}.{name}: {piece!r} names no work of docs/references.md"
        assert len(re.findall(r"\(\d{4}\)", piece)) == sum("(" in work for work in works), piece


def test_references_are_sorted_by_name_each_there_once_and_cited():
    cited = " ".join(piece for module, name in NAMES for piece in sources(api_reference.public(module)[name]))
    papers = [work for work in WORKS if re.search(r"\(\d{4}\)$", work)]
    assert len(papers) > 50 and len(set(WORKS)) == len(WORKS)
    assert [work for work in WORKS if work not in cited] == []
    authors = [work.partition(",")[0].partition(" ")[0] for work in papers]
    assert [name[0] for name in authors] == sorted(name[0] for name in authors)


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


def test_a_page_has_the_equation_and_the_reference_at_the_head_of_its_file(folder):
    page = (folder / "h2gpu.solvers.vecchia.rst").read_text(encoding="utf-8")
    assert "At the head of its file, h2gpu.solvers.vecchia" in page and "Schäfer, Katzfuss & Owhadi (2021)" in page
    assert "At the head" not in (folder / "h2gpu.solvers.rst").read_text(encoding="utf-8")


def test_there_are_twelve_examples_or_more_each_with_title_and_picture():
    examples = sorted((Path(__file__).parents[2] / "docs" / "gallery").glob("plot_*.py"))
    assert len(examples) >= 12
    for example in examples:
        text = example.read_text(encoding="utf-8")
        assert re.match(r'"""\n[^\n]+\n=+\n\n', text) and "plt.show()" in text, example.name
