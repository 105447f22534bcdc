"""Left singular vectors of the weighted basis matrices of a level: by a full or by a randomized SVD.

Both answer (U, sigma, residual): U (MatrixBatch), sigma (matrices, values) on the host, descending and padded with
zeros, and the sum over the matrices of ‖M − U Uᵀ M‖_F², which is spent before any singular value is discarded.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch, randomized
from h2gpu.batched.arrays import to_host
from h2gpu.batched.ragged import ranges


@dataclass(frozen=True)
class FullSVD:
    """Every singular value, by `batched.svd` of the given method."""

    method: str = "auto"

    def __call__(self, M, allowed):
        U, s = batched.svd(M, vectors="left", method=self.method)
        return U, padded(s), 0.0


@dataclass(frozen=True)
class RandomizedSVD:
    """As many samples as it takes: doubled for the matrices of which too much is missed, in the end a full SVD.

    samples       to begin with: the paper's 32 for rank 64
    random_state  seed of the samples
    """

    samples: int = 32
    random_state: int = 0

    def __call__(self, M, allowed):
        everything, count = np.arange(len(M)), self.samples
        done, spent = [], 0.0
        rest = everything
        while len(rest):
            full = np.minimum(M.rows[rest], M.columns[rest]) <= count
            U, s = batched.svd(M[rest[full]], vectors="left")
            done.append((rest[full], U, s))
            rest = rest[~full]
            U, s, missed = randomized.left(M[rest], count, random_state=self.random_state)
            squares = to_host(missed).astype(np.float64) ** 2
            good = squares <= allowed / len(M)
            done.append((rest[good], U[good], s[good]))
            spent += squares[good].sum()
            rest, count = rest[~good], 2 * count
        order = np.argsort(np.concatenate([index for index, _, _ in done]))
        U, s = (MatrixBatch.concatenated([part[i] for part in done])[order] for i in (1, 2))
        return U, padded(s), spent


def padded(s):
    """Columns of differing length as one (batch, longest) float64 array on the host, zeros beyond each."""
    values = np.zeros((len(s), int(s.rows.max(initial=0))))
    step = ranges(np.zeros_like(s.rows), s.rows)
    values[np.repeat(np.arange(len(s)), s.rows), step] = to_host(s.entries)
    return values


STRATEGIES = {"auto": FullSVD(), "jacobi": FullSVD(), "randomized": RandomizedSVD()}
