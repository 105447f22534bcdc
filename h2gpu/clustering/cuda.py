"""Orders of CuPy points by kernels/clustering/growth.cuh, for splits whose sizes the host knows beforehand.

Nothing is read back before the boxes are, when the tree is complete.
"""

import cupy
import numpy as np

from h2gpu.arrays import moved_together
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import launch, upload
from h2gpu.clustering.splitting import Orders, median

HEADER = "clustering/growth.cuh"
THREADS, EACH = 256, 8  # of a block, places of a thread where tiles are counted
SCANNING = 512  # threads that add up the counts of tiles
MOST_POINTS = 2**31 - 1  # numbers of points are int


def orders(points, split, leaf_size):
    """See h2gpu.clustering.splitting.orders: by kernels where the host knows how many points go left."""
    known = points.dtype in (np.float32, np.float64) and len(points) <= MOST_POINTS and points.size
    return KernelOrders(points, leaf_size) if known and split is median else Orders(points, split)


def measured(n, leaf_size):
    """Sizes of the clusters of each level of n points; and of those that are split, where others are leaves."""
    sizes = np.array([n])
    while len(sizes):
        yield sizes
        large = sizes > leaf_size
        if not large.all():
            sizes = sizes[large]
            if len(sizes):
                yield sizes
        left = median(None, sizes)
        sizes = np.stack([left, sizes - left], axis=1).ravel()


class KernelOrders:
    """See h2gpu.clustering.splitting.Orders; the split is the median."""

    def __init__(self, points, leaf_size):
        n, dim = points.shape
        ends = (np.array([offsets_of(sizes), offsets_of(median(None, sizes))]) for sizes in measured(n, leaf_size))
        self._ends = iter(moved_together(cupy, *ends))
        self.columns, keys = cupy.empty((dim, n), points.dtype), cupy.empty((dim, n), points.dtype)
        deal = kernel(HEADER, "deal", points.dtype)
        _launch(deal, n, cupy.ascontiguousarray(points), self.columns, keys, np.int64(n), dim)
        self.orders = cupy.empty((dim, n), np.int32)
        for key, order in zip(keys, self.orders):
            _launch(kernel(HEADER, "narrow_orders"), n, key.argsort(), order, np.int64(n))
        self.permutation = cupy.empty(n, np.int64)
        self._goes_left = cupy.empty(n, bool)
        self._corners, self._noted = [], None

    def note_boxes(self, sizes):
        """Remember the corners of the clusters' tight boxes, and their longest sides for a split of all of them."""
        corners, *rest = self._measured(sizes)
        self._corners.append(corners)
        self._noted = len(sizes), rest

    def boxes(self):
        """The lower and the upper corners of all, (clusters, dim), on the host."""
        return cupy.concatenate(self._corners, axis=1).get()

    def retire(self, starts, sizes, large):
        """Note the points of leaves in the permutation; all others stay."""
        (dim, live), stay = self.orders.shape, int(sizes[large].sum())
        target = np.where(large, offsets_of(sizes * large)[:-1], -1)
        numbers = upload(offsets_of(sizes), np.append(starts, 0), np.append(target, 0))
        old, self.orders = self.orders, cupy.empty((dim, stay), np.int32)
        counts = np.int64(live), np.int64(stay), len(sizes), dim
        _launch(kernel(HEADER, "retire"), live, old, *numbers, *counts, self.permutation, self.orders)

    def split(self, sizes):
        """Orders with the left points first in every cluster; returns how many go left."""
        left, old, (dim, live) = median(None, sizes), self.orders, self.orders.shape
        noted, rest = self._noted
        axis, first, lefts = rest if noted == len(sizes) else self._measured(sizes)[1:]  # others were leaves
        count, wide, tiles = len(sizes), np.int64(live), -(-live // (THREADS * EACH))
        _launch(kernel(HEADER, "mark"), live, old, first, lefts, axis, wide, count, self._goes_left)
        counts, self.orders = cupy.empty((dim, tiles), np.int32), cupy.empty_like(old)
        counting, before, part = (
            kernel(HEADER, *name) for name in (("count", THREADS, EACH), ("before", SCANNING), ("part", THREADS, EACH))
        )
        launch(counting, dim * tiles, THREADS, (old, self._goes_left, wide, tiles, counts))
        launch(before, dim, SCANNING, (counts, tiles))
        arguments = old, self._goes_left, first, lefts, wide, count, tiles, counts, self.orders
        launch(part, dim * tiles, THREADS, arguments)
        return left

    def _measured(self, sizes):
        """Corners of the clusters' boxes, (2, clusters, dim), the first of their longest sides, and where the clusters
        begin among the points that are split, and among those that go left."""
        (dim, live), count = self.orders.shape, len(sizes)
        corners, axis = cupy.empty((2, count, dim), self.columns.dtype), cupy.empty(count, np.int32)
        first, lefts = next(self._ends)
        lengths = np.int64(self.columns.shape[1]), np.int64(live)
        measure = kernel(HEADER, "corners", self.columns.dtype)
        _launch(measure, count, self.columns, self.orders, first, *lengths, dim, count, *corners, axis)
        return corners, axis, first, lefts


def _launch(function, count, *arguments):
    """A thread each of `count` points or clusters."""
    launch(function, -(-count // THREADS), THREADS, arguments)
