"""gemv, symv, syrk, trsm and axpy as benchmarks meet them; see batched.py, of whose routines these are more."""

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks.routines import nominal, spot_checks
from h2gpu.apps.benchmarks.routines.routine import Paired

AXPY_ALPHA = 1.5


class GEMV(Paired):
    def __init__(self, trans):
        self.trans = trans

    def other(self, shape):
        return (shape[0 if self.trans else 1],)

    def call(self, case):
        return lambda pair: batched.gemv(*pair, trans=self.trans)

    def nominal(self, case, one, result):
        return nominal.gemm(case.batch, case.shape[0], 1, case.shape[1], case.dtype)

    def criterion(self, case, pair, result):
        A = pair[0].swapaxes(1, 2) if self.trans else pair[0]
        return spot_checks.gemm(A, pair[1][..., None], result[..., None])


class SYMV(Paired):
    def other(self, shape):
        return shape[1:]

    def prepared(self, A):
        return A + A.swapaxes(1, 2)

    def call(self, case):
        return lambda pair: batched.symv(*pair)

    def nominal(self, case, one, result):
        return nominal.symv(case.batch, case.shape[0], case.dtype)

    def criterion(self, case, pair, result):
        return spot_checks.gemm(pair[0], pair[1][..., None], result[..., None])


class SYRK(Paired):
    """A Aᵀ for A n × k; the other of a pair is not looked at."""

    def other(self, shape):
        return (1,)

    def call(self, case):
        return lambda pair: batched.syrk(pair[0])

    def nominal(self, case, one, result):
        return nominal.syrk(case.batch, *case.shape, case.dtype)

    def criterion(self, case, pair, result):
        return spot_checks.syrk(pair[0], result)


class TRSM(Paired):
    """n × n triangles, lower, well conditioned, and n × k right-hand sides; shape: n, n, k."""

    def shown(self, shape):
        return f"{shape[0]}², {shape[2]} right"

    def other(self, shape):
        return shape[1:]

    def prepared(self, A):
        import cupy

        n = A.shape[-1]
        return cupy.tril(A / n) + cupy.asarray(2 * np.eye(n), A.dtype)

    def call(self, case):
        return lambda pair: batched.trsm(*pair)

    def nominal(self, case, one, result):
        return nominal.trsm(case.batch, case.shape[0], case.shape[2], case.dtype)

    def criterion(self, case, pair, result):
        return spot_checks.gemm(pair[0], result, pair[1])


class AXPY(Paired):
    """Two matrices of one shape."""

    def other(self, shape):
        return shape

    def call(self, case):
        return lambda pair: batched.axpy(*pair, alpha=AXPY_ALPHA)

    def nominal(self, case, one, result):
        return nominal.axpy(case.batch, *case.shape, case.dtype)

    def criterion(self, case, pair, result):
        return spot_checks.axpy(AXPY_ALPHA, *pair, result)


BLAS = {"gemv": GEMV(False), "gemv_t": GEMV(True), "symv": SYMV(), "syrk": SYRK(), "trsm": TRSM()}
BLAS |= {"axpy": AXPY()}
