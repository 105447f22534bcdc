"""Pivoted QR that stops early: A P = Q R + E with the promised ‖E‖, on either back end."""

import numpy as np
import pytest
from latms import latms

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

DTYPES = [np.float64, np.float32]
SHAPES = [(5, 1, 1), (4, 9, 3), (4, 3, 9), (3, 33, 31), (3, 64, 64), (3, 50, 81), (2, 121, 121), (2, 128, 20)]
LARGE = [(2, 20, 129), (2, 200, 150), (2, 300, 40)]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def check(A, Q, R, pivots, rank, atol):
    """The theorems for one matrix, results without padding."""
    epsilon = np.finfo(A.dtype).eps
    A, Q, R, pivots = (to_host(M) for M in (A, Q, R, pivots))
    A, Q, R = (M.astype(np.float64) for M in (A, Q, R))
    m, n = A.shape
    scale = np.linalg.norm(A)
    slack = 10 * max(m, n) * epsilon * scale
    assert Q.shape == (m, rank) and R.shape == (rank, n)
    assert sorted(pivots.tolist()) == list(range(n))
    assert np.linalg.norm(Q.T @ Q - np.eye(rank)) <= 30 * max(m, n) * epsilon
    assert (np.tril(R, -1) == 0).all()
    assert np.linalg.norm(A[:, pivots] - Q @ R) <= atol * (1 + 1e-3) + slack
    largest = np.abs(np.diagonal(R))
    assert (largest[1:] <= 1.01 * largest[:-1] + slack).all()  # pivots are the largest to some digits
    if rank:  # one step less would not have done
        rest = np.linalg.norm(A[:, pivots] - Q[:, :-1] @ R[:-1])
        assert rest >= atol * (1 - 1e-3) - slack


def check_batch(A, atol, xp):
    atol = np.broadcast_to(atol, len(A))
    Q, R, pivots, ranks = batched.pivoted_qr(xp.asarray(A), atol)
    assert Q.dtype == R.dtype == A.dtype and isinstance(ranks, np.ndarray)
    for b, r in enumerate(ranks):
        assert not Q[b][:, r:].any() and not R[b][r:].any()
        check(A[b], Q[b][:, :r], R[b][:r], pivots[b], r, atol[b])
    return ranks


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + LARGE)
def test_it_stops_at_the_first_step_that_atol_allows(shape, dtype, xp, rng):
    A = latms(*shape, 3, 1e5, rng, dtype)
    norm = np.linalg.norm(A[0].astype(float))
    for rtol in (0, 1e-3, 0.1):
        check_batch(A, rtol * norm, xp)
    assert (check_batch(A, 2 * norm, xp) == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", [1, 2, 4, 5, 6])
def test_spectra(mode, dtype, xp, rng):
    for n in (6, 48, 90):
        check_batch(latms(3, n, n, mode, 1e3, rng, dtype), 0.02, xp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [5, 31, 64, 140])
def test_degenerate_matrices(n, dtype, xp, rng):
    A = rng.standard_normal((6, n, n))
    A[0] = 0
    A[1] = np.eye(n)
    A[2][:, n // 2 :] = 0
    A[3][n // 2 :] = 0
    A[4] = np.outer(A[4][0], A[4][1])
    ranks = check_batch(A.astype(dtype), 1e-3, xp)
    assert (ranks == [0, n, n // 2, n // 2, 1, n]).all()
    ranks = batched.pivoted_qr(xp.asarray(A[:1].astype(dtype)))[3]
    assert (ranks == 0).all() or xp is np


@pytest.mark.parametrize("dtype", DTYPES)
def test_ragged(dtype, xp, rng):
    shapes = [(0, 5), (5, 0), (1, 1), (64, 64), (30, 90), (90, 30), (128, 128), (33, 129)]
    matrices = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    A = MatrixBatch.from_matrices([xp.asarray(M) for M in matrices])
    atol = np.array([0.3 * np.linalg.norm(M) for M in matrices])
    Q, R, pivots, ranks = batched.pivoted_qr(A, atol)
    assert (
        (Q.columns == ranks).all() and (R.rows == ranks).all() and (ranks[3:] < np.minimum(A.rows, A.columns)[3:]).all()
    )
    for b, M in enumerate(matrices):
        check(M, Q[b], R[b], pivots[b][:, 0], ranks[b], atol[b])


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0), (2, 3, 4, 5), (5, 4)])
def test_empty_and_leading_dimensions(shape, xp, rng):
    Q, R, pivots, ranks = batched.pivoted_qr(xp.asarray(rng.standard_normal(shape)))
    k = min(shape[-2:])
    assert Q.shape == (*shape[:-1], k) and R.shape == (*shape[:-2], k, shape[-1])
    assert pivots.shape == (*shape[:-2], shape[-1]) and ranks.shape == shape[:-2]


@pytest.mark.parametrize("shape", [(4, 30, 12), (4, 12, 30), (2, 3, 130, 140), (3, 0, 5)])
def test_the_same_without_orthogonal_factors(shape, xp, rng):
    A = xp.asarray(rng.standard_normal(shape))
    for batch in (A, *([MatrixBatch.from_stack(A)] if A.ndim == 3 else [])):
        _, *expected = batched.pivoted_qr(batch, 3.0)
        found = batched.pivoted_qr(batch, 3.0, mode="r")
        for one, other in zip(found, expected, strict=True):
            one, other = (part.entries if isinstance(part, MatrixBatch) else part for part in (one, other))
            np.testing.assert_array_equal(to_host(one), to_host(other))
    with pytest.raises(ValueError, match='pivoted_qr: expected mode "reduced" or "r", got'):
        batched.pivoted_qr(A, mode="full")


def test_bad_matrices_are_named(xp, rng):
    for n in (20, 140):
        A = rng.standard_normal((9, n, n))
        A[[3, 7], 2, 5] = np.nan, -np.inf
        with pytest.raises(np.linalg.LinAlgError, match="pivoted_qr: NaN or Inf in matrices 3, 7"):
            batched.pivoted_qr(xp.asarray(A), 1e-3)


def test_scaling_changes_nothing_but_the_scale(xp, rng):
    """By powers of two, to the bit."""
    A = rng.standard_normal((3, 40, 40))
    Q, R, pivots, ranks = batched.pivoted_qr(xp.asarray(A), 3.0)
    for scale in (2.0**300, 2.0**-300, 2.0**650, 2.0**-650):
        T, S, places, found = batched.pivoted_qr(xp.asarray(A * scale), 3.0 * scale)
        assert (found == ranks).all() and (places == pivots).all() and (T == Q).all() and (R * scale == S).all()
