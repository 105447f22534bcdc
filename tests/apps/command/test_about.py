"""Every command tells its version, and writes a script that completes its options."""

import sys
import tomllib

import pytest
from places import ROOT

from h2gpu.apps import h2compress, h2info, h2krige

MAINS = {"h2compress": h2compress.main, "h2info": h2info.main, "h2krige": h2krige.main}


@pytest.mark.parametrize("name", MAINS)
def test_version(name, capsys):
    expected = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    with pytest.raises(SystemExit) as end:
        MAINS[name](["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"{name} {expected}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
@pytest.mark.parametrize(
    "name, option", [("h2compress", "--rtol"), ("h2info", "--check"), ("h2krige", "--fit-smoothness")]
)
def test_completion_knows_the_options(name, option, shell, capsys):
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit) as end:
        MAINS[name](["--print-completion", shell])
    script = capsys.readouterr().out
    assert end.value.code == 0 and name in script and option.lstrip("-") in script


def test_files_are_completed(capsys):
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit):
        h2info.main(["--print-completion", "bash"])
    assert "pos_0_COMPGEN=_shtab_compgen_files" in capsys.readouterr().out


def test_without_shtab_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert h2info.main(["--print-completion", "bash"]) == 1
    assert (
        capsys.readouterr().err == 'h2info: error: --print-completion: needs shtab: pip install "h2gpu[completion]"\n'
    )
