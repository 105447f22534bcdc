"""Q R = A by Cholesky factors: orthonormal or confessed to be not, and what the randomized SVD does then."""

import numpy as np
import pytest
from latms import orthonormal

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched.qr import cholesky_basis

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


def test_columns_that_depend_nearly_on_the_first_ones(xp, rng):
    """Errors of quotients by the first block of a triangle are made good by the columns behind it."""
    T = np.eye(48)
    T[0, 1] = T[1, 8:] = 1
    for least in (1e-3, 1e-5, 1e-7):
        T[1, 1] = least
        A = orthonormal(2, 200, 48, rng) @ T
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


def basis(A, xp):
    """Q and X of every matrix on the host."""
    A = xp.asarray(A)
    Q, X = cholesky_basis(A)
    X = np.tile(np.eye(A.shape[2]), (len(A), 1, 1)) if X is None else X
    return to_host(Q).astype(np.float64), to_host(X).astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 512, 72), (5, 200, 64), (2, 131, 34), (1, 83, 40), (3, 90, 33)])
def test_bases_of_any_condition(shape, dtype, xp, rng):
    """Q X is orthonormal, with the range of A, and X no worse than √3."""
    (batch, m, n), epsilon = shape, np.finfo(dtype).eps
    for least in (0.5, 1e-3, 10 * epsilon, epsilon**2):
        values = np.geomspace(1, least, n)
        A = ((orthonormal(batch, m, n, rng) * values) @ orthonormal(batch, n, n, rng).swapaxes(1, 2)).astype(dtype)
        Q, X = basis(A, xp)
        assert not np.tril(X, -1).any() and np.linalg.cond(X).max() <= np.sqrt(3)
        B = Q @ X
        check(A, B, np.triu(B.swapaxes(1, 2) @ A))


@pytest.mark.parametrize("shape", [(2, 200, 64), (2, 160, 40)])
def test_bases_of_nearly_parallel_columns(shape, xp, rng):
    """Q alone is far from orthonormal then, Q X is not."""
    n = shape[2]
    A = rng.standard_normal(shape)
    A[:, :, 1::2] = A[:, :, ::2] + 3e-7 * A[:, :, 1::2]
    Q, X = basis(A.astype(np.float32), xp)
    B = Q @ X
    assert np.abs(B.swapaxes(1, 2) @ B - np.eye(n)).max() <= 10 * np.finfo(np.float32).eps
    assert xp is np or np.abs(X - np.eye(n)).max() > 1e-3


def test_what_has_no_basis_is_named(xp, rng):
    A = rng.standard_normal((5, 200, 48)).astype(np.float32)
    A[1, :, 7] = 0
    A[3, 5, 6] = np.nan
    A[4, 150, 3] = np.inf
    with np.errstate(all="ignore"):
        Q, X = basis(A, xp)
    for b in (0, 2):
        check(A[b : b + 1], (Q @ X)[b : b + 1], np.triu((Q @ X).swapaxes(1, 2) @ A)[b : b + 1])
    if xp is not np:
        assert np.isnan(Q[[1, 3, 4]]).all() and np.isnan(X[[1, 3, 4]]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 200, 64), (2, 160, 72), (2, 90, 33)])
def test_a_triangle_before(shape, dtype, xp, rng):
    """R X for R, to rounding, and zeros below."""
    batch, _, n = shape
    A = xp.asarray(rng.standard_normal(shape).astype(dtype))
    X = (np.eye(n) + 0.1 * np.triu(rng.standard_normal((batch, n, n)))).astype(dtype)
    turned = xp.asarray(X.swapaxes(1, 2).copy()).swapaxes(1, 2)  # column by column
    (P, R, F), (S, T, G) = batched.cholesky_qr(A), batched.cholesky_qr(A, turned)
    assert (P == S).all() and ((F is None and G is None) or (F == G).all())
    expected, found = to_host(R) @ X.astype(np.float64), to_host(T)
    assert not np.tril(found, -1).any()
    assert np.abs(found - expected).max() <= n * np.finfo(dtype).eps * np.abs(expected).max()


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
