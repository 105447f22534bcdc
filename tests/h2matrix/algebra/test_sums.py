"""Sums of H²-matrices, multiples and updates of low rank against dense ones; compressed, they keep what is promised."""

import numpy as np
import pytest
from operators import MATRICES, rectangular_matrix, symmetric_matrix
from reference import points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Matern
from h2gpu.h2matrix import add, low_rank, low_rank_update

EXACT = 1e-13
OTHER = Matern(1.0, 0.5, 1.5)


def pair(kind, xp=np, **parameters):
    return [MATRICES[kind](xp, **parameters), MATRICES[kind](xp, cov=OTHER, **parameters)]


def assert_close(A, wanted, tolerance=EXACT):
    found = to_host(A.to_dense())
    assert np.linalg.norm(found - wanted) <= tolerance * np.linalg.norm(wanted)


def dense(A):
    return to_host(A.to_dense())


@pytest.mark.parametrize("kind", MATRICES)
def test_sums_differences_and_multiples_are_exact(kind, xp):
    A, B = pair(kind, xp)
    a, b = dense(A), dense(B)
    assert_close(A + B, a + b)
    assert_close(A - B, a - b)
    assert_close(2 * A, 2 * a)
    assert_close(-A * 0.5, -a / 2)
    assert_close(A / 3, a / 3)
    assert (A + B).symmetric == A.symmetric
    np.testing.assert_array_equal((A + B).row_basis.ranks, A.row_basis.ranks + B.row_basis.ranks)
    np.testing.assert_array_equal(dense(A), a)  # nothing of A was overwritten


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("rtol", [1e-3, 1e-8])
def test_compressed_sums_keep_their_accuracy_and_lose_rank(kind, rtol, xp):
    A, B = pair(kind, xp, order=6)
    total = add(A, B, 0.5, -3.0, rtol=rtol)
    assert_close(total, 0.5 * dense(A) - 3 * dense(B), rtol)
    assert total.nbytes < (A + B).nbytes / 2


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_a_matrix_added_to_itself_has_its_own_ranks(kind, rtol, xp):
    """[U U] has twice the columns and no new direction: no rank is larger than those of A, compressed alike."""
    A = MATRICES[kind](xp, order=6)
    alone, twice = h2gpu.compress(A, rtol), add(A, A, rtol=rtol)
    for side in ("row_basis", "col_basis"):
        assert np.all(getattr(twice, side).ranks <= getattr(alone, side).ranks)
    assert twice.nbytes <= alone.nbytes


def test_sums_of_compressed_matrices_have_the_ranks_of_the_sum_of_covariances(xp):
    """As few as if α cov + β cov had been built and compressed; measured on its rows, the three errors add."""
    rtol, points = 1e-6, points_of("uniform", 2000, 2)
    cov, both = Exponential(2.0, 0.3), Exponential(2.0, 0.3) + OTHER
    A, B, S = (h2gpu.build(xp.asarray(points), f, leaf_size=32, order=10) for f in (cov, OTHER, both))
    total = add(h2gpu.compress(A, rtol), h2gpu.compress(B, rtol), rtol=rtol)
    assert total.row_basis.ranks.sum() <= 1.02 * h2gpu.compress(S, rtol).row_basis.ranks.sum()
    assert h2gpu.sampled_error(total, xp.asarray(points), both, rows=200, random_state=0) <= 2 * rtol


def test_compressed_matrices_of_two_precisions_add_too(xp):
    A, B = (h2gpu.compress(M, 1e-5, storage="auto") for M in pair("symmetric", xp, order=6))
    assert_close(A + B, dense(A) + dense(B))
    assert_close(3 * A, 3 * dense(A))


@pytest.mark.parametrize("alpha, exact", [(2, True), (-1, True), (0.25, True), (3, False), (2.0**200, False)])
def test_multiples_keep_float32_where_it_holds_them(alpha, exact, xp):
    """α A is exact whatever α; where float32 holds α times its blocks, α A takes no more bytes than A."""
    A = h2gpu.compress(symmetric_matrix(xp, order=6), 3e-8, storage="auto")
    assert 0 < A.nearfield.narrowed.sum() < len(A.nearfield)  # some of it is in float32
    assert_close(alpha * A, alpha * dense(A))
    assert (alpha * A).symmetric
    assert ((alpha * A).nbytes == A.nbytes) == exact


def test_computed_blocks_are_stored(xp):
    A, B = symmetric_matrix(xp, nearfield="computed"), symmetric_matrix(xp, cov=OTHER)
    assert_close(add(A, B, rtol=1e-6), dense(A) + dense(B), 1e-6)


def test_what_cancels_leaves_nothing(xp):
    A, _ = pair("symmetric", xp)
    difference = add(A, A, 1.0, -1.0)
    assert abs(dense(difference)).max() <= 1e-14


@pytest.mark.parametrize("kind", MATRICES)
def test_updates_of_low_rank(kind, xp):
    A, rng = MATRICES[kind](xp), np.random.default_rng(0)
    X, Y = (rng.standard_normal((size, 3)) for size in A.shape)
    update = low_rank(A, xp.asarray(X), xp.asarray(Y))
    assert_close(update, X @ Y.T)
    assert_close(A + update, dense(A) + X @ Y.T)
    assert_close(add(A, update, rtol=1e-6), dense(A) + X @ Y.T, 1e-6)
    x = xp.asarray(rng.standard_normal(A.shape[0]))
    np.testing.assert_allclose(to_host((A + update).rmatvec(x)), (dense(A) + X @ Y.T).T @ to_host(x), atol=1e-10)


def test_symmetric_updates_stay_symmetric(xp):
    A, X = symmetric_matrix(xp), np.random.default_rng(1).standard_normal((700, 2))
    B = add(A, low_rank(A, xp.asarray(X)), rtol=1e-8)
    assert B.symmetric
    assert_close(B, dense(A) + X @ X.T, 1e-8)


@pytest.mark.parametrize("kind", MATRICES)
def test_updates_are_compressed_and_can_be_taken_back(kind, xp):
    """A + U Vᵀ keeps rtol; less U Vᵀ it is A again, with ranks of A compressed to what the two steps may miss."""
    A, rng, rtol = MATRICES[kind](xp, order=6), np.random.default_rng(3), 1e-6
    U, V = (rng.standard_normal((size, 2)) for size in A.shape)
    there = low_rank_update(A, xp.asarray(U), xp.asarray(V), rtol)
    updated = dense(A) + U @ V.T
    assert_close(there, updated, rtol)
    assert there.nbytes < add(A, low_rank(A, xp.asarray(U), xp.asarray(V))).nbytes / 2
    back = low_rank_update(there, xp.asarray(-U), xp.asarray(V), 1e-3)
    missed = rtol * np.linalg.norm(updated) + 1e-3 * np.linalg.norm(dense(A))
    assert np.linalg.norm(dense(back) - dense(A)) <= missed
    fine = h2gpu.compress(A, 1e-3)
    assert back.row_basis.ranks.sum() <= 1.01 * fine.row_basis.ranks.sum()


def test_an_update_without_v_is_symmetric(xp):
    A, X = symmetric_matrix(xp), np.random.default_rng(4).standard_normal((700, 2))
    B = low_rank_update(A, xp.asarray(X), rtol=1e-7)
    assert B.symmetric
    assert_close(B, dense(A) + X @ X.T, 1e-7)


def test_a_rank_one_update_of_nothing_has_rank_one():
    """Compression of 0 A + x xᵀ finds the one vector."""
    A, x = symmetric_matrix(), np.random.default_rng(2).random((700, 1)) + 1
    B = add(A, low_rank(A, x), 0.0, 1.0, rtol=1e-6)
    assert B.row_basis.ranks.max() == 1
    assert_close(B, x @ x.T, 1e-6)


def test_a_tree_of_one_cluster():
    A, x = symmetric_matrix(n=9), np.arange(9.0)[:, None]
    assert_close(A + low_rank(A, x), dense(A) + x @ x.T)


@pytest.mark.parametrize("make, words", [
    (lambda A: A + symmetric_matrix(leaf_size=32), "add: expected two matrices .* leaf size and eta"),
    (lambda A: A + rectangular_matrix(), "add: expected two matrices"),
    (lambda A: A + symmetric_matrix(dtype=np.float32), "add: expected two matrices of one precision"),
    (lambda A: A * float("nan"), "factor of a matrix: expected a number that float64 can hold, got nan"),
    (lambda A: A / 0, "divisor of a matrix: expected a number whose reciprocal float64 can hold, got 0"),
    (lambda A: A / 1e-320, "divisor of a matrix"),
    (lambda A: A / A, "factor of a matrix"),
    (lambda A: A * "2", "factor of a matrix: expected a number"),
    (lambda A: add(A, A, 1e400), "factor of a matrix"),
    (lambda A: add(A, A, rtol=2.0), "rtol: expected a number"),
    (lambda A: low_rank(A, np.ones(700)), "low_rank: expected X a real numpy array of shape .700, k."),
    (lambda A: low_rank(A, np.ones((3, 2))), "low_rank: expected X"),
    (lambda A: low_rank(A, np.full((700, 1), np.inf)), "low_rank: expected X of finite numbers"),
    (lambda A: low_rank(symmetric_matrix(dtype=np.float32), np.full((700, 1), 1e99)), "got NaN or Inf in float32"),
    (lambda A: low_rank(A, np.ones((700, 1)), np.ones((700, 2))), "as many columns, got 1 and 2"),
    (lambda A: low_rank(rectangular_matrix(), np.ones((500, 1))), r"expected Y of shape \(300, k\)"),
    (lambda A: low_rank_update(A, np.ones((700, 1)), rtol=0.0), "rtol: expected a number"),
    (lambda A: low_rank_update(A, np.ones((7, 1))), "low_rank: expected X"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make(symmetric_matrix())


def test_other_objects_do_not_add():
    A = symmetric_matrix()
    with pytest.raises(TypeError):
        A + np.ones((700, 700))
    with pytest.raises(TypeError, match="add: expected an H2Matrix, got ndarray"):
        add(A, np.ones((700, 700)))
    with pytest.raises(TypeError, match="low_rank_update: expected an H2Matrix, got ndarray"):
        low_rank_update(np.eye(9), np.ones((9, 1)))


def test_a_nugget_and_a_trend_by_sums():
    """C + σ² I as C of another nugget, and the covariance of an unknown mean."""
    A, ones = symmetric_matrix(cov=Exponential(2.0, 0.3)), np.ones((700, 1))
    with_mean = add(A, low_rank(A, 10 * ones), rtol=1e-7)
    assert_close(with_mean, dense(A) + 100, 1e-7)
