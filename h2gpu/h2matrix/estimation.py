"""What a matrix will be like before it is built, from small random samples of its blocks.

    interpolation error   Σ_levels blocks · mean ‖A_ts − U_t S_ts V_sᵀ‖²,    a few points of a few blocks a level
    ranks                 singular values of a few points of a cluster × a few points of its farfield, a few a level

Sampled points stand for all: their contributions are scaled by the numbers they were drawn from.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.clustering import BlockTree
from h2gpu.h2matrix import chebyshev

BLOCKS_A_LEVEL = 48
FEWEST_BLOCKS = 12  # a level, where the order is so high that their couplings outgrow
COUPLING_ENTRIES = 1 << 20
POINTS_A_CLUSTER = 12  # of a sampled block
CLUSTERS_A_LEVEL = 8
ROWS_A_CLUSTER = 96  # of a cluster whose rank is estimated: ranks beyond are not seen
COLUMNS_A_STEP = 96  # farfield points of the cluster, and of each ancestor


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws from the blocks of one block tree; host arrays in tree order.

    blocks   BlockTree
    x, y     (n, dim), (m, dim) points of rows and columns, in tree order
    values   covariance of broadcast point arrays
    seed     of the draws
    """

    blocks: object
    x: np.ndarray
    y: np.ndarray
    values: object
    seed: int = 0

    def of_columns(self):
        """The same draws for the transposed matrix."""
        blocks = self.blocks
        transposed = BlockTree(blocks.col_tree, blocks.row_tree, blocks.far[::-1], blocks.near[::-1])
        return Sampler(transposed, self.y, self.x, self.values, self.seed)

    @cached_property
    def far_by_level(self):
        """Farfield blocks by the level of their row cluster: a list of index arrays."""
        offsets, t = self.blocks.row_tree.level_offsets, self.blocks.far[0]
        order = np.argsort(t, kind="stable")
        return [part for part in np.split(order, np.searchsorted(t[order], offsets[1:-1])) if len(part)]

    def squared_interpolation_error(self, order):
        """Estimate of the squared Frobenius error of interpolation with the given order, of all farfield blocks."""
        rng, (t, s) = np.random.default_rng(self.seed), self.blocks.far
        rows, cols = self.blocks.row_tree, self.blocks.col_tree
        nodes = order ** self.x.shape[1]
        count = int(np.clip(COUPLING_ENTRIES // nodes**2, FEWEST_BLOCKS, BLOCKS_A_LEVEL))
        total = 0.0
        for pairs in self.far_by_level:
            drawn = rng.choice(pairs, count) if len(pairs) > count else pairs
            inexact = (rows.sizes[t[drawn]] >= nodes) | (cols.sizes[s[drawn]] >= nodes)  # others use their own points
            if not inexact.any():
                continue
            U, xi, x = self._side(rng, rows, t[drawn], self.x, order)
            V, eta, y = self._side(rng, cols, s[drawn], self.y, order)
            exact = self.values(x[:, :, None], y[:, None])
            S = self.values(xi[:, :, None], eta[:, None])
            squares = ((exact - U @ S @ V.swapaxes(1, 2)).astype(np.float64) ** 2).mean(axis=(1, 2))
            entries = rows.sizes[t[drawn]] * cols.sizes[s[drawn]]
            total += float(np.mean(squares * entries * inexact)) * len(pairs)
        return total * (2 if self.blocks.symmetric else 1)

    def _side(self, rng, tree, clusters, points, order):
        """For sampled clusters: polynomials at a few of their points, grids, and the points."""
        draws = rng.integers(0, tree.sizes[clusters][:, None], size=(len(clusters), POINTS_A_CLUSTER))
        x = points[tree.start[clusters][:, None] + draws]
        boxes = tree.boxes[clusters]
        lower, upper = (np.broadcast_to(side[:, None], x.shape) for side in (boxes.lower, boxes.upper))
        flat = (side.reshape(-1, x.shape[-1]) for side in (x, lower, upper))
        U = chebyshev.leaf_values(*flat, order).reshape(*x.shape[:2], -1)
        return U, chebyshev.grids(boxes, order).astype(x.dtype), x

    def ranks(self, threshold):
        """For each level of the row tree, the mean number of singular values that stay above the threshold.

        threshold   what a cluster may discard, in the Frobenius norm
        """
        rng, tree = np.random.default_rng(self.seed), self.blocks.row_tree
        links = _Farfield(self.blocks)
        return np.array([self._rank_of_level(rng, links, tree.level(l), threshold) for l in range(tree.levels)])

    def _rank_of_level(self, rng, links, clusters, threshold):
        """Mean rank over sampled clusters of a level."""
        tree, counts = self.blocks.row_tree, []
        for t in rng.choice(clusters, min(CLUSTERS_A_LEVEL, len(clusters)), replace=False):
            x, row_scale = _draw(rng, self.x, tree.start[t : t + 1], tree.sizes[t : t + 1], ROWS_A_CLUSTER)
            columns, ancestor = [], t
            while ancestor >= 0:
                start, size = links.of(ancestor)
                if len(size):
                    y, scale = _draw(rng, self.y, start, size, COLUMNS_A_STEP)
                    columns.append(self.values(x[:, None], y[None]) * scale)
                ancestor = tree.parent[ancestor]
            if not columns:
                counts.append(0)
                continue
            sigma = np.linalg.svd(np.concatenate(columns, axis=1).astype(np.float64), compute_uv=False) * row_scale
            tail = np.sqrt(np.cumsum(sigma[::-1] ** 2))[::-1]
            counts.append(np.count_nonzero(tail > threshold))
        return float(np.mean(counts))


def squared_norm(values, x, y, rows=48, columns=1 << 18, seed=0):
    """Estimate of ‖A‖_F² from random rows, and at most so many columns, of points x and y."""
    rng = np.random.default_rng(seed)
    drawn = x[rng.integers(len(x), size=rows)]
    y_drawn = y[rng.integers(len(y), size=columns)] if len(y) > columns else y
    squares = sum(float(np.sum(values(y_drawn, point).astype(np.float64) ** 2)) for point in drawn)
    return squares * len(x) / rows * len(y) / len(y_drawn)


class _Farfield:
    """The point ranges of the column clusters in each row cluster's farfield blocks."""

    def __init__(self, blocks):
        t, s = blocks.far
        if blocks.symmetric:
            t, s = np.concatenate([t, s]), np.concatenate([s, t])
        order = np.argsort(t, kind="stable")
        self.other, self.tree = s[order], blocks.col_tree
        self.first = np.searchsorted(t[order], np.arange(len(blocks.row_tree) + 1))

    def of(self, t):
        """Starts and sizes of the column clusters coupled with t."""
        s = self.other[self.first[t] : self.first[t + 1]]
        return self.tree.start[s], self.tree.sizes[s]


def _draw(rng, points, starts, sizes, count):
    """At most `count` random points of the ranges, and √(points there / points drawn)."""
    total = int(sizes.sum())
    index = rng.integers(0, total, size=count) if total > count else np.arange(total)
    ends = np.cumsum(sizes)
    piece = np.searchsorted(ends, index, side="right")
    return points[starts[piece] + index - (ends[piece] - sizes[piece])], np.sqrt(total / len(index))
