"""Compression keeps its promise ‖A − Ã‖_F ≤ rtol ‖A‖_F, and spends it."""

from itertools import pairwise

import numpy as np
import pytest
from compressible import COVARIANCES, METHODS, RTOLS, SPLITS, SVDS, assert_promise, matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import EPS, dense_of, difference, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, from_function

# The promise


@settings(max_examples=70)
@given(
    name=st.sampled_from(["uniform", "clustered", "duplicates", "grid", "outlier", "collinear", "all_equal"]),
    n=st.integers(1, 400),
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
    A = matrix(n=1200, cov=Matern(1.0, 0.2, 1.5), xp=xp, order=6, leaf_size=36)
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
