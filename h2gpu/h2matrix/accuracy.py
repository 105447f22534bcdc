"""The whole account of rtol: who may spend what of the squared error.

    (rtol ‖A‖_F)²  ≥  interpolation² + compression²                      of a matrix against the exact covariance
     compression²  ≥  rows² + columns² + arithmetic² + storage²          of a compressed one against what it was made of

| part          | share                                                    | spent by                         |
|---------------|----------------------------------------------------------|----------------------------------|
| interpolation | (INTERPOLATION rtol)²                                    | `planning`, which finds the order |
| compression   | (COMPRESSION rtol)²                                      | `compress`                       |
| storage       | STORAGE of compression², where rounding to float32 helps | `compression.precision`          |
| arithmetic    | what the rounding of a level's sums makes, by level      | any                              |
| rows, columns | half each of what is left, less MARGIN                   | `compression.truncation`         |
| a level       | its clusters among those that are left: `Account`        | a `rule` of truncation           |
| DECOMPOSED    | of a level's share, before any singular value is dropped | `compression.decompositions`     |

Squares add: the bases are orthogonal, blocks do not overlap, and interpolation has nothing to do with compression. The
two shares of the whole leave 0.29 of the square unspent: interpolation's error is estimated from samples, and may be
1.7 times as large. `covariance_matrix` checks the sum on sampled rows.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.texts import brief

INTERPOLATION, COMPRESSION = 0.38, 0.75  # parts of rtol
STORAGE = 0.1  # part of the squared error of compression
MARGIN = 1e-3  # part of what may be discarded that is left for the rounding of sums
DECOMPOSED = 1e-2  # part of a level's share that a decomposition may miss
LEAST = 8  # ε: the best accuracy that a precision can hold
ROTATIONS = 5  # ε that singular vectors err by after the rotations of a level, as measured
PRODUCTS = 1.25  # ε that products and sums of a level alone leave
SPARED = 1 / 4  # part of rtol that arithmetic may take before float32 matrices are decomposed in float64


@dataclass(frozen=True)
class Accuracy:
    """An accuracy that a precision can hold, and its parts.

    rtol    ‖error‖_F ≤ rtol ‖A‖_F
    dtype   float32 or float64
    """

    rtol: float
    dtype: np.dtype

    @classmethod
    def of(cls, rtol, dtype):
        """ValueError unless rtol is a number from 8 ε of the precision to below 1."""
        dtype = np.dtype(dtype)
        least = LEAST * float(np.finfo(dtype).eps)
        if not (isinstance(rtol, (int, float, np.number)) and least <= rtol < 1):
            raise ValueError(
                f"rtol: expected a number from {least:.2g} (what {dtype} can hold) to below 1, got {brief(rtol)}"
            )
        return cls(float(rtol), dtype)

    @property
    def least(self):
        """The best rtol of the precision."""
        return LEAST * float(np.finfo(self.dtype).eps)

    @property
    def interpolation(self):
        """The part of the whole that is interpolation's."""
        return INTERPOLATION * self.rtol

    @property
    def compression(self):
        """The part of the whole that is compression's; never below what the precision can hold."""
        return Accuracy(max(COMPRESSION * self.rtol, self.least), self.dtype)

    def rounds(self, storage):
        """Whether parts of a compressed matrix are to be rounded to float32."""
        return storage == "auto" and self.dtype == np.float64 and self.unrounded.rtol >= self.least

    @property
    def unrounded(self):
        """What a compression leaves to storage when it takes the rest."""
        return Accuracy((1 - STORAGE) ** 0.5 * self.rtol, self.dtype)

    @property
    def storage(self):
        """What rounding to float32 may add to (error / ‖A‖_F)²."""
        return STORAGE * self.rtol**2

    def discarded(self, levels):
        """What may be discarded of ‖A‖_F² on both sides, and whether matrices must be decomposed in float64 for it.

        Rotations turn a large singular vector at every step, and each step rounds it.
        """
        level = float(np.finfo(self.dtype).eps) * levels**0.5
        in_double = self.dtype == np.float32 and ROTATIONS * level > SPARED * self.rtol
        arithmetic = (PRODUCTS if in_double else ROTATIONS) * level
        return max(self.rtol**2 - arithmetic**2, self.rtol**2 / 2) * (1 - MARGIN), in_double


class Account:
    """What may be discarded on one side, spent level by level from the leaves up: each takes the share of its clusters.

    allowed   squared error of the side, a number or where the basis is
    used      (levels,) clusters of each level that have a basis
    """

    def __init__(self, allowed, used):
        self.left, self.used, self.above = allowed, used, np.cumsum(used)

    def share(self, l):
        """Of level l: what is left by its part of the clusters down to it."""
        return self.left * (self.used[l] / max(1, self.above[l]))

    def spend(self, square):
        """Take what a level discarded from what is left."""
        self.left = self.left - square
