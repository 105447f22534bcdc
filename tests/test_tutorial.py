"""The tutorial runs as it stands, and what it promises is so."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from h2gpu.apps import h2krige

ROOT = Path(__file__).parent.parent
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that holds data/, as the tutorial asks for."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "data").symlink_to(ROOT / "data")
    return folder


@pytest.fixture(scope="module")
def names(folder):
    """What the Python of the tutorial leaves: its names."""
    pytest.importorskip("matplotlib")
    found, blocks = {}, re.findall(r"```python\n(.*?)```", TUTORIAL, flags=re.DOTALL)
    assert len(blocks) > 4
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile("\n".join(blocks), "docs/tutorial.md", "exec"), found)
    return found


def test_the_uncertainties_are_right(names):
    told = names["told"]
    assert 0.9 < told["coverage"] < 0.98
    assert told["crps"] < told["mae"] < told["rmse"] < 0.3 * names["elevation"].std()


def test_the_map_tells_where_nothing_is_known(names, folder):
    east, north = names["grid"][..., 0], names["grid"][..., 1]
    distance = np.hypot(east - 4000, north + 2000)
    assert names["std"][distance < 1000].min() > 3 * np.median(names["std"][distance > 3000])
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")


def test_simulations_are_rougher_than_the_mean(names):
    climbed = np.maximum(np.diff(names["paths"], axis=0), 0).sum(axis=0)
    assert names["paths"].shape == (81, 3)
    assert climbed.min() > np.maximum(np.diff(names["kriging"].predict(names["line"])), 0).sum()


def test_the_command_predicts_the_same(names, folder, monkeypatch, capsys):
    (line,) = [line for line in TUTORIAL.splitlines() if line.startswith("h2krige ")]
    monkeypatch.chdir(folder)
    assert h2krige.main(line.split()[1:]) == 0
    assert "coverage" in capsys.readouterr().out
    mean = names["kriging"].predict(names["points"][names["held_out"]])
    with h5py.File("predicted.h5") as file:
        assert np.abs(file["mean"][:] - mean).max() < 0.02 * names["elevation"].std()
        assert file.attrs["rmse"] == pytest.approx(names["told"]["rmse"], rel=0.01)
    assert Path("predicted.png").read_bytes().startswith(b"\x89PNG")
