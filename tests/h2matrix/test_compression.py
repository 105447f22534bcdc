"""Compression keeps its promise ‖A − Ã‖_F ≤ rtol ‖A‖_F, spends it, and leaves A alone."""

import gc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import EPS, bases_of, dense_of, difference, points_of, streamed

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, from_function
from h2gpu.h2matrix import truncate
from h2gpu.h2matrix.compression import level_store
from h2gpu.h2matrix.compression.decompositions import FullSVD, RandomizedSVD, TruncatedSVD
from h2gpu.h2matrix.compression.orthogonalization import triangular_factors
from h2gpu.h2matrix.compression.truncation import RelativeToBasis, SharedBudget
from h2gpu.h2matrix.compression.weights import total_weights

COVARIANCES = [
    Exponential(1.0, 0.1),
    Exponential(3.0, 2.0) + Nugget(0.5),
    Matern(1.0, 0.3, 1.5),
    Matern(0.5, 0.2, 0.7),
    Gaussian(1.0, 0.3),
    Exponential(1.0, (0.1, 0.4, 0.2)),
]
ORDERS = {1: 8, 2: 5, 3: 3}
LEAF_SIZES = {1: 8, 2: 25, 3: 27}
METHODS, SVDS, SPLITS = ["weighted", "basis"], ["auto", "jacobi", "randomized"], ["median", "mean"]
RTOLS = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12]


def matrix(name="uniform", n=600, dim=2, cov=COVARIANCES[0], xp=np, make=h2gpu.build, cols=None, dtype=float, **more):
    if getattr(cov, "dimension", None):
        cov = Exponential(1.0, cov.length_scale[:dim])
    if cols is not None:
        more["col_points"] = xp.asarray(points_of(cols, n // 2, dim, seed=1), dtype=dtype)
    parameters = {"leaf_size": LEAF_SIZES[dim], "order": ORDERS[dim], **more}
    return make(xp.asarray(points_of(name, n, dim), dtype=dtype), cov, **parameters)


def assert_promise(A, B, rtol, dense=None):
    """The measured error, of the dense matrices and by blocks: the same, and at most rtol."""
    error = difference(dense_of(A) if dense is None else dense, dense_of(B))
    assert error <= rtol
    assert A.relative_error(B) == pytest.approx(error, rel=1e-3, abs=10 * float(np.finfo(A.dtype).eps))


# The promise


@settings(max_examples=100)
@given(
    name=st.sampled_from(["uniform", "clustered", "duplicates", "grid", "outlier", "collinear", "all_equal"]),
    n=st.integers(1, 500),
    dim=st.sampled_from([1, 2, 3]),
    cov=st.sampled_from(COVARIANCES),
    digits=st.floats(2, 12),
    split=st.sampled_from(SPLITS),
    eta=st.sampled_from([0.7, 1.0, 2.0]),
    cols=st.sampled_from([None, None, "uniform", "clustered"]),
    method=st.sampled_from(METHODS),
    svd=st.sampled_from(SVDS),
)
def test_the_measured_error_is_at_most_rtol(name, n, dim, cov, digits, split, eta, cols, method, svd):
    """‖A − Ã‖_F ≤ rtol ‖A‖_F"""
    A = matrix(name, n + 1, dim, cov, cols=cols, split=split, eta=eta)
    rtol = 10.0**-digits
    assert_promise(A, h2gpu.compress(A, rtol, method=method, svd=svd), rtol)


@pytest.mark.parametrize("svd", ["auto", "randomized"])
@pytest.mark.parametrize("rtol", RTOLS)
def test_the_promise_holds_for_larger_matrices(rtol, svd, xp):
    A = matrix(n=1500, cov=Matern(1.0, 0.2, 1.5), xp=xp, order=6, leaf_size=36)
    assert_promise(A, h2gpu.compress(A, rtol, svd=svd), rtol)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", ["uniform", "clustered"])
@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-6])
def test_the_promise_is_spent(dim, name, rtol):
    """‖A − Ã‖_F ≥ rtol/3 ‖A‖_F: ranks are no larger than they must be."""
    A = matrix(name, 1200, dim, Exponential(1.0, 0.3))
    assert rtol / 3 <= A.relative_error(h2gpu.compress(A, rtol)) <= rtol


@pytest.mark.parametrize("svd", ["auto", "randomized"])
@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-6])
def test_float32_matrices_keep_the_promise_down_to_1e_6(rtol, svd):
    A = matrix(dtype=np.float32, order=6, leaf_size=36)
    B = h2gpu.compress(A, rtol, svd=svd)
    assert B.dtype == B.couplings.blocks.dtype == np.float32
    assert_promise(A, B, rtol)


@pytest.mark.parametrize("svd", ["auto", "jacobi", "randomized"])
def test_rounding_in_float32_is_part_of_the_promise(svd, xp):
    """Many levels of dense points: there rounding is a third of rtol, and the error is measured in float64."""
    A = matrix("clustered", 4000, xp=xp, dtype=np.float32, order=8, leaf_size=64, eta=1.0, split="mean")
    assert 0.7e-6 <= A.relative_error(h2gpu.compress(A, 1e-6, svd=svd)) <= 1e-6


def test_the_least_rtol_is_what_the_precision_can_hold():
    """8 ε: the promise to rounding."""
    A = matrix()
    assert difference(dense_of(A), dense_of(h2gpu.compress(A, 8 * EPS))) <= 3 * 8 * EPS


def test_covariance_one_has_rank_one_everywhere():
    A = matrix(cov=from_function(lambda x, y: 1.0 + 0 * x[..., 0] * y[..., 0]))
    B = h2gpu.compress(A, 1e-8)
    assert set(B.row_basis.ranks) <= {0, 1} and B.row_basis.ranks.max() == 1
    np.testing.assert_allclose(B @ np.ones(600), 600, rtol=1e-8)


def test_a_zero_matrix_is_compressed_to_rank_zero():
    A = h2gpu.build(points_of("uniform", 90, 1), Gaussian(), col_points=points_of("uniform", 80, 1) + 99, leaf_size=4)
    B = h2gpu.compress(A, 1e-6)
    assert not B.row_basis.ranks.any() and not B.to_dense().any()


def test_products_with_the_compressed_matrix_are_those_of_its_blocks(xp):
    for cols in (None, "clustered"):
        B = h2gpu.compress(matrix("clustered", xp=xp, cols=cols, split="mean"), 1e-4)
        x = np.random.default_rng(0).standard_normal((B.shape[1], 3))
        np.testing.assert_allclose(to_host(B @ xp.asarray(x)), dense_of(B) @ x, rtol=0, atol=1e-11)
        z = np.random.default_rng(0).standard_normal((B.shape[0], 3))
        np.testing.assert_allclose(to_host(B.T @ xp.asarray(z)), dense_of(B).T @ z, rtol=0, atol=1e-11)


# What is gained


@pytest.mark.parametrize("svd", SVDS)
@pytest.mark.parametrize("name", ["uniform", "clustered", "duplicates"])
def test_a_smaller_rtol_never_makes_ranks_smaller(name, svd):
    A = matrix(name)
    compressed = [h2gpu.compress(A, rtol, svd=svd) for rtol in RTOLS]
    for coarse, fine in pairwise(compressed):
        assert coarse.row_basis.ranks.sum() <= fine.row_basis.ranks.sum() and coarse.nbytes <= fine.nbytes
    assert compressed[0].nbytes < compressed[2].nbytes <= A.nbytes


@pytest.mark.parametrize("cols", [None, "uniform"])
@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-6, 1e-10])
def test_compressing_twice_gains_little_and_costs_no_more_than_its_promise(rtol, cols):
    """The second compression has a budget of its own to spend, and finds what is left just above the first's."""
    A = matrix(n=1000, cols=cols)
    once = h2gpu.compress(A, rtol)
    twice = h2gpu.compress(once, rtol)
    assert once.relative_error(twice) <= rtol and A.relative_error(twice) <= 2 * rtol
    assert twice.nbytes <= once.nbytes
    assert 0.75 * once.row_basis.ranks.sum() <= twice.row_basis.ranks.sum() <= once.row_basis.ranks.sum()


def test_compressing_what_needs_no_truncation_changes_nothing():
    """Once every block is of full rank in its bases, ranks stay as they are."""
    A = matrix(cov=from_function(lambda x, y: 1.0 + x[..., 0] * y[..., 0]))
    once = h2gpu.compress(A, 1e-9)
    twice = h2gpu.compress(once, 1e-9)
    assert once.row_basis.ranks.max() == 2
    np.testing.assert_array_equal(once.row_basis.ranks, twice.row_basis.ranks)
    assert once.relative_error(twice) < 1e-13


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_the_papers_method_finds_nothing_in_chebyshev_bases(rtol):
    """Lagrange bases are well conditioned: their own singular values say nothing of the matrix."""
    A = matrix(n=2000, order=5, leaf_size=50, cov=Exponential(1.0, 0.3))
    basis, weighted = (h2gpu.compress(A, rtol, method=method) for method in ("basis", "weighted"))
    assert basis.row_basis.ranks.sum() >= 0.9 * A.row_basis.ranks.sum()
    assert weighted.row_basis.ranks.sum() <= 0.7 * A.row_basis.ranks.sum()


def test_ranks_vary_by_cluster():
    ranks = h2gpu.compress(matrix("clustered", 2000), 1e-4).ranks[-2]
    assert len(set(ranks)) > 3


# What stays


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cols", [None, "uniform"])
def test_the_matrix_stays_as_it_is_and_its_nearfield_is_shared(method, cols):
    A = matrix(cols=cols)
    parts = [A.row_basis.leaf, A.row_basis.transfer, A.col_basis.leaf, A.couplings.blocks, A.nearfield.blocks]
    before = [part.buffer.copy() for part in parts]
    B = h2gpu.compress(A, 1e-4, method=method, storage="full")
    assert B.nearfield is A.nearfield and B.symmetric == A.symmetric and B.row_basis.tree is A.row_basis.tree
    for part, copy in zip(parts, before):
        np.testing.assert_array_equal(part.buffer, copy)


@pytest.mark.parametrize("svd", SVDS)
def test_symmetric_matrices_stay_symmetric(svd):
    """yᵀ Ã x = xᵀ Ã y, to rounding and not to rtol"""
    B = h2gpu.compress(matrix("clustered"), 1e-3, svd=svd)
    x, y = np.random.default_rng(0).standard_normal((2, 600))
    assert B.symmetric and B.T is B
    assert y @ (B @ x) == pytest.approx(x @ (B @ y), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("svd", SVDS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["uniform", "clustered", "duplicates", "outlier"])
def test_truncated_bases_are_orthonormal(name, method, svd):
    """ŨᵀŨ = I for all clusters of both sides"""
    B = h2gpu.compress(matrix(name, cols="clustered", split="mean"), 1e-5, method=method, svd=svd, storage="full")
    for basis in (B.row_basis, B.col_basis):
        for U in bases_of(basis):
            np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), rtol=0, atol=200 * EPS)


# Variants that must agree


@pytest.mark.parametrize("cols", [None, "clustered"])
@pytest.mark.parametrize("svd", ["auto", "randomized"])
def test_evaluated_couplings_compress_to_the_same_matrix(cols, svd, xp):
    stored, evaluated = (
        h2gpu.compress(matrix(make=f, cols=cols, xp=xp), 1e-5, svd=svd, storage="full") for f in (h2gpu.build, streamed)
    )
    np.testing.assert_array_equal(stored.row_basis.ranks, evaluated.row_basis.ranks)
    assert difference(dense_of(stored), dense_of(evaluated)) < 1e-12


@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
def test_randomized_ranks_are_close_to_those_of_the_full_svd(rtol):
    A = matrix(n=1500, order=7, leaf_size=50)
    full, randomized = (h2gpu.compress(A, rtol, svd=svd).row_basis.ranks.sum() for svd in ("auto", "randomized"))
    assert abs(randomized - full) <= 0.03 * full + 2


def test_the_rectangular_matrix_of_one_point_set_is_compressed_like_the_symmetric():
    points = points_of("uniform", 600, 2)
    A = matrix()
    B = h2gpu.build(points, COVARIANCES[0], col_points=points.copy(), leaf_size=25, order=5)
    a, b = (h2gpu.compress(M, 1e-5) for M in (A, B))
    assert a.row_basis.ranks.sum() == pytest.approx(b.row_basis.ranks.sum(), rel=0.05)
    assert abs(b.row_basis.ranks.sum() - b.col_basis.ranks.sum()) <= 0.01 * b.row_basis.ranks.sum()


@pytest.mark.parametrize("cols", [None, "clustered"])
def test_compression_commutes_with_transposition(cols):
    """compress(Aᵀ) and compress(A)ᵀ keep the same promise with the same ranks."""
    A = matrix(cols=cols)
    a, b = h2gpu.compress(A.T, 1e-5), h2gpu.compress(A, 1e-5).T
    assert abs(a.row_basis.ranks.sum() - b.row_basis.ranks.sum()) <= 2
    assert difference(a.to_dense(), b.to_dense()) <= 2e-5


# Rules of rank, one by one


@given(st.integers(0, 9), st.integers(0, 9), st.floats(0, 3), st.integers(0, 99))
def test_the_shared_budget_keeps_the_fewest_values_whose_rest_is_affordable(clusters, values, allowance, seed):
    """Σ discarded σ² ≤ allowance, and discarding the next smallest would exceed it."""
    sigma = np.sort(np.random.default_rng(seed).random((clusters, values)), axis=1)[:, ::-1]
    ranks = SharedBudget()(sigma, allowance)
    kept = np.arange(values) < ranks[:, None]
    assert np.sum(sigma[~kept] ** 2) <= allowance * (1 + 1e-14)
    if kept.any():
        assert np.sum(sigma[~kept] ** 2) + sigma[kept].min() ** 2 > allowance * (1 - 1e-14)


@given(st.integers(1, 5), st.integers(1, 9), st.floats(1e-6, 0.9), st.integers(0, 99))
def test_the_papers_rule_keeps_the_fewest_values_of_each_cluster(clusters, values, rtol, seed):
    """Smallest k with (Σ_{i≥k} σ_i²)^½ ≤ rtol ‖σ‖"""
    sigma = np.sort(np.random.default_rng(seed).random((clusters, values)) ** 4, axis=1)[:, ::-1]
    for row, k in zip(sigma, RelativeToBasis(rtol)(sigma, None)):
        tail = [np.linalg.norm(row[i:]) for i in range(values + 1)]
        assert k == next(i for i in range(values + 1) if tail[i] <= rtol * tail[0])


@pytest.mark.parametrize("decompose", [FullSVD(), RandomizedSVD(samples=4)])
def test_truncating_a_basis_itself_keeps_its_budget(decompose):
    """Σ over leaves ‖U_t − Ũ_t T_t‖² ≤ budget for weights of identity, T_t of the changes"""
    basis = matrix().row_basis
    budget = 1e-3
    Q, change = truncate(basis, None, budget, decompose, SharedBudget())
    leaves = basis.tree.leaves
    error = sum(np.linalg.norm(basis.leaf[i] - Q.leaf[i] @ change.matrices[int(t)]) ** 2 for i, t in enumerate(leaves))
    assert error <= budget
    assert Q.ranks.sum() < basis.ranks.sum()


def test_what_a_decomposition_misses_is_spent_before_singular_values_are_discarded():
    """Σ levels (residual + discarded²) ≤ budget"""
    spent, rule = [], SharedBudget()

    def missing_nine_tenths(M, allowed):
        U, sigma, _ = FullSVD()(M, allowed)
        spent.append(90 * allowed)  # `allowed` is a hundredth of the level's share
        return U, sigma, 90 * allowed

    def watched_rule(sigma, allowance):
        ranks = rule(sigma, allowance)
        spent.append(np.sum(sigma[np.arange(sigma.shape[1]) >= ranks[:, None]] ** 2))
        return ranks

    truncate(matrix().row_basis, None, 5.0, missing_nine_tenths, watched_rule)
    assert 4.5 < sum(spent) <= 5.0


# Bad arguments


@pytest.mark.parametrize("rtol", [0, 1, 1.5, -1e-3, 1e-20, np.nan, np.inf, "1e-6", None, 1e-6j])
def test_an_rtol_out_of_range_gives_one_clear_error(rtol):
    with pytest.raises(ValueError, match=r"rtol: expected a number from 1.8e-15 .* float64 .* to below 1, got"):
        h2gpu.compress(matrix(n=50), rtol)


def test_float32_cannot_hold_what_float64_can():
    with pytest.raises(ValueError, match=r"rtol: expected a number from 9.5e-07 \(what float32"):
        h2gpu.compress(matrix(n=50, dtype=np.float32), 1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "qr"}, 'method: expected "weighted" or "basis", got \'qr\''),
        ({"method": None}, "method: expected"),
        ({"svd": "lapack"}, 'svd: expected "auto", "jacobi" or "randomized", got \'lapack\''),
    ],
)
def test_unknown_methods_give_one_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        h2gpu.compress(matrix(n=50), 1e-3, **arguments)


def test_other_things_are_not_compressed():
    with pytest.raises(TypeError, match=r"compress: expected an H2Matrix, as h2gpu\.build makes, got ndarray"):
        h2gpu.compress(np.eye(3))


@pytest.mark.parametrize("svd", ["auto", "randomized"])
def test_a_covariance_that_gives_nan_far_away_fails_clearly(svd):
    with np.errstate(invalid="ignore"):
        A = matrix(cov=from_function(lambda x, y: np.sqrt(0.3 - np.abs(x - y).sum(axis=-1))))
    with pytest.raises(np.linalg.LinAlgError, match="NaN or Inf"), np.errstate(invalid="ignore"):
        h2gpu.compress(A, 1e-3, svd=svd)


def test_what_compression_no_longer_needs_is_freed_at_once(xp):
    """No array waits for the collector of cycles: it would be counted in the peak."""
    points = xp.asarray(points_of("uniform", 2000, 2))
    gc.collect()
    gc.disable()
    try:
        h2gpu.compress(streamed(points, Exponential(1.0, 0.2), leaf_size=32, order=5), 1e-4)
        alive = _batches()
        gc.collect()
        assert _batches() == alive
    finally:
        gc.enable()


def _batches():
    return sum(type(thing) is MatrixBatch for thing in gc.get_objects())  # asks nobody else for their class


@pytest.mark.gpu
@pytest.mark.parametrize(("split", "order", "leaf_size"), [("median", 5, 25), ("mean", 5, 30), ("median", 8, 64)])
def test_ranks_that_stay_on_the_gpu_are_those_waited_for(split, order, leaf_size, monkeypatch):
    """Truncations that wait at every level, at some, at as few as they can."""
    cupy = pytest.importorskip("cupy")
    points = cupy.asarray(np.random.default_rng(0).random((2000, 2)) ** 2)
    A = streamed(points, Exponential(1.0, 0.2), leaf_size=leaf_size, order=order, split=split)
    Z, levels = list(total_weights(A.row_basis, A.couplings, triangular_factors(A.col_basis))), []
    found = []
    for room in (0, 4 << 15, 16 << 15, 1 << 40):
        monkeypatch.setitem(level_store.ROOM, "cupy", room)
        levels.append(level_store._first_to_wait(A.row_basis, 0, TruncatedSVD.resident, Z))
        found.append(truncate(A.row_basis, list(Z), 1e-4, TruncatedSVD(), SharedBudget()))
    assert levels == sorted(levels) and levels[-1] > levels[0]
    expected, change = found[0]
    for basis, changed in found[1:]:
        np.testing.assert_array_equal(basis.ranks, expected.ranks)
        for U, V in zip(bases_of(basis), bases_of(expected)):
            np.testing.assert_allclose(U @ (U.T @ V), V, rtol=0, atol=1e-9)  # the same spaces
        norms = [to_host(h2gpu.batched.frobenius_norms(T.matrices)) for T in (changed, change)]
        np.testing.assert_allclose(*norms, rtol=1e-9)
