"""Systems of CuPy arrays like those of an earlier call, by one launch: see `repeated` in core/dispatch.py.

Doors that refuse matrices launch, and look at `info` as the first time.
"""

import math

import cupy
import numpy as np

from h2gpu.batched.copies.cuda import spare_info, told
from h2gpu.batched.copies.verdicts import check, refuse
from h2gpu.batched.core.checks import alike
from h2gpu.batched.device.direct import Direct
from h2gpu.batched.device.launch import NULL
from h2gpu.batched.systems import determinant, lu, solutions, triangles
from h2gpu.batched.systems.cholesky import REASON
from h2gpu.batched.systems.cholesky import plan as cholesky_plan
from h2gpu.batched.systems.trsm import plan


def lu_factor(A, method, return_info):
    if return_info or not A.size:
        return _factors(A, method)
    *lead, m, n = A.shape
    work = _factor(A, method)
    results = [(A.shape, A.dtype), ((*lead, min(m, n)), np.int32)]
    return work and _Judged(work, results, math.prod(lead), lambda info: check(info, "lu_factor"))


def _factors(A, method):
    """What gives LU, pivots and `info`; None where that takes several launches."""
    *lead, m, n = A.shape
    work, single = lu.plan(A.dtype, method, math.prod(lead), m, n) if A.size else (None, False)
    launch = single and Direct(work, tuple(lead), np.int32, (None, None, None), (NULL, NULL))

    def factors(A):
        LU, piv = cupy.ndarray(A.shape, A.dtype), cupy.ndarray((*lead, min(m, n)), np.int32)
        return LU, piv, launch(A, LU, piv)

    return factors if single else None


def _factor(A, method):
    """The launch that tells the host, of found, A, LU, pivots and `info`; None where there are several."""
    *lead, m, n = A.shape
    work, single = lu.plan(A.dtype, method, math.prod(lead), m, n)
    return Direct(work, None, None, (None, None, None, None), (NULL,)).launch if single else None


def det(A):
    factors, last = _factors(A, "auto"), _determinant(A, A.dtype, (None, None), (NULL, NULL, NULL))
    return factors and (lambda A: last(*factors(A)[:2]))


def slogdet(A):
    real = np.dtype(A.dtype.char.lower())
    factors, last = _factors(A, "auto"), _determinant(A, real, (None, None, NULL, None), (NULL,))

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
    if ready is None:
        return None
    if not return_info:
        launch = Direct(ready, None, None, (None, None, None), (NULL,)).launch
        return _Judged(launch, [(A.shape, A.dtype)], math.prod(lead), lambda info: refuse(info, "cholesky", REASON))
    launch = Direct(ready, tuple(lead), np.int32, (None, None), (NULL, NULL))

    def work(A):
        L = cupy.ndarray(A.shape, A.dtype)
        return L, launch(A, L)

    return work


def solve(A, b):
    return _solved(A, b, b.shape[-1] if b.ndim == A.ndim else 1, "solve") if alike(A, b) else None


def inv(A):
    return _solved(A, A, A.shape[-1], "inv")


def _solved(A, b, sides, name):
    if not b.size:
        return None
    *lead, n, _ = A.shape
    ready = solutions.plan(A.dtype, math.prod(lead), n, sides, name == "inv")
    if ready is None:
        return _by_factors(A, b, sides, name)
    launch = Direct(ready, None, None, (None, None, None, None)).launch
    work = _Judged(launch, [(b.shape, b.dtype)], math.prod(lead), lambda info: refuse(info, name, solutions.REASON))
    return (lambda A: work(A, A)) if name == "inv" else work


def _by_factors(A, b, sides, name):
    """LU and what follows from it, launched together and waited for once; None where LU takes several launches."""
    factor, batch = _factor(A, "auto"), math.prod(A.shape[:-2])
    finish = _inverse(A) if name == "inv" else _solution(A, b, sides)

    def work(A, *b):
        LU, piv = cupy.ndarray(A.shape, A.dtype), cupy.ndarray(A.shape[:-1], np.int32)
        info, x = spare_info(batch), []

        def launches(found):
            factor(found, A, LU, piv, info)
            x.append(finish(LU, piv, *b))

        if any(told(launches)):
            refuse(info[:batch], name, solutions.REASON)
        return x[0]

    return factor and work


def _inverse(A):
    """The inverse from LU and pivots."""
    *lead, n, _ = A.shape
    batch = math.prod(lead)
    return lambda LU, piv: triangles.inverse_of(LU.reshape(batch, n, n), piv.reshape(batch, n)).reshape(LU.shape)


def _solution(A, b, sides):
    """x from LU, pivots and b."""
    *lead, n, _ = A.shape
    ready, batch = _triangles(A, b, False), math.prod(lead)
    if ready:
        return Direct(ready, b.shape, b.dtype, (None, None, None), (NULL,))

    def finish(LU, piv, b):
        LU, piv, columns = LU.reshape(batch, n, n), piv.reshape(batch, n), b.reshape(batch, n, sides)
        return triangles.lu_solve(LU, piv, columns).reshape(b.shape)

    return finish


class _Judged:
    """A launch of found, the arrays, new ones and `info`, that is waited for: judge(info) where it told of any."""

    __slots__ = "batch", "judge", "launch", "results"

    def __init__(self, launch, results, batch, judge):
        self.launch, self.results, self.batch, self.judge = launch, results, batch, judge

    def __call__(self, *arrays):
        results = [cupy.ndarray(shape, dtype) for shape, dtype in self.results]
        info = spare_info(self.batch)
        if any(told(self.launch, *arrays, *results, info)):
            self.judge(info[: self.batch])
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
