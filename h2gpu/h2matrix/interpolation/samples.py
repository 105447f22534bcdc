"""Entries of farfield blocks at which interpolation is tried: a few of each block, and some of these once more.

    f(x_r, y_c) − Σ_ν L^t_ν(x_r) f(ξ_ν, y_c)        of a block's row cluster t, at rows r and columns c

Clusters below t interpolate again what t has interpolated. One entry of a block is tried for each of them that holds
its row: entry (b mod rows, b mod columns) of block b. See Börm (2010), chapter 4.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.clustering.boxes import Boxes


@dataclass(frozen=True, eq=False)
class Samples:
    """Host arrays; a sample is a block, or one of its entries that is tried again.

    function   covariance of broadcast point arrays
    boxes      of the clusters that interpolate, (samples,): those of the blocks, and behind them those tried again
    points     (samples,) how many points these clusters have; those of no more than order^dim interpolate exactly
    x          (blocks, rows, dim) points within
    y          (blocks, columns, dim) points beyond
    block      (samples − blocks,) of the entry that is tried again
    """

    function: object
    boxes: Boxes
    points: np.ndarray
    x: np.ndarray
    y: np.ndarray
    block: np.ndarray

    @cached_property
    def known(self):
        """What kernels know of the function, or None."""
        return self.function.on_device(self.x.shape[-1], self.x.dtype)

    @cached_property
    def own(self):
        """x, y, and the values there, (blocks, rows, columns)."""
        return self.x, self.y, self.function(self.x[:, :, None], self.y[:, None])

    @cached_property
    def again(self):
        """The same of the entries that are tried again, one a sample."""
        (x, y, exact), b = self.own, self.block
        row, column = b % x.shape[1], b % y.shape[1]
        return x[b, row][:, None], y[b, column][:, None], exact[b, row, column][:, None, None]
