"""Compression leaves A alone and keeps symmetry; variants agree, bad arguments give one clear error."""

import gc

import numpy as np
import pytest
from compressible import COVARIANCES, METHODS, SVDS, matrix
from reference import EPS, bases_of, dense_of, difference, points_of, streamed

import h2gpu
from h2gpu.batched import MatrixBatch
from h2gpu.covariance import Exponential, from_function

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
    points = xp.asarray(points_of("uniform", 1000, 2))
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
