"""Truncated SVDs whose ranks stay on the device, so that nothing is waited for: the stages of truncated.py.

The host knows bounds of the sizes alone. A stage is one launch over the whole batch for each range of sizes that an
instance of its kernel is for: thread blocks of matrices out of range end at once.
"""

from functools import lru_cache
from itertools import pairwise

import cupy as cp
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.batched.device.launch import NULL, WARP, Steps, tables
from h2gpu.batched.qr import householder
from h2gpu.batched.qr.pivoted import Outcome, factor_in_registers
from h2gpu.batched.qr.reflectors import reflect_in_registers
from h2gpu.batched.qr.register_columns import LARGEST, shape_keys
from h2gpu.batched.svd.jacobi import decompose_triangles
from h2gpu.memory import piece_bytes

RANKS = (32, 64)  # bounds of the ranges of ranks that reflectors are applied to
FEW = 512  # matrices that go in one range: a launch costs more than wider instances


def fits(A):
    """Whether all matrices are held in registers."""
    return max(A.bounds) <= LARGEST


def truncated_svd(A, atol, consume=False):
    """U, s, missed, info of a MatrixBatch that fits: see h2gpu.batched.truncated_svd with return_info."""
    (A,), (m, n), batch, dtype = MatrixBatch.place(A), A.bounds, len(A), A.dtype
    k, least = min(m, n), 0 if isinstance(A, ResidentBatch) else int(A.rows.min(initial=m))
    outcome, allowed = Outcome.of(batch), _there(atol)
    U = A.buffer if consume and _is_filled(A) else cp.empty(batch * m * k, dtype)  # a matrix's U after its factors
    s = cp.zeros(batch * k, dtype)
    most = max(1, piece_bytes(cp) // max(1, k * (m + n + 2 * k) * dtype.itemsize))
    for first in range(0, batch if k else 0, most):
        part = slice(first, first + most)
        numbers = outcome.ranks[part], outcome.missed[part], outcome.info[first:], outcome.info[-1:]
        _truncate(A[part], allowed[part], U[first * m * k :], s[first * k :], numbers, (m, n), least, batch <= FEW)
    (places,) = tables(batch, [Steps(m * k), Steps(k), 1])
    U = ResidentBatch(U, places[0], A.number(1), outcome.ranks, (m, k))
    s = ResidentBatch(s, places[1], outcome.ranks, places[2], (k, 1))
    return U, s, outcome.missed, outcome.info[:-1]


def _truncate(A, allowed, U, s, outcome, bounds, least, few):
    """U and s of some matrices, as far apart as the bounds ask for, into their places; of few in all."""
    (m, n), batch, dtype = bounds, len(A), A.dtype
    k, ranks = min(m, n), outcome[0]
    heights = _ranges(m, () if few else tuple(range(WARP, m, WARP)), least)
    V, R, tau, triangle, X = (cp.empty(batch * size, dtype) for size in (k * m, k * n, k, k * k, k * k))
    first, rows, columns = (A.number(i) for i in range(3))
    (lines,) = tables(batch, (first, Steps(k * m), Steps(k), Steps(k * n), 0, rows, columns, Steps(1)))
    for above, upto in heights:
        arguments = A.buffer, V, tau, R, NULL, *outcome, allowed, lines
        factor_in_registers(dtype, _keys(dtype, upto, n), (upto, n), False, arguments, above)
    transposed = [Steps(k * n), 0, Steps(k * k), columns, ranks]
    triangles = Steps(k * k), Steps(k * k), Steps(k), 0, ranks, ranks, Steps(1)
    vectors = Steps(k * k), Steps(k * m), Steps(k), Steps(m * k), rows, ranks, ranks
    transposed, triangles, vectors = tables(batch, transposed, triangles, vectors)
    householder.run_bounded(R, triangle, transposed, batch, n, k)
    decompose_triangles((triangle, X, s, None), triangles, batch, k, outcome[2:], few)
    for low, high in heights:
        for above, upto in _ranges(k, () if few else RANKS):
            arguments = X, V, tau, U, vectors
            reflect_in_registers(dtype, _keys(dtype, high, upto), (high, upto), arguments, (low, above))


def _there(atol):
    """(batch,) tolerances on the device; one for all of them, as a level has it, is written there."""
    if isinstance(atol, np.ndarray) and len(atol) and (atol == atol[0]).all():
        return cp.full(len(atol), atol[0], np.float64)
    return cp.asarray(atol)


def _is_filled(A):
    """Whether all matrices of the buffer are of one shape, with columns for all left vectors."""
    m, n = A.bounds
    if isinstance(A, ResidentBatch) or n > m or A.buffer.size != len(A) * m * n:
        return False
    return A.is_packed and int(A.offsets[0]) == 0 and bool((A.rows == m).all() and (A.columns == n).all())


@lru_cache
def _ranges(largest, bounds, least=0):
    """(above, upto) of the ranges between bounds that hold sizes from `least` to `largest`."""
    edges = [0, *(bound for bound in bounds if bound < largest), largest]
    return [(above, upto) for above, upto in pairwise(edges) if upto >= least]


@lru_cache
def _keys(dtype, m, n):
    """What an instance for matrices of at most m × n depends on."""
    return tuple(shape_keys(dtype, np.array([m]), np.array([n]))[:, 0].tolist())
