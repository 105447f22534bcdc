"""Matrices of decaying singular values, and what singular triplets must fulfil."""

import numpy as np
from latms import orthonormal

from h2gpu.arrays import to_host


def decaying(shape, rng, dtype=np.float64, rate=0.5):
    """Singular values exp(−rate k)."""
    batch, m, n = shape
    k = min(m, n)
    U, V = orthonormal(batch, m, k, rng), orthonormal(batch, n, k, rng)
    return ((U * np.exp(-rate * np.arange(k))) @ V.swapaxes(1, 2)).astype(dtype)


def check_triplets(A, U, s, Vt):
    """Orthonormal vectors, descending values, for one matrix; returns ‖A − U s Vt‖_F."""
    A, U, s, Vt = (to_host(M) for M in (A, U, s, Vt))
    epsilon = 30 * max(A.shape) * np.finfo(s.dtype).eps
    A, U, s, Vt = (M.astype(np.float64) for M in (A, U, s, Vt))
    k = len(s)
    assert U.shape == (A.shape[0], k) and Vt.shape == (k, A.shape[1])
    assert (s >= 0).all() and (np.diff(s) <= 0).all()
    assert np.linalg.norm(U.T @ U - np.eye(k)) <= epsilon and np.linalg.norm(Vt @ Vt.T - np.eye(k)) <= epsilon
    return np.linalg.norm(A - (U * s) @ Vt)
