"""Small data sets beside other packages: the same observations, the same model."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from reference import points_of

from h2gpu.apps.studies.classics import compare, data, packages
from h2gpu.covariance import Exponential
from h2gpu.statistics import simulate


@pytest.fixture(scope="module")
def split():
    X = points_of("uniform", 160, 2)
    y = 3 + simulate(Exponential(2.0, 0.3), X, 1, 0, nugget=0.3)[:, 0]
    return data.Split(X[:120], y[:120], X[120:], y[120:])


def test_every_observation_is_tested_once(split):
    parts = data.folds(split.sites, split.values)
    assert len(parts) == data.FOLDS
    assert sorted(np.concatenate([part.truth for part in parts])) == sorted(split.values)
    for part in parts:
        assert sorted([*part.values, *part.truth]) == sorted(split.values)


def test_likelihoods_of_one_model_have_one_maximum(split):
    """Ours is at least as likely as any other package's parameters; scikit-learn fixes the mean, and is close."""
    rows = {row["package"]: row for row in compare.study({"simulated": [split]}, packages.available())}
    assert rows.keys() == packages.available().keys() >= {"h2gpu", "scikit-learn", "GSTools"}  # PyKrige where installed
    ours = rows["h2gpu"]
    assert all(row["log-likelihood"] <= ours["log-likelihood"] + 1e-4 for row in rows.values())
    assert rows["scikit-learn"]["length"] == pytest.approx(ours["length"], rel=0.5)
    assert rows["scikit-learn"]["rmse"] == pytest.approx(ours["rmse"], rel=0.05)
    for row in rows.values():
        assert 0 < row["rmse"] < np.std(split.truth) and row["coverage"] > 0.8


@pytest.mark.parametrize("parameters", [(0.0, 1.0, 0.1), (1.0, -1.0, 0.1), (1.0, 1.0, -0.1)])
def test_what_is_no_covariance_has_no_likelihood(split, parameters):
    assert compare.exact(split, *parameters) == -np.inf


def test_a_missing_folder_is_one_line(capsys):
    assert compare.main(["--data", "/nowhere"]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "expected a folder with meuse.rda" in told[0]


def test_packages_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name in ("gpboost", "pykrige") else name)
    assert list(packages.available()) == ["h2gpu", "scikit-learn", "GSTools"]
    assert packages.told_missing() == "not installed, left out: PyKrige, GPBoost; pip install 'h2gpu[studies]'"
    monkeypatch.undo()
    if len(packages.available()) == 5:
        assert packages.told_missing() is None


def test_houses_are_read_with_the_logarithms_of_their_prices(tmp_path):
    sold = [{"properties": {"X": 9.0, "Y": 5.0, "PRICE": 47.0}}, {"properties": {"X": 7.0, "Y": 4.0, "PRICE": 1.0}}]
    (tmp_path / "b.geojson").write_text(json.dumps({"features": sold}))
    sites, values = data.houses(tmp_path / "b.geojson")
    assert sites.tolist() == [[9.0, 5.0], [7.0, 4.0]] and values.tolist() == [np.log(47.0), 0.0]


def test_nodes_of_the_lake_go_with_their_values():
    """Rows of a grid begin in the north; a node that was sampled is no target."""
    grid = SimpleNamespace(**{"cells.dim": np.array([3, 2])})
    exhaustive = SimpleNamespace(grid=grid, data={"V": np.array([21.0, 22.0, 23.0, 11.0, 12.0, 13.0])})
    split = data.lake(SimpleNamespace(coords=[[2, 1], [3, 2]], data={"V": [12.0, 23.0]}), exhaustive)
    assert len(split.truth) == 4 and split.sites.tolist() == [[2, 1], [3, 2]]
    np.testing.assert_array_equal(split.truth, split.targets @ [1, 10])
