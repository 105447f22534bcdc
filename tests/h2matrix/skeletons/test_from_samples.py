"""H²-matrices of products: what no covariance function tells, how many products are needed, operators as they come."""

import numpy as np
import pytest
import scipy.sparse
from reference import points_of
from scipy.sparse.linalg import LinearOperator, aslinearoperator, splu

import h2gpu
from h2gpu.covariance import Exponential


def error(A, M):
    return np.linalg.norm(A.to_dense() - M) / np.linalg.norm(M)


def elliptic(*shape):
    """Points of a grid, and −Δ + 1 on it with zeros around, in units of the grid: sparse and positive definite."""
    sides = [scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)) for n in shape]
    L = scipy.sparse.identity(1)
    for side in sides:
        L = scipy.sparse.kron(L, scipy.sparse.identity(side.shape[0])) + scipy.sparse.kron(
            scipy.sparse.identity(L.shape[0]), side
        )
    points = np.stack(np.meshgrid(*(np.arange(float(n)) for n in shape), indexing="ij"), -1).reshape(-1, len(shape))
    return points, (L - (1 - 0.01) * scipy.sparse.identity(len(points))).tocsc()


@pytest.mark.parametrize(("dim", "n", "rtol"), [(1, 1500, 1e-8), (2, 1000, 1e-6), (3, 1000, 1e-4)])
def test_exponential_covariances(dim, n, rtol):
    """The same accuracy as of a covariance function, measured in the same way."""
    x, cov = points_of("uniform", n, dim), Exponential(1.0, 0.3)
    M = cov(x)
    A = h2gpu.from_samples(x, lambda X: M @ X, lambda i, j: M[i, j], rtol, leaf_size=32)
    assert error(A, M) <= 1.2 * rtol and h2gpu.sampled_error(A, x, cov, random_state=1) <= 1.5 * rtol
    assert A.nbytes < M.nbytes


def test_inverse_of_a_sparse_matrix():
    """By solutions with a sparse factorization; its columns are solutions too, kept as they are asked for."""
    x, L = elliptic(30, 40)
    solve, inverse = splu(L).solve, np.linalg.inv(L.toarray())
    A = h2gpu.from_samples(x, solve, lambda i, j: inverse[i, j], 1e-7, leaf_size=32)
    assert error(A, inverse) <= 1.2e-7
    b = np.random.default_rng(0).standard_normal(len(x))
    assert np.linalg.norm(L @ (A @ b) - b) <= 1e-5 * np.linalg.norm(b)


def test_schur_complement():
    """S = A₂₂ − A₂₁ A₁₁⁻¹ A₁₂ of the plane in the middle of a box, by solutions on both sides of it."""
    x, L = elliptic(7, 24, 24)
    middle = x[:, 0] == 3
    A11, A12, A22 = L[~middle][:, ~middle].tocsc(), L[~middle][:, middle], L[middle][:, middle]
    solve = splu(A11).solve
    S = A22.toarray() - A12.T @ solve(A12.toarray())
    A = h2gpu.from_samples(
        x[middle][:, 1:], lambda X: A22 @ X - A12.T @ solve(A12 @ X), lambda i, j: S[i, j], 1e-8, leaf_size=16
    )
    assert A.symmetric and error(A, S) <= 1.2e-8
    B = h2gpu.compress(A, 1e-4)
    assert error(B, S) <= 1.2e-4 and B.nbytes < A.nbytes


def test_product_of_matrices_that_is_not_symmetric():
    """A diag(w) B by products alone, and what SciPy makes of them: an operator that knows its transpose."""
    x, w = points_of("clustered", 800, 2), np.random.default_rng(0).random(800)
    A, B = (Exponential(1.0, length)(x) for length in (0.3, 0.6))
    M = (A * w) @ B
    operator = aslinearoperator(A) @ aslinearoperator(np.diag(w)) @ aslinearoperator(B)
    C = h2gpu.from_samples(x, operator, lambda i, j: M[i, j], 1e-6, col_points=x, leaf_size=32)
    assert not C.symmetric and error(C, M) <= 1.2e-6


def test_what_comes_out_is_saved_and_summed_as_others(tmp_path):
    x = points_of("uniform", 700, 2)
    C, M = h2gpu.build(x, Exponential(1.0, 0.3), leaf_size=32), Exponential(1.0, 0.3)(x)
    A = h2gpu.from_samples(x, C, lambda i, j: M[i, j], 1e-6, leaf_size=32, storage="full")
    h2gpu.save(A, tmp_path / "A.h5")
    again = h2gpu.load(tmp_path / "A.h5")
    np.testing.assert_array_equal(again.to_dense(), A.to_dense())
    assert np.linalg.norm((C - A).to_dense()) <= 2e-6 * np.linalg.norm(M)  # the same trees and blocks
    X = np.random.default_rng(0).standard_normal((700, 3))
    np.testing.assert_allclose(A @ X, A.to_dense() @ X, atol=1e-10)


def test_products_grow_as_ranks():
    """Eight times the points take no more than the products for their ranks: at most twice, and 16."""
    asked = []
    for n in (1000, 8000):
        x, count = points_of("uniform", n, 1), []
        C = h2gpu.covariance_matrix(x, Exponential(1.0, 0.3), 1e-8)

        def product(X, C=C, count=count):
            count.append(X.shape[1])
            return C @ X

        A = h2gpu.from_samples(x, product, lambda i, j, x=x: np.exp(-abs(x[i, 0] - x[j, 0]) / 0.3), 1e-5)
        assert sum(count) <= max(64, 2 * (A.row_basis.ranks.max() + 8))
        asked.append(sum(count))
    assert asked[-1] <= 64


def test_products_of_before_are_kept():
    """Rank 80: 64 products do not suffice, 64 more do; no random vector is asked about twice."""
    rng, x, asked = np.random.default_rng(0), points_of("uniform", 800, 1), []
    M = np.eye(800) + (lambda X: X @ X.T)(rng.standard_normal((800, 80)))

    def product(X):
        asked.append(X.copy())
        return M @ X

    A = h2gpu.from_samples(x, product, lambda i, j: M[i, j], 1e-6, leaf_size=100)
    assert error(A, M) <= 1.2e-6 and [X.shape[1] for X in asked] == [64, 64]
    assert np.linalg.matrix_rank(np.hstack(asked)) == 128


@pytest.mark.parametrize("kind", ["H2Matrix", "LinearOperator", "sparse"])
def test_operators_are_taken_as_they_are(kind):
    x, y = points_of("uniform", 300, 2), points_of("uniform", 200, 2, seed=1)
    M = Exponential(1.0, 0.3)(x, y)
    given = {
        "H2Matrix": h2gpu.build(x, Exponential(1.0, 0.3), col_points=y, order=12),
        "LinearOperator": LinearOperator(M.shape, lambda v: M @ v, lambda v: M.T @ v, dtype=float),
        "sparse": scipy.sparse.csr_array(M),
    }[kind]
    A = h2gpu.from_samples(x, given, lambda i, j: M[i, j], 1e-5, col_points=y, leaf_size=16)
    assert error(A, M) <= 1.2e-5


def test_products_may_be_inexact():
    """Bases of products with 1 % of noise take more ranks, but couplings are entries: the accuracy is reached."""
    x, rng = points_of("uniform", 500, 2), np.random.default_rng(0)
    M = Exponential(1.0, 0.3)(x)
    noisy = M + 1e-2 * np.abs(M).mean() * rng.standard_normal(M.shape)
    assert error(h2gpu.from_samples(x, lambda X: noisy @ X, lambda i, j: M[i, j], 1e-4, leaf_size=16), M) <= 1.2e-4


@pytest.mark.parametrize(("product", "words"), [
    (scipy.sparse.identity(7).tocsr(), r"product: expected an operator of shape \(300, 300\), as the points, got \(7"),
    (lambda X: X * np.nan, r"from_samples: expected product\(X\) .* got float64 of shape \(300, 64\) with NaN or Inf"),
    (lambda X: 1j * X, r"from_samples: expected product\(X\) of finite real numbers \(300, 64\), got complex128"),
    (lambda X: X + 1, r"product\(X\) and entries are not of one matrix: .*; without col_points the matrix must be sym"),
    (lambda X: 0 * X, r"product\(X\) and entries are not of one matrix: they differ by 1 of it"),
])  # fmt: skip
def test_what_is_no_product_is_told(product, words):
    x = points_of("uniform", 300, 2)
    M = Exponential(1.0, 0.3)(x)
    with pytest.raises(ValueError, match=words):
        h2gpu.from_samples(x, product, lambda i, j: M[i, j], 1e-6, leaf_size=16)
