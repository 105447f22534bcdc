"""Bidiagonal reduction of arrays on the GPU, and the launches: matrices of one shape, of which the host looks at one.

Ragged batches: bidiagonal/cuda.py, which calls this.
"""

from functools import cache

import cupy as cp
import numpy as np

from h2gpu.batched.bidiagonal import plans
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Steps, launch, tables
from h2gpu.batched.device.limits import compute_capability, multiprocessors, shared_limit
from h2gpu.batched.qr.reflectors import reflect_class
from h2gpu.batched.qr.register_columns import shape_keys

WORKSPACE_BYTES = 1 << 31  # of matrices in device memory at a time: 132 of 1024² float64 take half


def bidiagonalize_stack(A, vectors):
    """See h2gpu.batched.bidiagonalize, of an array; d and e as columns."""
    m, n = A.shape[1:]
    d, e, *rest = factor_stack(A, vectors == "both")
    d, e = d[..., None], e[..., None]
    if vectors == "none":
        return d, e
    V, U, tau_v, tau_u = rest
    Q, P = _formed(V, tau_v), _formed(U, tau_u)
    Q, P = (Q, P) if m >= n else (P, Q)
    return Q, d, e, cp.ascontiguousarray(P.swapaxes(1, 2))


def _formed(V, tau):
    """H_0 … H_{k−1} [I; 0] (batch, rows, k) of reflectors V (batch, k, rows), tau (batch, k)."""
    batch, k, rows = V.shape
    Q = cp.empty((batch, rows, k), V.dtype)
    if Q.size:
        (table,) = tables(batch, (0, Steps(k * rows), Steps(k), Steps(rows * k), rows, k, k))
        keys = shape_keys(V.dtype, np.array([rows]), np.array([k]))[:, 0]
        reflect_class(V.dtype, keys, (rows, k), (NULL, V, tau, Q, table))
    return Q


def factor_stack(A, keep=False):
    """d (batch, k) and e (batch, k − 1) of an array (batch, m, n), whose sizes cost the host nothing.

    keep: also V, U and both τ, as in Reduced.
    """
    batch, m, n = A.shape
    tall, k = max(m, n), min(m, n)
    shapes = (k,), (max(k - 1, 0),), *(((k, tall), (k, k), (k,), (k,)) if keep else ())
    results = [cp.empty((batch, *shape), A.dtype) for shape in shapes]
    if results[0].size:
        keys = plans.keys(A.dtype.itemsize, np.array([m]), np.array([n]), shared_limit(cp.cuda.runtime.getDevice()))[
            :, 0
        ]
        (table,) = tables(batch, (Steps(m * n), Steps(k * tall), Steps(k * k), Steps(k), Steps(k - 1), m, n))
        d, e, V, U, *taus = results if keep else (*results, NULL, NULL, NULL, NULL)
        buffers = cp.ascontiguousarray(A), V, U, d, e, *taus, table
        reduce_class(A.dtype, keys, np.array([m]), np.array([n]), buffers)
    return tuple(results)


def reduce_class(dtype, keys, rows, columns, arguments):
    """Matrices of one kernel instance, of sizes among `rows` and `columns`; arguments end with their table."""
    is_large, *knobs = map(int, keys)
    if is_large:
        return _reduce_large(dtype, plans.Rows(*knobs), rows, columns, arguments)
    knobs = plans.Tile(*knobs)
    function = kernel("bidiagonal/bidiagonalize.cuh", "bidiagonalize", dtype, *knobs)
    launch(function, len(arguments[-1]), knobs.warps * WARP, arguments)


def _reduce_large(dtype, knobs, rows, columns, arguments):
    """In shared memory, or in a workspace for as many matrices as WORKSPACE_BYTES hold."""
    m, n, table = np.maximum(rows, columns), np.minimum(rows, columns), arguments[-1]
    layout = knobs.across, knobs.vectors, knobs.warps, knobs.held
    shared = int(plans.shared_bytes(dtype.itemsize, m, n, *layout).max())
    stride = int((m * (plans.pitch(dtype.itemsize, n, knobs.across) + knobs.held)).max()) if knobs.held else 0
    most = max(1, WORKSPACE_BYTES // (stride * dtype.itemsize)) if knobs.held else len(table)
    each = _blocks(dtype, knobs, int(m.max()), int(n.max()), min(len(table), most))
    name, more = ("bidiagonalize_cluster", (each,)) if each > 1 else ("bidiagonalize_large", ())
    function = kernel("bidiagonal/bidiagonalize_large.cuh", name, dtype, *knobs, *more, shared_bytes=shared)
    for first in range(0, len(table), most):
        rows = table[first : first + most]
        workspace = cp.empty(len(rows) * stride, dtype) if knobs.held else NULL
        buffers = *arguments[:-1], rows, workspace, np.int64(stride)
        launch(function, len(rows) * each, knobs.warps * WARP, buffers, shared)


def _blocks(dtype, knobs, m, n, count):
    """Thread blocks a matrix: one where the device has no clusters."""
    multiprocessors, capability = _device(cp.cuda.runtime.getDevice())
    if capability < plans.CLUSTER_CAPABILITY:
        return 1
    return plans.blocks(knobs, dtype.itemsize, m, n, count, multiprocessors)


@cache
def _device(device):
    """Multiprocessors and compute capability."""
    return multiprocessors(device), int(compute_capability(device))
