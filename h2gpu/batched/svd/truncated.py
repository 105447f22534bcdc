"""Truncated SVDs on the GPU: a pivoted QR stops at the rank, Jacobi works on the triangle that is left.

    A P = Q [R; 0] + E,  ‖E‖_F ≤ atol,     P Rᵀ = Q₂ Lᵀ,   L V_L = U_L Σ by Jacobi,   U = Q [U_L; 0]

Q is a product of reflectors, applied to U_L and never formed. Ranks come to the host between the first step and the
second; everything behind is of their size. Drmač & Veselić 2008.
"""

from itertools import pairwise

import cupy as cp
import numpy as np

from h2gpu.batched.copies import join
from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.qr.householder import qr
from h2gpu.batched.qr.pivoted import factor
from h2gpu.batched.qr.reflectors import reflect
from h2gpu.batched.svd import resident
from h2gpu.batched.svd.triangle import svd_of_transposed
from h2gpu.memory import piece_bytes


def truncated_svd(A, atol, padded=False, return_info=False, consume=False):
    """U, s, missed of a MatrixBatch: see h2gpu.batched.truncated_svd; padded: with zeros, as arrays."""
    if return_info and resident.fits(A):
        return resident.truncated_svd(A, atol, consume)
    results = _by_parts(A, atol, padded)
    return (*results, cp.zeros(len(A), np.int32)) if return_info else results


def _by_parts(A, atol, padded):
    """The same, as many matrices at a time as a piece of the memory holds."""
    k = np.minimum(A.rows, A.columns)
    before, room = offsets_of(k * (A.rows + A.columns)) * A.dtype.itemsize, piece_bytes(cp)
    cuts = np.searchsorted(before, np.arange(room, before[-1], room))
    bounds = np.unique([0, *cuts, len(A)])
    parts = [_truncate(A[i:j], atol[i:j], i, padded) for i, j in pairwise(bounds)]
    if not parts:
        return MatrixBatch.empty(A.rows, k, A.dtype, cp), MatrixBatch.empty(k, 1, A.dtype, cp), cp.empty(0)
    if len(parts) == 1:
        return parts[0]
    U, s, missed = zip(*parts)
    return join(U), join(s), cp.concatenate(missed)


def _truncate(A, atol, first, padded):
    """truncated_svd of matrices that go together; first: the number of the first, to name it."""
    F = factor(A, atol, False, first)
    P = MatrixBatch(F.R.buffer, F.R.offsets, A.columns, F.ranks)
    X, s, info = svd_of_transposed(qr(P, "r"), "left")
    k = np.minimum(A.rows, A.columns)
    U = reflect(F, X, MatrixBatch.empty(A.rows, k if padded else F.ranks, A.dtype, cp))
    if padded:
        t = MatrixBatch.zeros(k, 1, A.dtype, cp)
        join([s], MatrixBatch(t.buffer, t.offsets, s.rows, s.columns))
        s = t
    check(info, "truncated_svd", first)
    return U, s, F.missed
