"""H²-matrices from entries and products alone: the accuracy asked for, few entries, clear errors."""

import numpy as np
import pytest
from reference import POINT_SETS, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.covariance import Exponential
from h2gpu.h2matrix.skeletons import known
from h2gpu.h2matrix.skeletons.interpolative import interpolative

WAYS = "entries", "samples", "dense"


def logarithm(x, y):
    """Of distances: no covariance, and of both signs."""
    return np.log(np.linalg.norm(x - y, axis=-1) + 0.1)


def turning(x, y):
    """A kernel that is not symmetric."""
    return logarithm(x, y) * (1 + x[..., 0] - 2 * y[..., 1])


def made(way, M, points, rtol, xp=np, **parameters):
    """The matrix by one of the ways; M dense on the host."""
    points, there = xp.asarray(points), xp.asarray(M)
    if parameters.get("col_points") is not None:
        parameters["col_points"] = xp.asarray(parameters["col_points"])
    if way == "dense":
        return h2gpu.from_dense(points, there, rtol, **parameters)
    if way == "entries":
        return h2gpu.from_entries(points, lambda i, j: there[i, j], rtol, **parameters)
    if "col_points" in parameters:
        parameters["transposed"] = lambda Y: there.T @ Y
    return h2gpu.from_samples(points, lambda X: there @ X, lambda i, j: there[i, j], rtol, **parameters)


def error(A, M):
    return np.linalg.norm(to_host(A.to_dense()) - M) / np.linalg.norm(M)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rtol", [1e-3, 1e-8])
def test_the_accuracy_is_reached(way, rtol, xp):
    x = points_of("uniform", 900, 2)
    M = logarithm(x[:, None], x[None])
    A = made(way, M, x, rtol, xp, leaf_size=32)
    assert A.symmetric and error(A, M) <= 1.2 * rtol
    assert A.row_basis.ranks.max() < 32


@pytest.mark.parametrize("way", WAYS)
def test_kernels_that_are_not_symmetric(way, xp):
    x, y = points_of("clustered", 700, 2), points_of("uniform", 400, 2, seed=1)
    M = turning(x[:, None], y[None])
    A = made(way, M, x, 1e-6, xp, col_points=y, leaf_size=16)
    assert A.shape == (700, 400) and error(A, M) <= 1.2e-6
    v = xp.asarray(np.random.default_rng(0).standard_normal(700))
    np.testing.assert_allclose(to_host(A.rmatvec(v)), M.T @ to_host(v), atol=1e-3)


@pytest.mark.parametrize("name", POINT_SETS)
def test_every_set_of_points(name):
    """Trees whose leaves lie on several levels among them: blocks between levels are met in the right order."""
    x = points_of(name, 350, 2)
    M = Exponential(1.0, 0.3)(x)
    for way in ("entries", "samples"):
        assert error(made(way, M, x, 1e-5, leaf_size=8, eta=0.8), M) <= 1.5e-5


@pytest.mark.parametrize("dim", [1, 3])
def test_other_dimensions(dim):
    x = points_of("uniform", 600, dim)
    M = logarithm(x[:, None], x[None])
    assert error(made("samples", M, x, 1e-5, leaf_size=16), M) <= 1.2e-5


def test_single_precision_stays_single():
    x = points_of("uniform", 500, 2).astype(np.float32)
    M = logarithm(x[:, None], x[None])
    A = made("entries", M, x, 1e-4, leaf_size=16)
    assert A.dtype == np.float32 and error(A, M) <= 1.2e-4


def test_entries_asked_for_grow_linearly():
    """Of twice as many points as many more as of four times as many, by half."""
    asked = []
    for n in (500, 1000, 2000):
        x, count = points_of("uniform", n, 2), []

        def entries(i, j, x=x, count=count):
            count.append(len(i))
            return logarithm(x[i], x[j])

        h2gpu.from_entries(x, entries, 1e-3, leaf_size=32)
        asked.append(sum(count))
    assert asked[2] - asked[1] <= 2.6 * (asked[1] - asked[0]) and asked[2] < 2000**2


def test_ranks_beyond_the_first_samples_are_found():
    """Blocks of rank 80 take more than the 64 samples of the first attempt."""
    rng, x = np.random.default_rng(0), points_of("uniform", 800, 1)
    M = np.eye(800) + (lambda X: X @ X.T)(rng.standard_normal((800, 80)))
    A = made("samples", M, x, 1e-6, leaf_size=100)
    assert error(A, M) <= 1.2e-6 and A.row_basis.ranks.max() == 80


def test_updated_matrices_are_found_again():
    """The product of two covariance matrices, known by A (B X) and by rows alone."""
    x = points_of("uniform", 600, 2)
    A, B = (h2gpu.covariance_matrix(x, Exponential(1.0, length), 1e-9) for length in (0.3, 0.6))
    M = A.to_dense() @ B.to_dense()
    C = h2gpu.H2Matrix.from_samples(
        x, lambda X: A @ (B @ X), lambda i, j: M[i, j], 1e-6, transposed=lambda Y: B @ (A @ Y), col_points=x
    )
    assert error(C, M) <= 1.2e-6


def test_few_points_are_one_dense_block():
    x = points_of("uniform", 20, 2)
    M = logarithm(x[:, None], x[None])
    for way in WAYS:
        np.testing.assert_allclose(made(way, M, x, 1e-3, storage="full").to_dense(), M, rtol=1e-12)


def test_interpolative_decompositions_of_a_batch(xp):
    """U is the identity in the kept rows, and Y = U Y[J] where the rank says so."""
    rng = np.random.default_rng(0)
    Y = [rng.standard_normal((m, k)) @ rng.standard_normal((k, 30)) for m, k in ((9, 3), (20, 20), (5, 0), (12, 7))]
    batch = MatrixBatch.from_matrices([xp.asarray(y) for y in Y])
    U, ranks, kept = interpolative(batch, 1e-10)
    assert ranks.tolist() == [3, 20, 0, 7]
    for y, u, J in zip(Y, U.matrices(), np.split(kept, np.cumsum(ranks)[:-1])):
        u = to_host(u)
        np.testing.assert_allclose(u[J], np.eye(len(J)), atol=1e-12)
        np.testing.assert_allclose(u @ y[J], y, atol=1e-9)


def test_blocks_of_full_rank_are_told_where_attempts_end(monkeypatch):
    x, M = points_of("uniform", 600, 2), NOISE + NOISE.T
    assert error(made("samples", M, x, 1e-3), M) <= 1.2e-3  # as many samples as there are columns
    monkeypatch.setattr(known, "ATTEMPTS", 1)
    monkeypatch.setattr(known, "FIRST_SAMPLES", 16)
    with pytest.raises(ValueError, match=r"rtol: 0.001 was not reached with .* far blocks are not of low rank"):
        made("samples", M, x, 1e-3)


NOISE = np.random.default_rng(1).standard_normal((600, 600))


@pytest.mark.parametrize("make, words", [
    (lambda x: made("entries", turning(x[:, None], x[None]), x, 1e-6), "or the matrix is not symmetric"),
    (lambda x: made("dense", NOISE, x, 1e-6), "from_dense: expected a symmetric M, or col_points"),
    (lambda x: h2gpu.from_dense(x, NOISE[:3]), r"from_dense: expected points, then M of shape \(600, 600\)"),
    (lambda x: h2gpu.from_dense(NOISE, x), r"from_dense: expected points, then M of shape \(600, 600\)"),
    (lambda x: h2gpu.from_entries(x, lambda i, j: 1.0), "entries: expected finite real numbers of shape"),
    (lambda x: h2gpu.from_entries(x, lambda i, j: i / 0.0 * j), "with NaN or Inf"),
    (lambda x: h2gpu.from_entries(x, lambda i, j: 1j * (i == j)), r"got complex128 of shape \(\d+,\)$"),
    (lambda x: h2gpu.from_dense(x, NOISE * np.nan), "from_dense: expected M of finite .* float64, or NaN"),
    (lambda x: h2gpu.from_dense(x, NOISE * 1j), "from_dense: expected M of finite real numbers, got complex128"),
    (lambda x: h2gpu.from_samples(x, lambda X: X[:3], lambda i, j: 1.0 * (i == j)), r"expected product\(X\) of finite"),
    (lambda x: h2gpu.from_samples(x, None, None, col_points=x), r"expected transposed\(Y\) = Mᵀ Y and col_points"),
    (lambda x: h2gpu.from_entries(x, lambda i, j: 1.0 * (i == j), 2.0), "rtol: expected a number from"),
    (lambda x: h2gpu.from_entries(x, lambda i, j: 1.0 * (i == j), leaf_size=0), "leaf_size: expected a positive"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:(divide|invalid)")
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make(points_of("uniform", 600, 2))


@pytest.mark.parametrize("make, words", [
    (lambda x: h2gpu.from_entries(x, NOISE), "entries: expected a function, got ndarray.*; from_dense takes matrices"),
    (lambda x: h2gpu.from_samples(x, NOISE, lambda i, j: NOISE[i, j]), "product: expected a function, got"),
    (lambda x: h2gpu.from_samples(x, len, len, transposed=3, col_points=x), "transposed: ex"),
])  # fmt: skip
def test_matrices_are_no_functions(make, words):
    with pytest.raises(TypeError, match=words):
        make(points_of("uniform", 600, 2))
