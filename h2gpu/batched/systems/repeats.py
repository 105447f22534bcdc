"""Systems of CuPy arrays like those of an earlier call, by one launch: see `repeated` in core/dispatch.py.

Doors that refuse matrices launch, and look at `info` as the first time.
"""

import math

import cupy
import numpy as np

from h2gpu.batched.copies.verdicts import check, refuse
from h2gpu.batched.core.checks import alike
from h2gpu.batched.device.direct import Direct
from h2gpu.batched.device.launch import NULL
from h2gpu.batched.systems import determinant, lu, solutions, triangles
from h2gpu.batched.systems.cholesky import REASON
from h2gpu.batched.systems.cholesky import plan as cholesky_plan
from h2gpu.batched.systems.trsm import plan


def lu_factor(A, method, return_info):
    return _factors(A, method, None if return_info else lambda info: check(info, "lu_factor"))


def _factors(A, method, judge):
    if not A.size:
        return None
    *lead, m, n = A.shape
    work, tells = lu.plan(A.dtype, method, math.prod(lead), m, n)
    if not tells:  # several launches
        return None
    launch = Direct(work, tuple(lead), np.int32, (None, None, None), (NULL,))
    return _Judged(launch, [(A.shape, A.dtype), ((*lead, min(m, n)), np.int32)], judge)


def det(A):
    factors, last = _factors(A, "auto", None), _determinant(A, A.dtype, (None, None), (NULL, NULL, NULL))
    return factors and (lambda A: last(*factors(A)[:2]))


def slogdet(A):
    real = np.dtype(A.dtype.char.lower())
    factors, last = _factors(A, "auto", None), _determinant(A, real, (None, None, NULL, None), (NULL,))

    def work(A):
        sign = cupy.ndarray(A.shape[:-2], A.dtype)
        return sign, last(*factors(A)[:2], sign)

    return factors and work


def _determinant(A, dtype, head, after):
    """What gives the last result from LU, pivots and those before it."""
    *lead, n, _ = A.shape
    return Direct(determinant.plan(A.dtype, math.prod(lead), n), tuple(lead), dtype, head, after)


def cholesky(A, return_info):
    *lead, n, _ = A.shape
    ready = cholesky_plan(A.dtype, math.prod(lead), n) if A.size else None
    judge = None if return_info else lambda info: refuse(info, "cholesky", REASON)
    return ready and _Judged(Direct(ready, tuple(lead), np.int32, (None, None), (NULL,)), [(A.shape, A.dtype)], judge)


def solve(A, b):
    return _solved(A, b, b.shape[-1] if b.ndim == A.ndim else 1, "solve") if alike(A, b) else None


def inv(A):
    return _solved(A, A, A.shape[-1], "inv")


def _solved(A, b, sides, name):
    *lead, n, _ = A.shape
    ready = solutions.plan(A.dtype, math.prod(lead), n, sides, name == "inv") if b.size else None
    if ready is None:
        return None
    work = _Judged(
        Direct(ready, tuple(lead), np.int32, (None, None, None)),
        [(b.shape, b.dtype)],
        lambda info: refuse(info, name, solutions.REASON),
    )
    return (lambda A: work(A, A)) if name == "inv" else work


class _Judged:
    """A launch on the arrays, new ones and `info`, which `judge` looks at, or which is a result where there is none."""

    __slots__ = "judge", "launch", "results"

    def __init__(self, launch, results, judge):
        self.launch, self.results, self.judge = launch, results, judge

    def __call__(self, *arrays):
        results = [cupy.ndarray(shape, dtype) for shape, dtype in self.results]
        info = self.launch(*arrays, *results)
        if self.judge is None:
            return *results, info
        self.judge(info)
        return tuple(results) if len(results) > 1 else results[0]


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
