"""Singular value decompositions of R_bᵀ for R of a QR whose columns came in falling order: Jacobi straight away.

    Aᵀ = P R,   Rᵀ V_L = U_L Σ

The columns of L = Rᵀ are nearly orthogonal, as after the QR and LQ that others need first: Drmač & Veselić 2008.
"""

from functools import cache

import cupy as cp
import numpy as np

from h2gpu.batched.copies import join
from h2gpu.batched.copies.cuda import transposed
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.launch import NULL, WARP, Ready, addresses
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.svd.choice import fits, is_shared
from h2gpu.batched.svd.jacobi import SWEEPS, VECTORS, decompose, few_triangles, triangle_plan

MOST_TURNED = 80  # of the kernel: columns of left vectors that it multiplies itself, in float32


def _decompose_stack(R, both, kept, rest, left):
    """U, s, maybe Vt, `kept` triplets each, and info of k × k triangles, k > WARP."""
    batch, k, _ = R.shape
    U, s = cp.empty((batch, k, kept), R.dtype), cp.empty((batch, kept), R.dtype)
    Vt = cp.empty((batch, kept, k), R.dtype) if both else NULL
    info, factors = cp.empty(batch, np.int32), addresses(left, rest)
    unread = _unread(cp.cuda.runtime.getDevice())
    ready, numbers = _ready(R.dtype, batch, k, kept, both)
    ready(cp.ascontiguousarray(R), U, s, Vt, info, unread, NULL, *numbers, *factors)
    if k > MOST_TURNED or R.dtype == np.float64:
        U = _times(left, U)
    return (U, s, Vt, info) if both else (U, s, info)


def _times(left, U):
    """X U, or U where X is None."""
    return U if left is None else cp.matmul(left, U)


def _divided(Vt, rest):
    """Vt (I + F)⁻ᵀ, or Vt where F is None."""
    if rest is None:
        return Vt
    identity = cp.eye(rest.shape[1], dtype=rest.dtype)
    return cp.linalg.solve(identity + rest, Vt.swapaxes(1, 2)).swapaxes(1, 2)


@remembered
def _ready(dtype, batch, k, kept, both):
    """The launch for them, and numbers between its arrays."""
    device = cp.cuda.runtime.getDevice()
    function, threads, shared = triangle_plan(device, dtype, k, both, few_triangles(device, batch))
    numbers = k, k, VECTORS["triangle"], SWEEPS, 0, k, kept
    return Ready(function, batch, threads, shared, ()), tuple(map(np.int32, numbers))


@cache
def _unread(device):
    """A word on the device for what a kernel tells that nobody asks for."""
    return cp.zeros(1, np.int32)


def svd_of_transposed(R, vectors, rank=None, rest=None, left=None):
    """See h2gpu.batched.svd_of_transposed. Nothing is waited for."""
    both = vectors == "both"
    triangle = "triangle-both" if both else "triangle"
    if not isinstance(R, MatrixBatch):
        m, n = R.shape[1:]
        if m == n > WARP and len(R) and fits(cp.cuda.runtime.getDevice(), R.dtype, m, both):
            return _decompose_stack(R, both, m if rank is None else min(m, rank), rest, left)
        if m == n <= WARP:
            (U, s, *Vt), info = decompose(R, triangle, "register")
        else:
            (U, s, *Vt), info = decompose(cp.ascontiguousarray(R.swapaxes(1, 2)), vectors, "auto")
        Vt = [_divided(M, rest) for M in Vt]
        return _times(left, U[..., :rank]), s[:, :rank, 0], *(M[:, :rank] for M in Vt), info[:-1]
    square = (R.rows == R.columns) & is_shared(R.dtype, R.rows, both)
    if square.all():
        results, info = decompose(R, triangle, "register")
        return (*results, info[:-1])
    first, second = np.flatnonzero(square), np.flatnonzero(~square)
    parts = decompose(R[first], triangle, "register"), decompose(transposed(R[second]), vectors, "auto")
    order = np.argsort(np.concatenate([first, second]))
    results = (join(pair)[order] for pair in zip(*(results for results, _ in parts)))
    info = cp.concatenate([info[:-1] for _, info in parts])
    return (*results, info[cp.asarray(order)])
