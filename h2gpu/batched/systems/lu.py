"""P_b A_b = L_b U_b on the GPU: by size, a launch for all matrices or a few launches a panel of columns.

"matrix": lu_registers.py; "shared": lu_shared.py, or lu_warps.py where the table says so; "panel", "column" and
"unblocked": lu_panels.py. Nothing is read back.
"""

from functools import cache, partial

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device.launch import NULL, WARP
from h2gpu.batched.device.limits import multiprocessors
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.systems import lu_panels, lu_registers, lu_shared, lu_warps
from h2gpu.batched.systems.lu_registers import lanes_of
from h2gpu.batched.systems.lu_shared import ALIGNED, fits, shape_of, window_of

SPILL_BYTES = 56  # that the compiler may spill, around a division at most
MATRIX, SHARED, PANEL = range(3)


def lu_factor(A, method):
    """See h2gpu.batched.lu_factor: LU, piv, info."""
    if isinstance(A, MatrixBatch):
        info = cupy.zeros(len(A), np.int32)
        A = A.on_host()
        LU = MatrixBatch.empty(A.rows, A.columns, A.dtype, cupy)
        piv = MatrixBatch.empty(np.minimum(A.rows, A.columns), 1, np.int32, cupy)
        every = np.arange(len(A))
        for group in classes(A.rows, A.columns, lambda m, n: _keys(A.dtype, method, len(A), m, n)):
            table = group.table(A.offsets, LU.offsets, piv.offsets, A.rows, A.columns, every)
            buffers = A.buffer, LU.buffer, piv.buffer, info, NULL, table
            _work(method, group.keys[0], A.dtype, group.count, *group.shape)(*buffers)
        return LU, piv, info
    batch, m, n = A.shape
    LU, piv = cupy.empty(A.shape, A.dtype), cupy.empty((batch, min(m, n)), np.int32)
    if not A.size:
        return LU, piv, cupy.zeros(batch, np.int32)
    work, single = plan(A.dtype, method, batch, m, n)
    info = (cupy.empty if single else cupy.zeros)(batch, np.int32)  # who looks at it before is told 0
    work(A, LU, piv, info, NULL, NULL)
    return LU, piv, info


@remembered
def plan(dtype, method, batch, m, n):
    """The work on matrices of one shape; whether it is one launch, which writes info without looking at it before."""
    kind = int(_keys(dtype, method, batch, np.array([m]), np.array([n]))[0, 0])
    return _work(method, kind, dtype, batch, m, n), kind in (MATRIX, SHARED)


def _keys(dtype, method, batch, m, n):
    """What matrices m × n have to agree in to be launched together: how they are done, and their size in steps."""
    window = window_of(dtype, m, n)
    small, fitting = (m <= WARP) & (n <= WARP), fits(dtype, m, n, window)
    if method == "auto":
        many = batch > _at_once(dtype.itemsize, cupy.cuda.Device().id)
        better = lu_warps.suits(dtype, m, n) & (n > ALIGNED)
        kind = np.where(small & many & ~better, MATRIX, np.where(fitting, SHARED, PANEL))
    elif method in ("matrix", "shared"):
        kind = np.full(len(m), MATRIX if method == "matrix" else SHARED)
        suited = small if method == "matrix" else fitting
        if not suited.all():
            b = int(np.argmin(suited))
            raise ValueError(f'lu_factor: {m[b]} × {n[b]} is too large for method "{method}"; use "auto"')
    else:
        kind = np.full(len(m), PANEL)
    rows = np.where(kind == MATRIX, lanes_of(m), np.where(kind == SHARED, -(-m // WARP), 0))
    step = np.where(window > 0, WARP, ALIGNED)  # all columns: in rows as long as those of the largest
    columns = np.where(kind == MATRIX, n + n % 2, np.where(kind == SHARED, -(-n // step), 0))
    return np.stack([kind, rows, columns])


@cache
def _at_once(itemsize, device):
    """Matrices of at most 32 rows, with a warp each of at most 16 columns, up to which "shared" is the faster way."""
    shape = shape_of(itemsize, WARP)
    return shape["resident"] * (shape["warps"] if shape["panel"] == WARP else 1) * multiprocessors(device)


def _work(method, kind, dtype, batch, m, n):
    """What takes A, LU, piv, info, what one launch tells the host (or NULL) and a table, and launches."""
    if kind == MATRIX:
        return lu_registers.ready(dtype, batch, m, n)
    if kind == SHARED:
        return (lu_warps if lu_warps.suits(dtype, m, n) else lu_shared).ready(dtype, batch, m, n)
    return partial(lu_panels.run, dtype, batch, m, n, method)
