"""Maps: every pixel shows the nearest place, and nothing where none is near."""

import numpy as np
import pytest

from h2gpu.apps.command import map_plot
from h2gpu.apps.command.map_plot import Panel, draw, extent_of, outcome, raster


def grid(rows, columns):
    """Points of a grid of unit spacing, first row at the top, and their extent."""
    x, y = np.meshgrid(np.arange(columns) + 0.5, rows - np.arange(rows) - 0.5)
    return np.column_stack([x.ravel(), y.ravel()]), ((0, columns), (0, rows))


def test_a_grid_looks_like_itself():
    points, extent = grid(7, 11)
    values = np.random.default_rng(0).random(77)
    np.testing.assert_array_equal(raster(points, values, extent, (7, 11)), values.reshape(7, 11))
    finer = raster(points, values, extent, (28, 44))
    np.testing.assert_array_equal(finer, np.kron(values.reshape(7, 11), np.ones((4, 4))))


def test_nothing_is_shown_where_no_place_is_near():
    points, extent = grid(20, 20)
    hidden = np.hypot(*(points - 10).T) < 5
    image = raster(points[~hidden], np.ones((~hidden).sum()), extent, (20, 20))
    far = np.hypot(*(points - 10).T) < 3.5
    assert np.isnan(image.ravel()[far]).all()
    assert not np.isnan(image.ravel()[~hidden]).any()


def test_scattered_sites_leave_few_holes():
    points = np.random.default_rng(0).random((2000, 2))
    image = raster(points, points[:, 0], ((0, 1), (0, 1)), (50, 50))
    assert np.isnan(image).mean() < 0.1
    x = np.broadcast_to((np.arange(50) + 0.5) / 50, (50, 50))
    assert np.nanmax(np.abs(image - x)) < 0.1


def test_colours_span_what_is_usual_and_differences_are_around_zero():
    values = np.append(np.linspace(0, 1, 1001), 1e6)
    low, high = Panel("v", None, values).limits
    assert 0 <= low < 0.02 and 0.98 < high < 1.01
    low, high = Panel("d", None, values - 0.2, "difference").limits
    assert low == -high
    assert Panel("constant", None, np.ones(5)).limits == (0, 2)
    first = Panel("a", None, values)
    assert Panel("b", None, 7 * values, like=first).limits == first.limits


@pytest.mark.parametrize("n", [1, 2, 300])
def test_pictures_of_few_and_collinear_sites(n, tmp_path):
    pytest.importorskip("matplotlib")
    x = np.linspace(0, 1, n)
    points = np.column_stack([x, x * 0 + 3])
    panels = outcome(points, x, points, x, x * 0 + 0.1, x)
    assert [panel.title for panel in panels] == ["observed", "predicted", "standard deviation", "predicted − true"]
    for format, head in (("png", b"\x89PNG"), ("svg", b"<?xml"))[: 2 if n == 300 else 1]:
        draw(panels, tmp_path / "picture", "title", "subtitle", format)
        assert (tmp_path / "picture").read_bytes().startswith(head)


def test_three_panels_and_extents(tmp_path):
    pytest.importorskip("matplotlib")
    points, _ = grid(4, 30)
    draw(outcome(points, points[:, 0], points, points[:, 1], points[:, 1])[:3], tmp_path / "p.png", "no truth")
    (left, right), (bottom, top) = extent_of([points, points + 5])
    assert left < 0.5 and right > 34.5 and bottom < 0.5 and top > 8.5


def test_a_picture_needs_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr(map_plot, "require_matplotlib", lambda: (_ for _ in ()).throw(ImportError("install it")))
    with pytest.raises(ImportError, match="install it"):
        draw([], tmp_path / "p.png", "")
