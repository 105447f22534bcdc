"""Random and exactly singular stacks of matrices to factor."""

import numpy as np
from reference import normal

F64, F32, C128, C64 = np.float64, np.float32, np.complex128, np.complex64


def random(*shape, dtype=F64, seed=0):
    return normal(np.random.default_rng(seed), dtype, *shape)


def singular_matrices(n, dtype=F64):
    """Exactly singular ones, whose elimination makes no rounding errors."""
    A = np.zeros((7, n, n), dtype)
    A[1] = 1
    A[2:5] = np.rint(8 * random(3, n, n))
    A[2, :, 0] = A[3, :, n // 2] = A[4, :, -1] = 0
    A[5] = np.eye(n)
    A[5, n // 2, n // 2] = 0
    A[6] = np.eye(n)[::-1]
    return A
