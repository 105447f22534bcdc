"""Blocks as weighted places: the mean of the field over a block is a sum over its places.

    Z(v) = 1/|v| ∫_v Z(x) dx ≈ Σ_i a_i Z(x_i),     Σ_i a_i = 1

    cells      Gauss–Legendre nodes, exact for polynomials of degree 2 · points − 1
    areas      the points of a square grid that lie within
    places     the mean over just these, equal weights

Variation below the sampling distance (a Nugget of the covariance) averages out over cells and areas; it does not over
places. Reference: Journel & Huijbregts (1978), Mining geostatistics, section V.A; cells as in gstat.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.checks import checked_integer
from h2gpu.statistics.tables import crs_of
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike

MOST_POINTS = 1 << 24  # of all blocks together


@dataclass(frozen=True, eq=False)
class Blocks:
    """Weighted places, block after block.

    points    (total, features) rows of X
    weights   (total,) a_i, their sum over a block is 1, on the host
    start     (blocks + 1,) rows start[b] … start[b + 1] − 1 are block b's
    areal     whether blocks are areas, over which variation below the sampling distance averages out
    crs       coordinate reference system, None for unknown

    Raises nothing: made by `cells`, `areas` and `places`, which check.
    Source: Journel & Huijbregts (1978), section V.A.

    >>> from h2gpu.statistics import cells
    >>> blocks = cells([[0.0, 0.0], [2.0, 0.0]], size=2.0, points=2)
    >>> len(blocks), blocks.start.tolist(), float(blocks.weights[:4].sum().round(12))
    (2, [0, 4, 8], 1.0)
    """

    points: object
    weights: np.ndarray
    start: np.ndarray
    areal: bool = False
    crs: object = None

    def __len__(self) -> int:
        return len(self.start) - 1

    def means(self, values: Array) -> Array:
        """Weighted sums of values (total, count) by block: (blocks, count)."""
        xp = array_module(values)
        return xp.add.reduceat(values * xp.asarray(self.weights)[:, None], xp.asarray(self.start[:-1]), axis=0)

    def some(self, first: int, stop: int) -> "Blocks":
        """The blocks first … stop − 1."""
        rows = slice(self.start[first], self.start[stop])
        start = self.start[first : stop + 1] - self.start[first]
        return replace(self, points=self.points[rows], weights=self.weights[rows], start=start)

    def moved(self, points: Array) -> "Blocks":
        """The same with points of another form."""
        return replace(self, points=points)


def cells(centres: ArrayLike, size: ArrayLike, points: int = 4) -> "Blocks":
    """Blocks that are rectangles or boxes, such as the pixels of a grid, for `predict_blocks` of kriging and cokriging.

    centres   (blocks, dim)
    size      of all cells, in units of the coordinates: one length, or one a coordinate
    points    a coordinate: points**dim Gauss–Legendre nodes stand for a cell

    Raises ValueError for other arguments.
    Source: Journel & Huijbregts (1978), section V.A; nodes of NumPy's `leggauss`.

    >>> cells([[0.0, 0.0], [2.0, 0.0]], size=2.0, points=2).points.round(3)[:2].tolist()
    [[-0.577, -0.577], [-0.577, 0.577]]
    """
    xp = array_module(centres)
    x = xp.asarray(centres, dtype=np.float64)
    if x.ndim != 2 or not x.size or not bool(xp.isfinite(x).all()):
        raise ValueError(f"centres: expected finite numbers of shape (blocks, dim), got shape {x.shape}")
    dim = x.shape[1]
    sides = np.asarray(size, np.float64)
    if sides.shape not in ((), (dim,)) or not (np.isfinite(sides) & (sides > 0)).all():
        raise ValueError(f"size: expected a positive length, or {dim} of them, got {brief(size)}")
    nodes, weights = np.polynomial.legendre.leggauss(checked_integer("points", points, 1, 64))
    check_total(len(x) * len(nodes) ** dim)
    offsets = np.stack(np.meshgrid(*[nodes] * dim, indexing="ij"), axis=-1).reshape(-1, dim) * sides / 2
    shares = np.prod(np.stack(np.meshgrid(*[weights / 2] * dim, indexing="ij")), axis=0).ravel()
    every = (x[:, None] + xp.asarray(offsets)[None]).reshape(-1, dim)
    return Blocks(every, np.tile(shares, len(x)), np.arange(len(x) + 1) * len(shares), areal=True)


def areas(polygons: Any, points: int = 100) -> "Blocks":
    """Blocks that are areas in the plane, for `predict_blocks` of kriging and cokriging.

    polygons   a GeoSeries, a GeoDataFrame, or a list of shapely's polygons and multipolygons
    points     of the square grid within each of them, about: small and narrow ones get at least one

    Raises ValueError for empty polygons and what is none, ImportError without shapely (the extra `files`).
    Source: Journel & Huijbregts (1978), section V.A.

    >>> import shapely
    >>> len(areas([shapely.box(0, 0, 2, 1)], points=50))
    1
    """
    try:
        import shapely
    except ImportError:
        raise ImportError('areas: needs shapely: pip install "h2gpu[files]"') from None
    wanted = checked_integer("points", points, 1, MOST_POINTS)
    shapes = np.asarray(getattr(polygons, "geometry", polygons), dtype=object).ravel()
    fit = shapely.is_valid_input(shapes) & ~shapely.is_missing(shapes)
    for i in np.flatnonzero(~fit)[:1]:
        raise ValueError(f"polygons: expected shapely's polygons, got {brief(shapes[i], 60)} at {i}")
    if not len(shapes) or not (shapely.area(shapes) > 0).all():
        raise ValueError("polygons: expected one or more areas above 0, got none, or empty ones, points or lines")
    check_total(len(shapes) * wanted)
    found = [_within(shapely, shape, wanted) for shape in shapes]
    return replace(_equal(np, found), areal=True, crs=crs_of(polygons))


def _within(shapely, shape, wanted):
    """(m, 2) points of a square grid, centred in the box of the polygon, that lie in it; one at least."""
    low, high = np.reshape(shapely.bounds(shape), (2, 2))
    for share in (1.0, 0.25):  # a narrow polygon may fall between the points of a coarse grid
        count = np.ceil((high - low) / (share * shape.area / wanted) ** 0.5).astype(int)
        count = np.minimum(count, 64 * wanted)
        axes = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b, n in zip(low, high, count)]
        if count.prod() > MOST_POINTS:
            break
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        inside = grid[shapely.contains_xy(shape, *grid.T)]
        if len(inside) >= wanted / 2:
            return inside
    return np.reshape(shapely.get_coordinates(shapely.point_on_surface(shape)), (1, 2))


def blocks_of(blocks, checked):
    """The Blocks that a user means, their points checked.

    blocks    Blocks of `cells` or `areas`, or a sequence of tables or (m_i, features) arrays: the places of each block
    checked   function from a table to (m, features) float64, which raises ValueError

    Raises ValueError.
    """
    if isinstance(blocks, Blocks):
        return blocks.moved(checked(blocks.points))
    if not isinstance(blocks, (list, tuple)) or not blocks:
        raise ValueError(
            "blocks: expected a list of (m, features) arrays, one a block, or what cells() or areas() return, got "
            f"{type(blocks).__name__}"
        )
    parts = [checked(block) for block in blocks]
    check_total(sum(map(len, parts)))
    return _equal(array_module(parts[0]), parts)


def _equal(xp, parts):
    """Blocks of equal weights from the points of each."""
    sizes = np.array([len(part) for part in parts])
    return Blocks(xp.concatenate(parts), np.repeat(1 / sizes, sizes), np.concatenate([[0], np.cumsum(sizes)]))


def check_total(total):
    """ValueError for more points than MOST_POINTS."""
    if total > MOST_POINTS:
        raise ValueError(f"blocks: expected at most {MOST_POINTS:,} points of all blocks together, got {total:,}")
