"""Left singular vectors of the weighted basis matrices of a level: by a full, a truncated or a randomized SVD.

`resident`: the sides of matrices up to which nothing is waited for; 0 for those that wait.

All answer (U, sigma, residual): U (MatrixBatch), sigma (matrices, values), descending and padded with zeros, and the
sum over the matrices of ‖M − U Uᵀ M‖_F², which is spent before any singular value is discarded. They may be on the
device where M is; then `info` of `batched.truncated_svd` follows, which says why where a residual or sigma is NaN.
Where sigma is None, all of U is kept, whatever is allowed.
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module
from h2gpu.batched.core.checks import RESIDENT
from h2gpu.batched.core.tails import padded
from h2gpu.batched.svd import randomized


@dataclass(frozen=True)
class FullSVD:
    """Every singular value, by `batched.svd` of the given method."""

    method: str = "auto"
    resident = 0

    def __call__(self, M, allowed):
        U, s = batched.svd(M, vectors="left", method=self.method)
        return U, padded(s), 0.0


@dataclass(frozen=True)
class TruncatedSVD:
    """Singular values down to where each matrix misses its share of the residual: a pivoted QR that stops there.

    Nothing is waited for on a GPU, where no side exceeds `resident`; what is allowed may be there too.

    consume   whether U may lie where M was
    """

    consume: bool = False
    resident = RESIDENT

    def __call__(self, M, allowed):
        share = array_module(allowed).fmax(allowed, 0.0) / max(1, len(M))  # of NaN, as its matrices are: 0
        U, s, missed, info = batched.truncated_svd(M, np.sqrt(share), return_info=True, consume=self.consume)
        sigma, residual = padded(s), (missed**2).sum()
        return U, sigma, residual if array_module(sigma) is M.xp else float(residual), info


@dataclass(frozen=True)
class RandomizedSVD:
    """As many samples as it takes: doubled for the matrices of which too much is missed, in the end a full SVD.

    samples       to begin with: the paper's 32 for rank 64
    random_state  seed of the samples
    """

    samples: int = 32
    random_state: int = 0
    resident = 0

    def __call__(self, M, allowed):
        share = max(0.0, float(allowed)) / max(1, len(M))
        U, s, squares = randomized.left_within(M, share, self.samples, random_state=self.random_state)
        return U, padded(s), float(squares.sum())


@dataclass(frozen=True)
class FixedSamples:
    """The paper's: so many samples, whatever they miss. No rtol is promised; `H2Matrix.relative_error` says what came.

    Levels whose matrices have no more rows, or columns, than samples are decomposed whole.

    samples       the paper's 32 for rank 64, 64 for rank 121
    truncated     whether ranks are what the tolerance leaves of them, one wait a level; else all samples are kept, so
                  that ranks are known beforehand and nothing is waited for on a GPU
    random_state  seed of the samples
    """

    samples: int = 32
    truncated: bool = True
    random_state: int = 0
    resident = 0

    def __call__(self, M, allowed):
        U, s, info = randomized.left_unwatched(M, self.samples, self.random_state)
        residual = 0 * s.buffer.sum()  # NaN where a matrix has no result; what is missed is not looked at
        return U, _values(s) if self.truncated else None, residual, info


def _values(s):
    """Columns s as (matrices, values), padded with zeros: where they are, if they are all of one length."""
    stack = s.as_stack()
    return padded(s) if stack is None else stack[..., 0]


@dataclass(frozen=True)
class InDouble:
    """Another strategy in float64, the left vectors in the matrices' precision again."""

    decompose: object
    resident = 0

    def __call__(self, M, allowed):
        U, *rest = self.decompose(M.astype(np.float64), allowed)
        return replace(U, buffer=U.buffer.astype(M.dtype)), *rest


STRATEGIES = {"auto": TruncatedSVD(), "jacobi": FullSVD(), "randomized": RandomizedSVD()}
