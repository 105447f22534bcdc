"""Systems of CuPy arrays like those of an earlier call, by one launch: see `repeated` in core/dispatch.py."""

import math

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
    if not alike(L, b) or not b.size:
        return None
    columns = b.shape[-1] if b.ndim == L.ndim else 1
    sizes = math.prod(L.shape[:-2]), L.shape[-1], columns
    if triangles.tiled(L) and triangles.many(*sizes):
        return None
    return Direct(triangles.plan(L.dtype, *sizes, True), b.shape, b.dtype, (None, NULL, None), (NULL,))
