"""Orthogonal nested bases, and matrices in them: QᵀQ = I for all clusters, Q_t R_t = U_t, A as it was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import EPS, bases_of, dense_of, point_sets, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.clustering import ClusterTree
from h2gpu.covariance import Exponential
from h2gpu.h2matrix import ClusterBasis, orthogonalize, project
from h2gpu.h2matrix.compression.orthogonalization import by_turns, triangular_factors


def matrix(points, xp=np, leaf_size=8, order=3, split="mean", **more):
    return h2gpu.build(xp.asarray(points), Exponential(1.0, 0.3), leaf_size=leaf_size, order=order, split=split, **more)


def orthogonalized(A):
    """A in orthogonal bases: S' = R_t S R_sᵀ."""
    rows, row_change = orthogonalize(A.row_basis)
    cols, col_change = (rows, row_change) if A.symmetric else orthogonalize(A.col_basis)
    return A.replace(row_basis=rows, col_basis=cols, couplings=project(A.couplings, rows, cols, row_change, col_change))


@settings(max_examples=40)
@given(point_sets(), st.integers(1, 20), st.integers(1, 4), st.sampled_from(["median", "mean"]))
def test_every_cluster_has_an_orthonormal_basis_of_the_same_span(points, leaf_size, order, split):
    """QᵀQ = I and U_t = Q_t R_t for all clusters, Q nested"""
    basis = matrix(points, leaf_size=leaf_size, order=order, split=split).row_basis
    Q_basis, change = orthogonalize(basis)
    U, Q = bases_of(basis), bases_of(Q_basis)
    for t in range(len(basis.tree)):
        k, R = Q_basis.ranks[t], change.matrices[t]
        assert Q[t].shape == (basis.tree.sizes[t], k) and R.shape == (k, basis.ranks[t])
        assert k <= min(basis.ranks[t], basis.tree.sizes[t])
        np.testing.assert_allclose(Q[t].T @ Q[t], np.eye(k), rtol=0, atol=100 * EPS)
        np.testing.assert_allclose(Q[t] @ R, U[t], rtol=0, atol=500 * EPS * np.abs(U[t]).max(initial=1))


@pytest.mark.parametrize("name", ["uniform", "duplicates", "collinear", "outlier"])
def test_triangular_factors_alone_are_those_of_the_orthogonalization(name, xp):
    """RᵀR = UᵀU for all clusters, without forming Q."""
    check_triangular_factors(matrix(points_of(name, 300, 2), xp).row_basis)


def test_levels_take_turns_in_the_room_of_the_largest():
    basis = matrix(points_of("outlier", 300, 2)).row_basis
    tree, rows = basis.tree, np.minimum(basis.tree.sizes, basis.ranks)
    RE = by_turns(tree, rows, basis)
    sizes = [int(RE.sizes[tree.span(l)].sum()) for l in range(tree.levels)]
    assert RE.buffer.size == max(sizes) < sum(sizes)
    for l in range(tree.levels):
        level = RE[tree.span(l)]
        assert level.offsets[0] == 0 and (np.diff(level.offsets) == level.sizes[:-1]).all()
        assert (level.rows == rows[tree.span(l)]).all()


def test_triangular_factors_above_levels_without_any(xp):
    """Deep leaves close to all of a far set of columns have no basis; some of the clusters above them do."""
    points, cols = (xp.asarray(points_of(*which)) for which in (("clustered", 283, 3), ("uniform", 141, 3, 1)))
    basis = matrix(points, leaf_size=27, xp=xp, col_points=cols).row_basis
    deepest = basis.tree.span(basis.tree.levels - 1)
    assert not basis.ranks[deepest].any() and basis.ranks.any()
    check_triangular_factors(basis)


def check_triangular_factors(basis):
    R, U = triangular_factors(basis), bases_of(basis)
    _, change = orthogonalize(basis)
    for t in range(len(basis.tree)):
        G, factor, other = U[t].T @ U[t], to_host(R[t]), to_host(change.matrices[t])
        np.testing.assert_allclose(factor.T @ factor, G, rtol=0, atol=500 * EPS * np.abs(G).max(initial=1))
        np.testing.assert_allclose(other.T @ other, G, rtol=0, atol=500 * EPS * np.abs(G).max(initial=1))


@pytest.mark.parametrize("name", ["uniform", "clustered", "duplicates", "collinear", "all_equal"])
@pytest.mark.parametrize("rectangular", [False, True])
def test_the_matrix_stays_the_same_in_orthogonal_bases(name, rectangular, xp):
    """Q_t (R_t S_ts R_sᵀ) Q_sᵀ = U_t S_ts U_sᵀ"""
    cols = xp.asarray(points_of(name, 200, 2, seed=1)) if rectangular else None
    A = matrix(points_of(name, 300, 2), xp, col_points=cols)
    before = dense_of(A)
    B = orthogonalized(A)
    np.testing.assert_allclose(dense_of(B), before, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(dense_of(A), before)
    np.testing.assert_allclose(to_host(B @ xp.ones(A.shape[1])), before.sum(axis=1), rtol=1e-12)


def test_bases_of_more_columns_than_points_lose_the_surplus():
    """R_t has min(points, rank) rows at leaves, at most its children's above: QᵀQ = I, Q R = U still."""
    tree, rng = ClusterTree.build(points_of("uniform", 40, 2), 3), np.random.default_rng(0)
    ranks = rng.integers(0, 9, len(tree))
    leaf = MatrixBatch.empty(tree.sizes[tree.leaves], ranks[tree.leaves], float)
    transfer = MatrixBatch.empty(ranks, np.where(tree.parent >= 0, ranks[tree.parent], 0), float)
    for batch in (leaf, transfer):
        batch.buffer[...] = rng.standard_normal(batch.buffer.size)
    basis = ClusterBasis(tree, ranks, leaf, transfer)
    Q_basis, change = orthogonalize(basis)
    for t, (U, Q) in enumerate(zip(bases_of(basis), bases_of(Q_basis))):
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), rtol=0, atol=100 * EPS)
        np.testing.assert_allclose(Q @ change.matrices[t], U, rtol=0, atol=500 * EPS * np.abs(U).max(initial=1))
        assert Q.shape[1] <= min(U.shape)


def test_float32_bases_are_orthonormal_to_float32():
    A = matrix(points_of("uniform", 300, 2).astype(np.float32))
    Q, change = orthogonalize(A.row_basis)
    assert Q.dtype == change.matrices.dtype == np.float32
    for basis in bases_of(Q):
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), rtol=0, atol=100 * np.finfo(np.float32).eps)
