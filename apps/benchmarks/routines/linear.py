"""LU and Cholesky as benchmarks and tuning meet them: more of the routines of apps/benchmarks/routines/batched.py."""

from typing import ClassVar

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.routines import nominal, spot_checks
from h2gpu.apps.benchmarks.routines.routine import Paired, Routine
from h2gpu.apps.benchmarks.routines.spectra import matrices


class LU(Routine):
    """With partial pivoting, of independent normal entries; the input stays as it is."""

    kernels: ClassVar = {
        "matrix": ("lu_register",),
        "shared": ("lu_shared", "lu_warp"),
        "panel": ("lu_panel",),
        "column": ("lu_column",),
        "unblocked": ("lu_unblocked",),
    }

    def call(self, case):
        return lambda A: batched.lu_factor(A, case.method or "auto")

    def work(self, case):
        return lambda A: batched.lu_factor(A, case.method or "auto", return_info=True)

    def nominal(self, case, one, result):
        return nominal.lu(case.batch, *case.shape, case.dtype)

    def criterion(self, case, A, result):
        return spot_checks.lu(A, *result[:2])


class Cholesky(Routine):
    """Of positive definite matrices; the input stays as it is."""

    def inputs(self, case, rotate=True):
        A = positive(matrices(case.batch, *case.shape, case.dtype))
        return timing.rotation(A) if rotate else [A]

    def call(self, case):
        return batched.cholesky

    def work(self, case):
        return lambda A: batched.cholesky(A, return_info=True)

    def nominal(self, case, one, result):
        return nominal.cholesky(case.batch, case.shape[0], case.dtype)

    def criterion(self, case, A, result):
        return spot_checks.cholesky(A, result[0] if isinstance(result, tuple) else result)


class CholeskySolve(Paired):
    """A factor, and one right-hand side: shape n, n."""

    def prepared(self, A):
        return batched.cholesky(positive(A))

    def other(self, shape):
        return shape[1:]

    def call(self, case):
        return lambda pair: batched.cholesky_solve(*pair)

    def nominal(self, case, one, result):
        return nominal.triangles(case.batch, case.shape[0], 1, case.dtype)

    def criterion(self, case, pair, result):
        return spot_checks.cholesky_solution(pair[0], result, pair[1])


def positive(A):
    """A + Aᵀ with a diagonal that exceeds its norm: batches of positive definite matrices."""
    n = A.shape[-1]
    A = A + A.swapaxes(1, 2)
    A[:, np.arange(n), np.arange(n)] += 8 * n**0.5 + 8  # of normal entries the norm is about 2 √(2n)
    return A


LINEAR = {"lu": LU(), "cholesky": Cholesky(), "cholesky_solve": CholeskySolve()}
