"""Products of CuPy arrays like those of an earlier call: an array for the result and a launch, nothing else.

    gemm(A, B, …)   →   again(A, B), for arrays of the same shapes and precision, or None where nothing is remembered

Each function takes the arguments of a door of this room by name, after its checks; arrays are contiguous. See
`repeated` in core/dispatch.py.
"""

import math

import cupy

from h2gpu.batched.core.checks import alike
from h2gpu.batched.device.direct import Direct
from h2gpu.batched.device.launch import NULL
from h2gpu.batched.products import gemm as products
from h2gpu.batched.products import thin, vectors, vendor


def gemm(A, B, C, alpha, beta, transa, transb, method, out, triangular):
    lead = A.shape[:-2]
    if C is not None or out is not None or triangular or B.shape[:-2] != lead or not alike(A, B):
        return None
    (m, k), n = A.shape[:-3:-1] if transa else A.shape[-2:], B.shape[-2 if transb else -1]
    batch, transa, transb = math.prod(lead), bool(transa), bool(transb)
    way = products.way_of(A.dtype, batch, (m, n, k), transa, transb, method, alpha == 1 and thin.aligned(A, B))
    if way is thin or (way is None and not (vendor.cublas and batch * m * n * k)):
        return None
    if way is None:
        way = vendor.Strided(A.dtype, batch, (m, n, k), transa, transb, (alpha, 0))
        return _Again(way, (*lead, m, n), A.dtype)
    return Direct(way, (*lead, m, n), A.dtype, (None, None, NULL), (), _factors(A, alpha))


def gemv(A, x, y, alpha, beta, trans):
    if y is not None or not alike(A, x):
        return None
    (*lead, m, n), trans = A.shape, bool(trans)
    batch, way = math.prod(lead), vectors.BY_COLUMNS if trans else vectors.BY_ROWS
    if trans and vendor.suits_columns(A.dtype, batch, m, n):
        product = _Again(vendor.column_product(A.dtype, batch, m, n, alpha), (*lead, n), A.dtype)
        return lambda A, x: product(x, A)
    aligned = not (A.data.ptr | x.data.ptr) % vectors.PIECE
    if vectors.in_runs(A.dtype, batch, m, n, way, aligned):
        ready, after = vectors.run_plan(A.dtype, batch, m, n, way), ()
    else:
        ready, after = vectors.gemv_plan(A.dtype, batch, m, n, trans, aligned), (NULL,)
    return Direct(ready, (*lead, n if trans else m), A.dtype, (None, None, NULL), after, _factors(A, alpha))


def symv(A, x, y, alpha, beta, lower):
    if y is not None or not alike(A, x):
        return None
    (*lead, n, _), way = A.shape, vectors.BY_LOWER if lower else vectors.BY_UPPER
    if vectors.in_runs(A.dtype, math.prod(lead), n, n, way):
        ready, after = vectors.run_plan(A.dtype, math.prod(lead), n, n, way), ()
    else:
        ready, after = vectors.symv_plan(A.dtype, math.prod(lead), n, bool(lower)), (NULL,)
    return Direct(ready, (*lead, n), A.dtype, (None, None, NULL), after, _factors(A, alpha))


def syrk(A, C, alpha, beta, trans, lower):
    if C is not None or not alike(A):
        return None
    *lead, n, k = (*A.shape[:-2], *A.shape[:-3:-1]) if trans else A.shape
    aligned = not A.data.ptr % vectors.PIECE
    method, ready = vectors.syrk_plan(A.dtype, math.prod(lead), n, k, bool(trans), bool(lower), True, aligned)
    if method == "fixed":
        product = Direct(ready, (*lead, n, n), A.dtype, (None, None, NULL), (), _factors(A, alpha))
        return lambda A: product(A, A)
    after = () if method == "entries" else vectors.NO_LISTS
    return Direct(ready, (*lead, n, n), A.dtype, (None, NULL), after, _factors(A, alpha))


def axpy(X, Y, alpha):
    if not alike(X, Y):
        return None
    return Direct(vectors.axpy_run(X.dtype, X.size), X.shape, X.dtype, (None, None), behind=(X.dtype.type(alpha),))


def _factors(A, alpha):
    """alpha and no beta, as a kernel takes them."""
    return A.dtype.type(alpha), A.dtype.type(0)


class _Again:
    """Work on the arrays and a new one for the result."""

    __slots__ = "dtype", "shape", "work"

    def __init__(self, work, shape, dtype):
        self.work, self.shape, self.dtype = work, shape, dtype

    def __call__(self, *arrays):
        out = cupy.ndarray(self.shape, self.dtype)
        self.work(*arrays, out)
        return out
