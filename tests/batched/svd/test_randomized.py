"""Randomized SVD: the promised norms and ranks, on either back end."""

import numpy as np
import pytest
from triplets import check_triplets, decaying

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

DTYPES = [np.float64, np.float32]


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e160, 1e300])
def test_ranks_do_not_depend_on_the_scale(scale, xp, rng):
    A = decaying((3, 40, 30), rng)
    A[1] *= 1e-3 / scale if scale < 1 else 1 / scale  # one of usual size beside them
    U, s, Vt = map(to_host, batched.rsvd(xp.asarray(A * scale), rtol=1e-3, random_state=1))
    for b in range(3):
        B = A[b] * scale
        largest = np.abs(B).max()
        rest = B / largest - (U[b] * (s[b] / largest)) @ Vt[b]
        assert np.linalg.norm(rest) <= 1e-3 * np.linalg.norm(B / largest)
        assert 0 < np.count_nonzero(s[b]) < 25


def test_seeds_by_their_kinds(rng):
    A = decaying((2, 12, 9), rng)
    for kind in (np.random.default_rng, np.random.RandomState):
        first, again = (batched.rsvd(A, 3, random_state=kind(4))[0] for _ in range(2))
        assert (first == again).all()
    assert batched.rsvd(A, 3)[1].shape == (2, 3)
    for bad in ("4", -1, 1.5, [1]):
        with pytest.raises(ValueError, match="random_state: expected an integer ≥ 0"):
            batched.rsvd(A, 3, random_state=bad)


# A rank that is given


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 60, 40), (4, 40, 60), (3, 100, 9), (3, 5, 80), (2, 300, 200), (2, 1, 1)])
@pytest.mark.parametrize("power", [0, 1])
def test_the_error_is_near_that_of_the_discarded_values(shape, power, dtype, xp, rng):
    A = decaying(shape, rng, dtype)
    for rank in (1, 8):
        U, s, Vt = batched.rsvd(xp.asarray(A), rank, power=power, random_state=3)
        k = min(rank, *shape[1:])
        exact = np.exp(-0.5 * np.arange(min(shape[1:])))
        least, slack = np.linalg.norm(exact[k:]), 100 * max(shape) * np.finfo(dtype).eps
        for b in range(len(A)):
            assert check_triplets(A[b], U[b], s[b], Vt[b]) <= 1.5 * least + slack
        assert (np.abs(to_host(s) - exact[:k]) <= 0.1 * exact[:k] + slack).all()


def test_arrays_and_ragged_batches_agree(xp, rng):
    A = xp.asarray(decaying((5, 70, 50), rng))
    U, s, Vt = batched.rsvd(A, 6, random_state=1)
    V, t, Wt = batched.rsvd(MatrixBatch.from_stack(A), 6, random_state=1)
    assert float(abs(s.ravel() - t.entries).max()) <= 1e-14
    for b in range(5):
        difference = (U[b] * s[b]) @ Vt[b] - (V[b] * t[b].T) @ Wt[b]
        assert float(abs(difference).max()) <= 1e-13
    alone = batched.rsvd(A[3:4], 6, random_state=1)
    assert float(abs((U[3] * s[3]) @ Vt[3] - (alone[0][0] * alone[1][0]) @ alone[2][0]).max()) <= 1e-13


def test_ragged_shapes(xp, rng):
    shapes = [(0, 5), (5, 0), (1, 1), (64, 64), (30, 90), (90, 30), (7, 300), (150, 140)]
    matrices = [rng.standard_normal(shape) for shape in shapes]
    A = MatrixBatch.from_matrices([xp.asarray(M) for M in matrices])
    U, s, Vt = batched.rsvd(A, 400, random_state=0)
    for b, M in enumerate(matrices):
        assert check_triplets(M, U[b], s[b][:, 0], Vt[b]) <= 1e-11


@pytest.mark.parametrize("arguments", [{"rank": 4}, {"rtol": 1e-3}, {"rank": 2, "rtol": 1e-3}])
@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0), (2, 3, 5, 4), (5, 4)])
def test_empty_and_leading_dimensions(shape, arguments, xp, rng):
    U, s, Vt = batched.rsvd(xp.asarray(rng.standard_normal(shape)), **arguments)
    k = s.shape[-1]
    assert U.shape == (*shape[:-1], k) and s.shape == (*shape[:-2], k) and Vt.shape == (*shape[:-2], k, shape[-1])


def test_zero_matrices(xp):
    U, s, Vt = batched.rsvd(xp.zeros((3, 20, 12)), 4, random_state=0)
    for b in range(3):
        assert check_triplets(np.zeros((20, 12)), U[b], s[b], Vt[b]) == 0
    assert batched.rsvd(xp.zeros((3, 20, 12)), rtol=1e-3)[1].shape == (3, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_triplets_than_the_rank(dtype, xp, rng):
    """Ranks one, equal entries or not, and half of the columns: what is beyond is zero to rounding."""
    A = np.ones((3, 90, 60), dtype)
    A[1] *= rng.standard_normal((90, 1)).astype(dtype)
    A[2] = np.repeat(rng.standard_normal((90, 30)).astype(dtype), 2, axis=1)
    U, s, Vt = batched.rsvd(xp.asarray(A), 40, random_state=0)
    for b in range(3):
        epsilon = 50 * np.finfo(dtype).eps * np.linalg.norm(A[b])
        assert check_triplets(A[b], U[b], s[b], Vt[b]) <= epsilon
        assert np.abs(to_host(s[b])[(1, 1, 30)[b] :]).max() <= epsilon


@pytest.mark.parametrize("arguments", [{"rank": 4}, {"rtol": 1e-3}])
def test_bad_matrices_are_named(arguments, xp, rng):
    A = rng.standard_normal((9, 60, 50))
    A[[3, 7], 2, 5] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="NaN or Inf in matrices 3, 7"):
        batched.rsvd(xp.asarray(A), **arguments)


# A rank that is found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 90, 70), (4, 70, 90), (3, 30, 20), (2, 200, 150)])
def test_the_rank_found_keeps_rtol(shape, dtype, xp, rng):
    """‖A − U s Vt‖_F ≤ rtol ‖A‖_F, with hardly more triplets than are needed."""
    A = np.concatenate([decaying((1, *shape[1:]), rng, dtype, rate) for rate in (0.9, 0.2, 0.02, 3.0)])
    for rtol in (1e-1, 1e-3) if dtype == np.float32 else (1e-1, 1e-4, 1e-8):
        ragged = batched.rsvd(MatrixBatch.from_stack(xp.asarray(A)), rtol=rtol, random_state=2)
        U, s, Vt = batched.rsvd(xp.asarray(A), rtol=rtol, random_state=2)
        for b in range(len(A)):
            r, norm = ragged[1][b].shape[0], np.linalg.norm(A[b].astype(float))
            assert (
                check_triplets(A[b], *(M[b] if i != 1 else M[b][:, 0] for i, M in enumerate(ragged)))
                <= rtol * norm * 1.001
            )
            assert check_triplets(A[b], U[b][:, :r], s[b][:r], Vt[b][:r]) <= rtol * norm * 1.001
            assert not U[b][:, r:].any() and not s[b][r:].any() and not Vt[b][r:].any()
            exact = np.linalg.svd(A[b].astype(float), compute_uv=False)
            least = np.count_nonzero(np.sqrt(np.cumsum(exact[::-1] ** 2)) > rtol * norm)
            assert least <= r <= least + 3


def test_rank_is_the_most_that_rtol_may_take(xp, rng):
    A = xp.asarray(decaying((3, 90, 80), rng, rate=0.05))
    s = batched.rsvd(A, 10, rtol=1e-6, random_state=0)[1]
    assert s.shape == (3, 10)
    assert batched.rsvd(A, 10, rtol=0.9, random_state=0)[1].shape[1] < 10


@pytest.mark.parametrize("rtol", [-1e-3, 1.0, np.nan, "1e-3"])
def test_an_rtol_out_of_range_gives_one_clear_error(rtol):
    with pytest.raises(ValueError, match="rsvd: expected rtol a number from 0 to below 1"):
        batched.rsvd(np.eye(3), rtol=rtol)


def test_rank_or_rtol_is_needed():
    with pytest.raises(ValueError, match="rsvd: expected an integer rank ≥ 1, got None"):
        batched.rsvd(np.eye(3))
