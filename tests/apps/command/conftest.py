"""Fixtures for the tests of the commands: points, a file of them, and their matrix."""

import h5py
import numpy as np
import pytest
from commands import FAST

from h2gpu.apps import h2compress


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(1).random((500, 2))


@pytest.fixture
def source(tmp_path, points):
    """A file of points under several names and types."""
    path = tmp_path / "places.h5"
    with h5py.File(path, "w") as file:
        file["points"] = points
        file["x"], file["y"], file["short"] = points[:, 0], points[:, 1], points[:9, 0]
        file["survey/sites"] = (1000 * points).round().astype(np.int32)
    return path


@pytest.fixture
def matrix_file(source, capsys):
    """A compressed matrix of those points."""
    path = source.with_name("matrix.h5")
    assert h2compress.main([str(source), "-o", str(path), "--length-scale", "0.5", *FAST]) == 0
    capsys.readouterr()
    return path
