"""Q R = A by Cholesky factors: orthonormal or confessed to be not, and what the randomized SVD does then."""

import numpy as np
import pytest
from latms import orthonormal

from h2gpu import batched
from h2gpu.batched import to_host

DTYPES = [np.float64, np.float32]
LIMIT = 30


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def factored(A, xp):
    """Q, R of every matrix on the host, and whether it failed."""
    P, R, F = batched.cholesky_qr(xp.asarray(A))
    P, R, F = (to_host(M).astype(np.float64) for M in (P, R, xp.zeros_like(R) if F is None else F))
    failed = np.isnan(R).any(axis=(1, 2))
    F[failed] = 0
    assert np.abs(F).max() <= 1e-5 and not np.tril(F, -1).any()
    Q = np.linalg.solve(np.eye(A.shape[2]) + F.swapaxes(1, 2), P.swapaxes(1, 2)).swapaxes(1, 2)
    return Q, R, failed


def check(A, Q, R):
    """LAPACK's criteria of a QR."""
    (_, m, n), epsilon = A.shape, np.finfo(A.dtype).eps
    A = A.astype(np.float64)
    norms = np.linalg.norm(A, axis=(1, 2))
    assert not np.tril(R, -1).any()
    assert (np.linalg.norm(A - Q @ R, axis=(1, 2)) <= LIMIT * m * epsilon * norms).all()
    assert (np.linalg.norm(Q.swapaxes(1, 2) @ Q - np.eye(n), axis=(1, 2)) <= LIMIT * m * epsilon).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(3, 512, 72), (5, 200, 64), (2, 131, 34), (2, 97, 46), (1, 83, 40), (3, 90, 33), (2, 50, 40)]
)
def test_any_condition(shape, dtype, xp, rng):
    (batch, m, n), epsilon = shape, np.finfo(dtype).eps
    for least in (0.5, 1e-3, 10 * epsilon, epsilon**2):
        values = np.geomspace(1, least, n)
        A = ((orthonormal(batch, m, n, rng) * values) @ orthonormal(batch, n, n, rng).swapaxes(1, 2)).astype(dtype)
        Q, R, failed = factored(A, xp)
        assert not failed.any()
        check(A, Q, R)


@pytest.mark.parametrize("dtype", DTYPES)
def test_graded_columns(dtype, xp, rng):
    A = (rng.standard_normal((4, 300, 70)) * np.geomspace(1e10, 1e-20, 70)).astype(dtype)
    Q, R, failed = factored(A, xp)
    assert not failed.any()
    check(A, Q, R)
    assert (np.linalg.norm(A - Q @ R, axis=1) <= 1e3 * np.finfo(dtype).eps * np.linalg.norm(A, axis=1)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_orthonormal_is_named(dtype, xp, rng):
    A = rng.standard_normal((6, 200, 48)).astype(dtype)
    A[1, :, 7] = 0
    A[2] = 0
    A[4, 5, 6] = np.nan
    A[5, 150, 3] = np.inf
    with np.errstate(all="ignore"):
        Q, R, failed = factored(A, xp)
    assert not failed[[0, 3]].any()
    check(A[[0, 3]], Q[[0, 3]], R[[0, 3]])
    if xp is not np:
        assert failed[[1, 2, 4, 5]].all() and np.isnan(Q[[1, 2, 4, 5]]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [0, 1, 17, 40])
def test_randomized_svd_of_few_directions(rank, dtype, xp, rng):
    A = rng.standard_normal((5, 150, rank)) @ rng.standard_normal((5, rank, 160))
    A[3] = rng.standard_normal((150, 160))
    A = A.astype(dtype)
    U, s, Vt = (to_host(M).astype(np.float64) for M in batched.rsvd(xp.asarray(A), 40, random_state=1))
    epsilon = np.finfo(dtype).eps
    for M in (U, Vt.swapaxes(1, 2)):
        assert np.linalg.norm(M.swapaxes(1, 2) @ M - np.eye(40), axis=(1, 2)).max() <= LIMIT * 160 * epsilon
    low = np.arange(5) != 3
    missed = np.linalg.norm(A - (U * s[:, None]) @ Vt, axis=(1, 2)) / np.maximum(np.linalg.norm(A, axis=(1, 2)), 1)
    assert (missed[low] <= LIMIT * 160 * epsilon).all()
