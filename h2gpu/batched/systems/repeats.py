"""Systems of CuPy arrays like those of an earlier call, by one launch: see `repeated` in core/dispatch.py."""

import math

import numpy as np

from h2gpu.batched.core.checks import alike
from h2gpu.batched.device.direct import Direct
from h2gpu.batched.device.launch import NULL
from h2gpu.batched.systems import triangles
from h2gpu.batched.systems.trsm import plan


def trsm(A, B, alpha, side, lower, trans, unit):
    if not alike(A, B):
        return None
    *lead, rows, columns = B.shape
    right, order, width = side == "right", A.shape[-1], rows if side == "right" else columns
    ready = plan(A.dtype, math.prod(lead), order, width, right, bool(lower), bool(trans), bool(unit), False)
    return ready and Direct(ready, B.shape, B.dtype, (None, None), (NULL,), (A.dtype.type(alpha),))


def cholesky_solve(L, b):
    ready = _triangles(L, b, True)
    return ready and Direct(ready, b.shape, b.dtype, (None, NULL, None), (NULL,))


def by_factors(LU, piv, b):
    ready = _triangles(LU, b, False) if piv.dtype == np.int32 else None
    return ready and Direct(ready, b.shape, b.dtype, (None, None, None), (NULL,))


def _triangles(F, b, symmetric):
    """The launch; None where there are several."""
    if not alike(F, b) or not b.size:
        return None
    columns = b.shape[-1] if b.ndim == F.ndim else 1
    sizes = math.prod(F.shape[:-2]), F.shape[-1], columns
    if triangles.tiled(F) and triangles.many(*sizes):
        return None
    return triangles.plan(F.dtype, *sizes, symmetric)
