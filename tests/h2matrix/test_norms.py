"""Frobenius norms and errors by blocks are those of the dense matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import EPS, dense_of, difference, point_sets, points_of

import h2gpu
from h2gpu.batched.device import threads
from h2gpu.covariance import Exponential, Gaussian, Matern
from h2gpu.h2matrix.compression.orthogonalization import triangular_factors
from h2gpu.h2matrix.compression.weights import total_weights
from h2gpu.h2matrix.norms import farfield_square, nearfield_norm

PARAMETERS = {"leaf_size": 8, "order": 3, "split": "mean"}


def norm_by_blocks(A):
    """‖A‖_F² = Σ_near ‖D_ts‖² + Σ_far ‖R_t S_ts R_sᵀ‖²"""
    Z = total_weights(A.row_basis, A.couplings, triangular_factors(A.col_basis))
    return np.hypot(nearfield_norm(A.nearfield), float(farfield_square(A.row_basis, Z)) ** 0.5)


@settings(max_examples=50)
@given(point_sets(), st.sampled_from([1, 5, 20]), st.integers(1, 4), st.booleans())
def test_the_norm_by_blocks_is_the_norm(points, leaf_size, order, rectangular):
    cols = points[::2] + 0.25 if rectangular else None
    A = h2gpu.build(points, Exponential(1.0, 0.3), col_points=cols, leaf_size=leaf_size, order=order, split="mean")
    assert norm_by_blocks(A) == pytest.approx(np.linalg.norm(dense_of(A)), rel=1e-12)


def test_the_norm_of_the_farfield_is_that_of_all_its_leaves_however_few_a_cache_holds(monkeypatch):
    A = h2gpu.build(points_of("uniform", 300, 2), Exponential(1.0, 0.3), **{**PARAMETERS, "leaf_size": 16})
    assert not A.row_basis.identical.all()
    for entries in (1, 500):
        monkeypatch.setattr(threads, "CACHED", entries)
        assert norm_by_blocks(A) == pytest.approx(np.linalg.norm(dense_of(A)), rel=1e-12)


@pytest.mark.parametrize("rectangular", [False, True])
@pytest.mark.parametrize("name", ["uniform", "clustered", "duplicates", "outlier"])
def test_the_error_by_blocks_is_the_error_for_any_two_matrices_on_the_same_trees(name, rectangular, xp):
    """Different orders have different bases and couplings; another covariance a different nearfield too."""
    points, cols = xp.asarray(points_of(name, 300, 2)), xp.asarray(points_of(name, 200, 2, seed=1))
    arguments = {**PARAMETERS, "col_points": cols if rectangular else None}
    A = h2gpu.build(points, Exponential(1.0, 0.3), **arguments)
    for cov, order in ((Exponential(1.0, 0.3), 2), (Exponential(1.1, 0.3), 3), (Matern(1.0, 0.2, 1.5), 4)):
        B = h2gpu.build(points, cov, **{**arguments, "order": order})
        assert A.relative_error(B) == pytest.approx(difference(dense_of(A), dense_of(B)), rel=1e-10)


def test_small_differences_are_seen_to_rounding():
    """No cancellation: an error of 10⁻¹² is measured to a few digits, and that of equal matrices is rounding."""
    points = points_of("uniform", 400, 2)
    A = h2gpu.build(points, Exponential(1.0, 0.3), **PARAMETERS)
    B = h2gpu.build(points, Exponential(1.0 + 1e-12, 0.3), **PARAMETERS)
    assert A.relative_error(B) == pytest.approx(1e-12, rel=1e-2)
    assert A.relative_error(A) <= 10 * EPS


def test_a_zero_matrix_differs_from_itself_by_nothing():
    A = h2gpu.build(np.zeros((30, 1)), Gaussian(), col_points=np.full((20, 1), 99.0), leaf_size=4, order=2)
    assert A.relative_error(A) == 0
    assert A.relative_error(h2gpu.compress(A, 1e-3)) == 0


@pytest.mark.parametrize(
    "other",
    [
        {"points": points_of("uniform", 100, 2, seed=1)},
        {"points": points_of("uniform", 101, 2)},
        {"points": points_of("uniform", 100, 2).astype(np.float32)},
        {"leaf_size": 9},
        {"eta": 2.0},
        {"split": "median"},
        {"col_points": points_of("uniform", 100, 2)},
    ],
    ids=repr,
)
def test_matrices_on_other_trees_are_refused(other):
    arguments = {"points": points_of("uniform", 100, 2), "cov": Exponential(), **PARAMETERS}
    A, B = h2gpu.build(**arguments), h2gpu.build(**{**arguments, **other})
    with pytest.raises(ValueError, match=r"relative_error: expected two matrices .* through sampled_error"):
        A.relative_error(B)
    with pytest.raises(TypeError, match="relative_error: expected an H2Matrix, got ndarray"):
        A.relative_error(A.to_dense())
