"""What a matrix will be like before it is built, from a few of its rows and small random samples of their blocks.

    interpolation error   ‖A − P A P‖² ≈ ‖(I − P) A‖² + ‖A (I − P)‖²,    a few entries of a few blocks a level
    ranks                 singular values of a few points of a cluster × a few points of its farfield, a few a level

Sampled blocks and points stand for all: their contributions are scaled by the numbers they were drawn from.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, moved_together, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.core.offsets import offsets_of, ranges, stable_order
from h2gpu.batched.core.tails import padded, rank_within
from h2gpu.clustering import SampledBlocks
from h2gpu.covariance import pairwise
from h2gpu.h2matrix import interpolation
from h2gpu.h2matrix.interpolation.samples import Samples
from h2gpu.h2matrix.planning.cuts import sums_by_level
from h2gpu.h2matrix.planning.orders import largest_order

BLOCKS_A_LEVEL = 128  # whose interpolation error is sampled, and as many where most is expected, in
POINTS_A_ROW, POINTS_A_COLUMN = 6, 3  # points of the two clusters
NEGLIGIBLE = 1e-200  # expected squared error of all blocks
USUAL_ORDER = 6  # the error is expected to fall as this power of diameter / distance
NEAR_POINTS, FAR_POINTS = 8, 1  # of the columns of each block that a row meets, for the norm: 0.2 % of it (σ)
PATHS = 6  # clusters a level whose ranks are sampled,
RANK_LEVELS, RANK_STEP = 6, 3  # on the finest levels, and on each so many above: there are few clusters
ROWS_A_CLUSTER = 96  # of a cluster whose rank is estimated: ranks beyond are not seen
COLUMNS_A_STEP = 96  # farfield points of the cluster and of its parent,
THINNED = 6  # and of each ancestor above them one in so many


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws from the rows that a traversal sampled, for one admissibility; host arrays.

    blocks   SampledBlocks of the rows
    eta      one that the traversal answers for
    x, y     functions from places in tree order, of rows and columns, to points (…, dim)
    values   covariance of broadcast point arrays
    seed     of the draws
    like     an array where the work is to be done
    """

    blocks: SampledBlocks
    eta: float
    x: object
    y: object
    values: object
    seed: int = 0
    like: object = field(default_factory=lambda: np.zeros(0))
    _errors: dict = field(default_factory=dict)

    @cached_property
    def far(self):
        """Indices of the farfield blocks by the level of their row cluster: (blocks,), and offsets (levels + 1,)."""
        far = self.blocks.far(self.eta)
        level = np.searchsorted(self.blocks.row_tree.level_offsets, self.blocks.t.take(far), side="right") - 1
        if (np.diff(level) < 0).any():  # leaves that came late
            order = np.argsort(level, kind="stable")
            far, level = far.take(order), level.take(order)
        return far, np.searchsorted(level, np.arange(self.blocks.row_tree.levels + 1))

    @cached_property
    def squared_norm(self):
        """Estimate of ‖A‖_F² from the sampled rows: some columns of each block that they meet, nearest ones most."""
        rng, blocks, square = np.random.default_rng(self.seed), self.blocks, 0.0
        rows = self.x(blocks.positions)
        for drawn, count in ((blocks.near(self.eta), NEAR_POINTS), (blocks.far(self.eta), FAR_POINTS)):
            s, x = blocks.s.take(drawn), rows.take(blocks.row.take(drawn), axis=0)
            sizes = blocks.col_tree.sizes.take(s)
            y = self.y(_spread(rng, blocks.col_tree.start.take(s), sizes, count))
            square += float(np.mean(self.values(x[:, None], y).astype(np.float64, copy=False) ** 2, axis=1) @ sizes)
        return square * blocks.row_tree.n / len(blocks.positions)

    def _expected(self):
        """How often to draw each farfield block, and the entries that it stands for.

        Each level as often as another, its blocks by their entries; and all once more by the error that is expected of
        them, as a few blocks of close and correlated clusters may make most of it.
        """
        (far, first), blocks, cols = self.far, self.blocks, self.blocks.col_tree
        t, s, number = blocks.t.take(far), blocks.s.take(far), np.diff(first)
        entries = blocks.row_tree.n / len(blocks.positions) * cols.sizes.take(s)
        level = np.repeat(np.arange(len(number)), number)
        by_level = entries / np.bincount(level, entries).take(level)
        boxes = blocks.row_tree.boxes[t], cols.boxes[s]
        values = self.values(*((side.lower + side.upper) / 2 for side in boxes))
        by_error = entries * (values.astype(np.float64, copy=False) * blocks.least.take(far) ** USUAL_ORDER) ** 2
        by_error *= np.count_nonzero(number) / by_error.sum() if by_error.sum() > NEGLIGIBLE else 0
        return BLOCKS_A_LEVEL * (by_level + by_error), entries

    @cached_property
    def _drawn(self):
        """Drawn blocks: the level of their row clusters, pairs of clusters, and the entries that each stands for."""
        rng, (far, first) = np.random.default_rng(self.seed), self.far
        often, entries = self._expected()
        after = np.cumsum(often)
        drawn = np.minimum(np.searchsorted(after, np.arange(rng.random(), after[-1])), len(after) - 1)
        level = np.searchsorted(first, drawn, side="right") - 1
        block = far.take(drawn)
        return level, self.blocks.t.take(block), self.blocks.s.take(block), (entries / often).take(drawn)

    @cached_property
    def _samples(self):
        """Samples of drawn blocks and of clusters below that interpolate again, the levels of both, ascending, and how
        many entries each sample stands for."""
        rng, rows, cols = np.random.default_rng(self.seed + 1), self.blocks.row_tree, self.blocks.col_tree
        level, t, s, stands_for = self._drawn
        places = _spread(rng, rows.start.take(t), rows.sizes.take(t), POINTS_A_ROW)
        x = self.x(places)
        y = self.y(_spread(rng, cols.start.take(s), cols.sizes.take(s), POINTS_A_COLUMN))
        block = np.arange(len(places))
        below, again, block = _descendants(rows, level, t, places[block, block % POINTS_A_ROW])
        t = np.concatenate([t, again])
        samples = Samples(self.values, rows.boxes[t], rows.sizes.take(t), x, y, block)
        return samples, (level, below), np.concatenate([stands_for, stands_for.take(block)])

    def squared_interpolation_errors(self, order):
        """Estimate of ‖(I − P) A‖_F² for each level of the row tree, (levels,).

        P interpolates in the level's clusters with the given order: in the rows of their farfield blocks, and once more
        of those of clusters above.
        """
        levels, doors = self.blocks.row_tree.levels, interpolation.twin(self.like)
        if not len(self.far[0]):
            return np.zeros(levels)
        if order not in self._errors:
            samples, (level, below), stands_for = self._samples
            orders = doors.orders_together(samples, order, largest_order(samples.x.shape[-1]))
            squares = to_host(doors.mean_squares(samples, orders))
            squares *= stands_for
            own, again = squares[:, : len(level)], squares[:, len(level) :]
            self._errors.update(zip(orders, sums_by_level(own, level, levels) + sums_by_level(again, below, levels)))
        return self._errors[order]

    def ranks(self, threshold):
        """For each level of the row tree, the mean number of singular values that stay above the threshold.

        threshold   what a cluster may discard, in the Frobenius norm
        """
        levels, which, spectra = self._sampled_clusters
        ranks, often = spectra.ranks(threshold), np.bincount(which, minlength=len(levels))
        means, known = np.bincount(which, ranks, minlength=len(levels)) / np.maximum(often, 1), often > 0
        return np.interp(np.arange(self.blocks.row_tree.levels), levels[known], means[known])

    def begin(self):
        """Enqueue the work for `ranks`: a device does it while the host draws the samples of errors."""
        self._sampled_clusters  # noqa: B018

    @cached_property
    def _sampled_clusters(self):
        """Levels, the index of each part's among them, and the parts' _Spectra: a device is not waited for."""
        tree, rng = self.blocks.row_tree, np.random.default_rng(self.seed)
        rows = _evenly(len(self.blocks.positions), PATHS)
        levels = np.arange(tree.levels)[::-1]
        levels = np.concatenate([levels[:RANK_LEVELS], levels[RANK_LEVELS::RANK_STEP]])[::-1]
        path = tree.path(self.blocks.positions[rows])[levels].T
        row, which = np.nonzero(path >= 0)
        points, y, scale = _Columns(rng, self, rows).down_to(row, levels[which])
        return levels, which, self._spectra(path[row, which], points, y, scale)

    def _spectra(self, t, points, y, scale):
        """The _Spectra of clusters t (parts,) against so many points each of y (all points, dim), with their scales."""
        tree, xp = self.blocks.row_tree, array_module(self.like)
        size = tree.sizes.take(t)
        count = np.minimum(size, ROWS_A_CLUSTER)
        size_of, count_of = np.repeat(size, count), np.repeat(count, count)
        x = self.x(np.repeat(tree.start.take(t), count) + ranges(np.zeros_like(count), count) * size_of // count_of)
        sides = zip(moved_together(xp, y, x), (points, count))
        Y, X = (MatrixBatch.from_rows(z, offsets_of(number)[:-1], number) for z, number in sides)
        return _Spectra.of(_scaled(pairwise(self.values, Y, X).astype(np.float64), scale), size)


def _scaled(A, scale):
    """Every row of a packed MatrixBatch times its scale, (all rows,): alike rows behind one another are one matrix."""
    if not len(scale):
        return A
    owner = np.repeat(np.arange(len(A)), A.rows)
    first = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(scale, prepend=np.inf) != 0))
    width, rows = A.columns.take(owner), np.diff(np.append(first, len(owner)))
    runs = MatrixBatch(A.buffer, offsets_of(width).take(first), rows, width.take(first))
    scaled = batched.axpy(runs, runs, scale.take(first) - 1)
    return scaled.stacked(np.bincount(owner.take(first), minlength=len(A)))


@dataclass(frozen=True, eq=False)
class _Spectra:
    """Singular values of some rows of clusters against points of their farfields, each of which stands for many.

    points, rows   (parts,) of the matrices
    sizes          (parts,) points of the clusters
    some           the parts that have points
    sigma, info    MatrixBatch of their singular values, and what became of them, as `svd` returns it
    """

    points: np.ndarray
    rows: np.ndarray
    sizes: np.ndarray
    some: np.ndarray
    sigma: MatrixBatch
    info: object

    @classmethod
    def of(cls, A, sizes):
        """Of a MatrixBatch of the transposed matrices, points × rows: by their triangles, as all of these fit into the
        shared memory of a GPU; of 384 × 96 its routine made 128 launches."""
        some = np.flatnonzero(A.rows)
        triangles = batched.qr(A if len(some) == len(A) else A[some], mode="r")
        return cls(A.rows, A.columns, sizes, some, *batched.svd(triangles, "none", return_info=True))

    def ranks(self, threshold):
        """The ranks of the clusters, (parts,), where each may discard so much."""
        ranks, some = np.zeros(len(self.points), np.int64), self.some
        if not len(some):
            return ranks
        check(self.info)
        sigma = padded(self.sigma.to(np))
        points, rows, size = (part[some, None] for part in (self.points, self.rows, self.sizes))
        k = np.arange(sigma.shape[1])
        seen = 1 - k / points  # of what is discarded: the rank's vectors fit the sample,
        seen = np.maximum(seen * np.where(rows < size, 1 - k / rows, 1), 0)  # and not what was not drawn
        ranks[some] = rank_within(sigma, threshold * np.sqrt(seen * rows / size))
        return ranks


class _Columns:
    """Points of the farfields that the clusters of sampled rows meet, row after row and level after level."""

    def __init__(self, rng, sampler, rows):
        blocks, (far, first) = sampler.blocks, sampler.far
        self.levels, number = len(first) - 1, np.full(len(blocks.positions), -1)
        number[rows] = np.arange(len(rows))
        row, level = number.take(blocks.row.take(far)), np.repeat(np.arange(self.levels), np.diff(first))
        mine = np.flatnonzero(row >= 0)
        cell = (row * self.levels + level).take(mine)
        order = stable_order(cell)
        s, cell = blocks.s.take(far.take(mine.take(order))), cell.take(order)
        start, before = blocks.col_tree.start.take(s), offsets_of(blocks.col_tree.sizes.take(s))
        ends = before.take(np.searchsorted(cell, np.arange(len(rows) * self.levels + 1)))
        total = np.diff(ends)
        count = np.minimum(total, COLUMNS_A_STEP)
        places = _spread_each(rng, ends[:-1], total, count)
        block = np.searchsorted(before, places, side="right") - 1
        self.first, self.y = offsets_of(count), sampler.y(start.take(block) + places - before.take(block))
        self.scale = np.repeat(np.sqrt(total / np.maximum(count, 1)), count)

    def down_to(self, rows, levels):
        """Of pairs of a row and a level l, the points of its levels 0 to l: how many, (pairs,), the points, and
        √(points there / points drawn), behind one another."""
        cell = rows * self.levels
        begin, whole, end = (self.first.take(cell + l) for l in (0, np.maximum(0, levels - 1), levels + 1))
        thinned, count = -(-(whole - begin) // THINNED), end - whole
        step = np.tile([THINNED, 1], len(cell))
        starts, counts = np.stack([begin, whole], axis=1).ravel(), np.stack([thinned, count], axis=1).ravel()
        index = np.repeat(starts, counts) + ranges(np.zeros_like(counts), counts) * np.repeat(step, counts)
        scale = self.scale.take(index) * np.repeat(np.sqrt(step), counts)
        return thinned + count, self.y.take(index, axis=0), scale


def _descendants(tree, level, t, places):
    """The clusters below some t (blocks,), whose levels ascend, that hold one place of each.

    Returns their levels, ascending, their numbers, and of which block each is.
    """
    now, found = t.copy(), []
    for count in np.searchsorted(level, np.arange(1, tree.levels)).tolist():  # of the blocks above each level
        child = tree.first_child.take(now[:count])
        block = np.flatnonzero(child >= 0)
        child = child.take(block)
        now[block] = child = child + (places.take(block) >= tree.stop.take(child))
        found.append((child, block))
    counts = [len(child) for child, _ in found]
    whole = [np.concatenate(part) for part in zip(*found)] or [np.zeros(0, np.int64)] * 2
    return np.repeat(np.arange(1, tree.levels), counts), *whole


@lru_cache(maxsize=16)
def _evenly(count, most):
    """At most so many of `count` places, evenly."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))


def _spread(rng, start, size, count):
    """Random places of ranges, one in each of `count` equal parts: (ranges, count)."""
    within = rng.random((len(start), count))
    within += np.arange(count)
    within *= size[:, None] / count
    places = within.astype(np.int64)
    np.minimum(places, size[:, None] - 1, out=places)
    places += start[:, None]
    return places


def _spread_each(rng, start, size, count):
    """The same for a number of parts of each range; no place twice where there are as many parts as places."""
    size, part = np.repeat(size, count), ranges(np.zeros_like(count), count)
    parts = np.repeat(count, count)
    places = ((part + rng.random(len(part))) * (size / np.maximum(parts, 1))).astype(np.int64)
    return np.repeat(start, count) + np.where(parts == size, part, np.minimum(places, size - 1))
