"""What is handed on says the same everywhere: recipe, lowest versions, man pages, and what is tried of packages."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from places import ROOT

from h2gpu.apps.command.command import FailureError
from h2gpu.apps.packaging import check_sdist, floor, man_pages, matrix, try_packages

RECIPE = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")


def listed(key):
    """The items of a list of the recipe, such as those under `run`."""
    items = re.search(rf"^[ -]+{key}:\n((?: +- .+\n)+)", RECIPE, flags=re.MULTILINE)[1]
    return re.findall(r"^ +- (.+)$", items, re.MULTILINE)


def test_the_recipe_has_the_project_s_version_dependencies_and_commands():
    project = floor.project()
    assert f'version: "{project["version"]}"' in RECIPE and f"license: {project['license']}\n" in RECIPE
    needed = {text.replace(">=", " >=") for text in project["dependencies"]}
    assert set(listed("run")) == needed | {f"python {project['requires-python']}"}
    assert listed("entry_points") == [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert listed("script") == [f"{name} --version" for name in project["scripts"]]


def test_rattler_build_renders_the_recipe_to_what_it_says():
    rattler_build = pytest.importorskip("rattler_build")
    (variant,) = rattler_build.Stage0Recipe.from_file(ROOT / "recipe" / "recipe.yaml").render()
    made = variant.recipe.to_dict()
    assert made["requirements"]["run"] == listed("run") and made["build"]["python"]["entry_points"] == listed(
        "entry_points"
    )
    assert made["build"]["noarch"] == "python" and made["tests"][1]["script"] == listed("script")
    assert (ROOT / "recipe" / made["source"][0]["path"]).resolve() == ROOT and (ROOT / "LICENSE").is_file()


def test_the_floor_is_the_lower_bound_of_every_dependency():
    assert floor.constraints(["numpy>=2.0", "scikit-learn>=1.6"]) == ["numpy==2.0.*", "scikit-learn==1.6.*"]
    assert len(floor.constraints(floor.project()["dependencies"])) == len(floor.project()["dependencies"])
    with pytest.raises(FailureError, match="expected dependencies as name>=version, got 'numpy'"):
        floor.constraints(["scipy>=1", "numpy"])


@pytest.mark.parametrize("name", man_pages.PARSERS)
def test_a_man_page_tells_of_every_option(name):
    pytest.importorskip("argparse_manpage", reason="argparse-manpage is a development tool")
    text = man_pages.page(name)
    plain = text.replace("\\-", "-")
    options = [o for action in man_pages.PARSERS[name]()._actions for o in action.option_strings if o.startswith("--")]
    assert len(options) > 2
    assert all(option in plain for option in options if option != "--help")
    assert f".SH NAME\n{name} \\- " in text and ".SH EXIT STATUS" in text
    assert importlib.metadata.version("h2gpu") in plain
    if shutil.which("groff"):
        command = ["groff", "-Kutf8", "-man", "-wmac", "-wchar", "-Wbreak", "-Tutf8"]
        done = subprocess.run(command, input=text.encode(), capture_output=True)
        assert done.returncode == 0 and not done.stderr and name.encode() in done.stdout


def test_man_pages_and_recipe_are_packed_where_they_are_made(tmp_path):
    pytest.importorskip("argparse_manpage", reason="argparse-manpage is a development tool")
    assert man_pages.main(["-o", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h2compress.1", "h2info.1", "h2krige.1"]
    assert "recursive-include man *.1" in (ROOT / "MANIFEST.in").read_text()
    assert "recipe/recipe.yaml" in check_sdist.expected(ROOT)


def test_the_program_of_the_readme_is_found():
    program = try_packages.readme_program(ROOT / "README.md")
    assert "2_000" in program and "100_000" not in program and "Kriging(" in program
    compile(program, "README.md", "exec")


def test_a_package_that_cannot_be_used_is_told(tmp_path, capsys):
    assert try_packages.main([str(tmp_path / "none.whl")]) == 2
    assert "expected a wheel or source archive" in capsys.readouterr().err
    with pytest.raises(FailureError, match="failed with status 1: ValueError: no such thing"):
        try_packages.ran([sys.executable, "-c", "raise ValueError('no such thing')"], tmp_path)
    with tarfile.open(tmp_path / "empty-1.tar.gz", "w:gz"):
        pass
    assert try_packages.ran([sys.executable, "-c", "print(1)"], tmp_path) == "1"


def test_an_interpreter_is_found_by_its_version_and_a_missing_one_is_told(capsys):
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert matrix.interpreter(own) is not None
    assert matrix.interpreter("3.99") is None
    assert matrix.main(["--versions", "3.99"]) == 1
    assert "no interpreter of 3.99 found" in capsys.readouterr().err
