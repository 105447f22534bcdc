"""Singular value decompositions of R_bᵀ for R of a QR whose columns came in falling order: Jacobi straight away.

    Aᵀ = P R,   Rᵀ V_L = U_L Σ

The columns of L = Rᵀ are nearly orthogonal, as after the QR and LQ that others need first: Drmač & Veselić 2008.
"""

import cupy as cp
import numpy as np

from h2gpu.batched.cuda_svd import decompose
from h2gpu.batched.cuda_svd_blocks import transposed
from h2gpu.batched.cuda_svd_choice import fits, is_shared
from h2gpu.batched.launch import WARP
from h2gpu.batched.ragged import MatrixBatch


def svd_of_transposed(R, vectors, rank=None, rest=None):
    """See h2gpu.batched.svd_of_transposed. Nothing is waited for."""
    both = vectors == "both"
    triangle = "triangle-both" if both else "triangle"
    if not isinstance(R, MatrixBatch):
        m, n = R.shape[1:]
        if m == n > WARP and fits(cp.cuda.runtime.getDevice(), R.dtype, m, both):
            (U, s, *Vt), info = decompose(R, triangle, "shared", n if rank is None else rank, rest)
            return U, s[..., 0], *Vt, info[:-1]
        if m == n <= WARP:
            (U, s, *Vt), info = decompose(R, triangle, "register")
        else:
            (U, s, *Vt), info = decompose(cp.ascontiguousarray(R.swapaxes(1, 2)), vectors, "auto")
        return U[..., :rank], s[:, :rank, 0], *(M[:, :rank] for M in Vt), info[:-1]
    square = (R.rows == R.columns) & is_shared(R.dtype, R.rows, both)
    if square.all():
        results, info = decompose(R, triangle, "register")
        return (*results, info[:-1])
    first, second = np.flatnonzero(square), np.flatnonzero(~square)
    parts = decompose(R[first], triangle, "register"), decompose(transposed(R[second]), vectors, "auto")
    order = np.argsort(np.concatenate([first, second]))
    results = (MatrixBatch.concatenated(pair)[order] for pair in zip(*(results for results, _ in parts)))
    info = cp.concatenate([info[:-1] for _, info in parts])
    return (*results, info[cp.asarray(order)])
