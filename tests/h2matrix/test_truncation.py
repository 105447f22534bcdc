"""Truncation: the rules that choose ranks, one by one, and the budget that they spend."""

import numpy as np
import pytest
from compressible import matrix
from hypothesis import given
from hypothesis import strategies as st
from reference import bases_of, streamed

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.covariance import Exponential
from h2gpu.h2matrix import truncate
from h2gpu.h2matrix.compression import level_store
from h2gpu.h2matrix.compression.decompositions import FixedSamples, FullSVD, RandomizedSVD, TruncatedSVD
from h2gpu.h2matrix.compression.orthogonalization import triangular_factors
from h2gpu.h2matrix.compression.truncation import RelativeToBasis, SharedBudget
from h2gpu.h2matrix.compression.weights import total_weights


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


@pytest.mark.parametrize("xp", [np, pytest.param("cupy", marks=pytest.mark.gpu)])
def test_as_many_samples_as_the_rank_find_all_of_a_matrix(xp):
    """U Uᵀ M = M and sigma its singular values, for M of rank 6 and 6 samples; small ones are found whole by any."""
    xp = pytest.importorskip("cupy") if xp == "cupy" else xp
    rng = np.random.default_rng(0)
    M = [rng.standard_normal((m, 6)) @ rng.standard_normal((6, n)) for m, n in ((20, 15), (9, 30), (4, 12), (12, 5))]
    batch = MatrixBatch.from_matrices([xp.asarray(A) for A in M])
    for samples, part in ((6, slice(0, 4)), (6, slice(2, 4)), (16, slice(0, 4))):
        U, sigma, residual, info = FixedSamples(samples)(batch[part], 0.0)
        assert float(residual) == 0 and (to_host(info) >= 0).all() and len(info) == len(U)
        assert FixedSamples(samples, truncated=False)(batch[part], 0.0)[1] is None
        for A, V, s in zip(M[part], map(to_host, U.matrices()), to_host(sigma)):
            assert V.shape[1] == min(samples, *A.shape)
            np.testing.assert_allclose(V @ (V.T @ A), A, rtol=0, atol=1e-12 * np.linalg.norm(A))
            exact = np.linalg.svd(A)[1][: V.shape[1]]
            np.testing.assert_allclose(s[: V.shape[1]], exact, rtol=1e-9, atol=1e-12 * exact[0])


def test_fixed_samples_miss_less_the_more_there_are_and_promise_nothing():
    """All samples kept: ranks are their number, whatever is allowed; with as many as columns nothing is missed."""
    A, errors = matrix(), []
    for samples in (4, 8, 16, 64):
        B = h2gpu.compress(A, 1e-3, svd=FixedSamples(samples, truncated=False), storage="full")
        assert B.row_basis.ranks.max() == min(samples, A.row_basis.ranks.max())
        errors.append(A.relative_error(B))
    assert errors == sorted(errors, reverse=True) and errors[0] > 1e-3 and errors[-1] < 1e-13
    B = h2gpu.compress(A, 1e-3, svd=FixedSamples(64), storage="full")
    assert A.relative_error(B) <= 1e-3 and B.row_basis.ranks.sum() < A.row_basis.ranks.sum()


@pytest.mark.gpu
def test_no_rank_is_read_where_all_samples_are_kept(monkeypatch):
    """The level store asks the device for nothing; ranks are those of the CPU, errors within a factor of 2."""
    cupy = pytest.importorskip("cupy")
    points = np.random.default_rng(0).random((600, 2))
    errors, ranks, read = [], [], []
    monkeypatch.setattr(level_store, "to_host", lambda array: read.append(array) or to_host(array))
    for xp in (np, cupy):
        A = streamed(xp.asarray(points), Exponential(1.0, 0.2), leaf_size=30, order=5)
        B = h2gpu.compress(A, 1e-3, svd=FixedSamples(12, truncated=False), storage="full")
        errors.append(A.relative_error(B))
        ranks.append(B.row_basis.ranks)
        assert xp is np or not read
        read.clear()
    np.testing.assert_array_equal(*ranks)
    assert 0.5 < errors[0] / errors[1] < 2


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
