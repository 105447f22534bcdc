"""The rank that a tail allows: one rule for pivoted QR, truncated SVD and bases.

k = min { k : (Σ_{i≥k} σ_i²)^½ ≤ tolerance }
"""

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.core.matrix_batch import ResidentBatch
from h2gpu.batched.core.offsets import ranges


def tails(sigma):
    """(Σ_{i≥k} σ_i²)^½ for k = 0 … m − 1: (…, m) float64 where sigma (…, m) is; neither over- nor underflows."""
    xp, sigma = array_module(sigma), abs(sigma.astype(np.float64))
    if not sigma.size:
        return sigma
    largest = sigma.max(axis=-1, keepdims=True)
    scale = xp.where(largest > 0, largest, 1.0)
    squares = (sigma / scale) ** 2
    return scale * xp.sqrt(xp.cumsum(squares[..., ::-1], axis=-1))[..., ::-1]


def rank_within(sigma, tolerance):
    """The smallest rank of each row of sigma (…, m), descending, whose tail is within the tolerance: (…) integers.

    tolerance   one number, or (…, 1) or (…, m): then entry k is that of a tail from k on
    """
    return array_module(sigma).count_nonzero(tails(sigma) > tolerance, axis=-1)


def padded(s):
    """Columns of differing length as one (batch, longest) array, zeros beyond each: float64 on the host.

    Those of truncated SVDs whose lengths are on the device stay there: they are such an array already.
    """
    if isinstance(s, ResidentBatch):
        return s.buffer.reshape(len(s), s.bounds[0])
    values = np.zeros((len(s), int(s.rows.max(initial=0))))
    step = ranges(np.zeros_like(s.rows), s.rows)
    values[np.repeat(np.arange(len(s)), s.rows), step] = to_host(s.entries)
    return values
