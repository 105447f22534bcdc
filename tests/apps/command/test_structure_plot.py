"""The picture shows every block, in the colour of its kind."""

import numpy as np
import pytest

import h2gpu
from h2gpu.apps.command import structure_plot
from h2gpu.covariance import Exponential

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Pictures of fewer pixels."""
    monkeypatch.setattr(structure_plot, "DPI", 40)


@pytest.fixture
def points():
    return np.random.default_rng(1).random((500, 2))


def test_the_picture_shows_every_block(points):
    A = h2gpu.compress(h2gpu.build(points, Exponential(1.0, 0.5), leaf_size=10, order=4), 1e-4)
    ranks, whole = structure_plot.Ranks.of(A), structure_plot.Window.whole(A)
    image = structure_plot.painted(A, ranks, whole, 500)  # one pixel a point
    assert (image > 0).mean() > 0.9  # all but the white edges
    np.testing.assert_array_equal(image > 0, (image > 0).T)
    sizes = A.row_basis.tree.sizes
    dense = sum(sizes[t] * sizes[s] * (1 + (t != s)) for t, s in zip(A.nearfield.rows, A.nearfield.columns))
    assert (image == 1).sum() == dense  # leaves are too small for edges
    assert image.max() <= 1 + structure_plot.COLOURS and len(np.unique(image)) > 3


def test_pictures_of_other_matrices(points, tmp_path):
    rectangular = h2gpu.compress(h2gpu.build(points, Exponential(), col_points=points[:90], leaf_size=4, order=3), 1e-3)
    dense = h2gpu.build(points[:1], Exponential())
    for A, kind in ((rectangular, "svg"), (dense, "png"), (rectangular, "pdf")):
        structure_plot.draw(A, tmp_path / f"picture.{kind}", format=kind)
        assert (tmp_path / f"picture.{kind}").stat().st_size > 1000
