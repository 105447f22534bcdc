"""Lanczos: determinants within their stated error, square roots that are square roots."""

import sys

import numpy as np
import pytest
import scipy.sparse
from reference import points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.solvers import block_jacobi, conjugate_gradients, log_determinant, square_root, vecchia
from h2gpu.solvers.lanczos import Lanczos

COV = Matern(2.0, 0.3, 1.5) + Nugget(0.1)


def problem(xp=np, n=400, cov=COV, name="uniform"):
    points = points_of(name, n, 2)
    return xp.asarray(points), xp.asarray(cov(points))


# Tridiagonalization


def test_the_basis_is_orthonormal_and_t_is_its_projection(xp):
    _, A = problem(xp)
    X = np.random.default_rng(0).standard_normal((400, 2))
    run = Lanczos(lambda x: A @ x, xp.asarray(X), keep=True)
    for _ in range(25):
        run.step()
    theta, S = run.spectra()
    for j in range(2):
        V = np.stack([to_host(v)[:, j] for v in run.basis], axis=1)
        np.testing.assert_allclose(V.T @ V, np.eye(25), atol=1e-12)
        T = S[j] * theta[j] @ S[j].T
        np.testing.assert_allclose(V.T @ to_host(A) @ V, T, atol=1e-9)
        np.testing.assert_allclose(T, np.triu(np.tril(T, 1), -1), atol=1e-9)
        np.testing.assert_allclose(V[:, 0] * np.linalg.norm(X[:, j]), X[:, j], atol=1e-12)


def test_an_exhausted_space_ends_without_harm():
    run = Lanczos(lambda x: np.diag([1.0, 2.0, 2.0, 3.0]) @ x, np.eye(4)[:, :2] + np.eye(4)[:, 1:3], keep=True)
    for _ in range(6):
        run.step()
    theta, S = run.spectra()
    nodes = [np.unique(t[s[0] ** 2 > 1e-12].round(9)).tolist() for t, s in zip(theta, S)]
    assert nodes == [[1.0, 2.0], [2.0]]


# Determinants


@pytest.mark.parametrize("factor", [None, vecchia, block_jacobi], ids=["none", "vecchia", "block Jacobi"])
def test_determinants_lie_within_their_stated_error_in_most_seeds(factor):
    """16 probes: |error| ≤ 2 standard errors with probability 0.936; of 20 seeds fewer than 14 once in 10⁴."""
    points, A = problem()
    exact, W = np.linalg.slogdet(A)[1], factor and factor(points, COV)
    estimates = [log_determinant(A, W, trace=W and 400, random_state=seed) for seed in range(20)]
    errors = np.array([(e.value - exact) / np.hypot(e.standard_error, e.quadrature_error) for e in estimates])
    assert np.count_nonzero(abs(errors) <= 2) >= 14 and abs(errors).max() < 6
    assert abs(errors.mean()) < 4 / np.sqrt(20)


def test_a_known_trace_makes_the_error_smaller_and_vecchia_smaller_still():
    points, A = problem(n=800)
    W = vecchia(points, COV)
    without, blind, seeing = log_determinant(A), log_determinant(A, W), log_determinant(A, W, trace=800)
    assert seeing.standard_error < blind.standard_error / 3 < without.standard_error / 9
    assert seeing.steps < without.steps / 3
    exact = np.linalg.slogdet(A)[1]
    for estimate in (without, blind, seeing):
        assert abs(float(estimate) - exact) < 4 * np.hypot(estimate.standard_error, estimate.quadrature_error)


def test_probes_are_added_until_the_error_is_small_enough():
    points, A = problem()
    W = vecchia(points, COV, 5)
    exact = np.linalg.slogdet(A)[1]
    coarse = log_determinant(A, W, trace=400)
    fine = log_determinant(A, W, trace=400, atol=coarse.standard_error / 3)
    assert fine.probes > coarse.probes == 16
    assert np.hypot(fine.standard_error, fine.quadrature_error) <= coarse.standard_error / 3
    assert abs(fine.value - exact) <= 4 * coarse.standard_error / 3
    limited = log_determinant(A, W, atol=1e-9, most=40)
    assert limited.probes == 40 and limited.standard_error > 1e-9


@pytest.mark.parametrize("kind", ["array", "sparse matrix", "operator", "H2Matrix"])
def test_determinants_of_anything_with_a_product(kind):
    points, A = problem()
    operator = {
        "array": lambda: A,
        "sparse matrix": lambda: scipy.sparse.csr_array(A),
        "operator": lambda: scipy.sparse.linalg.aslinearoperator(A),
        "H2Matrix": lambda: h2gpu.covariance_matrix(points, COV, 1e-9),
    }[kind]()
    estimate = log_determinant(operator, vecchia(points, COV), trace=400)
    assert abs(estimate.value - np.linalg.slogdet(A)[1]) < 5 * estimate.standard_error


def test_determinants_where_the_matrix_lives(xp):
    points, A = problem(xp)
    exact = np.linalg.slogdet(to_host(A))[1]
    for matrix in (A, h2gpu.covariance_matrix(points, COV, 1e-9)):
        for preconditioner, trace in ((None, None), (vecchia(points, COV), 400)):
            estimate = log_determinant(matrix, preconditioner, trace=trace)
            assert abs(estimate.value - exact) < 5 * np.hypot(estimate.standard_error, estimate.quadrature_error)


def test_exact_factors_and_diagonal_matrices_have_no_error():
    points, A = problem(n=100)
    exact = log_determinant(A, vecchia(points, COV, 99), trace=100)
    assert exact.value == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-9) and exact.standard_error < 1e-9
    diagonal = log_determinant(np.diag([1.0, 2.0, 5.0]))
    assert diagonal.value == pytest.approx(np.log(10)) and diagonal.standard_error < 1e-12
    assert log_determinant(np.array([[4.0]])).value == pytest.approx(np.log(4))


def test_a_nugget_shifts_the_diagonal():
    points, A = problem(cov=Exponential(1.0, 0.2))
    W = vecchia(points, Exponential(1.0, 0.2), nugget=0.3)
    estimate = log_determinant(A, W, nugget=0.3, trace=400)
    exact = np.linalg.slogdet(A + 0.3 * np.eye(400))[1]
    assert abs(estimate.value - exact) < 4 * estimate.standard_error < 1


def test_determinants_repeat_under_their_seed():
    points, A = problem()
    W = vecchia(points, COV)
    assert log_determinant(A, W, random_state=3) == log_determinant(A, W, random_state=3)
    assert log_determinant(A, W, random_state=3) != log_determinant(A, W, random_state=4)


# Square roots


def test_the_square_root_is_the_symmetric_one(xp):
    """S Sᵀ = A: (S x)ᵀ (S x) = xᵀ A x, and S is that of the eigendecomposition."""
    _, A = problem(xp)
    x = xp.asarray(np.random.default_rng(0).standard_normal((400, 3)))
    y = square_root(A, x, rtol=1e-10)
    np.testing.assert_allclose(to_host((y * y).sum(axis=0)), to_host((x * (A @ x)).sum(axis=0)), rtol=1e-9)
    values, vectors = np.linalg.eigh(to_host(A))
    np.testing.assert_allclose(to_host(y), vectors * np.sqrt(values) @ (vectors.T @ to_host(x)), atol=1e-6)
    np.testing.assert_allclose(to_host(square_root(A, x[:, 0], rtol=1e-10)), to_host(y[:, 0]), atol=1e-6)


@pytest.mark.parametrize("factor", [vecchia, block_jacobi])
def test_the_preconditioned_root_has_the_covariance(factor, xp):
    """S Sᵀ = A for S applied to all unit vectors."""
    points, A = problem(xp, n=60)
    S = to_host(square_root(A, xp.eye(60), factor(points, COV, 12), rtol=1e-10))
    np.testing.assert_allclose(S @ S.T, to_host(A), atol=1e-7)


def test_quadratic_forms_of_simulations_are_those_of_the_covariance():
    """zᵀ A⁻¹ z of a simulation z = S x is about n; for Vecchia's factor (W z)ᵀ (W z) = xᵀ B x."""
    points, cov = points_of("uniform", 2000, 2), Matern(1.0, 0.2, 1.5) + Nugget(0.01)
    A, W = h2gpu.covariance_matrix(points, cov, 1e-8), vecchia(points, cov)
    x = np.random.default_rng(0).standard_normal((2000, 4))
    z = square_root(A, x, W, rtol=1e-9)
    forms = (z * conjugate_gradients(A, z, W, rtol=1e-9).checked()).sum(axis=0)
    np.testing.assert_allclose(forms, (x * x).sum(axis=0), rtol=1e-6)
    v, u = W.whiten(z), W.whiten_transposed(x)
    np.testing.assert_allclose((v * v).sum(axis=0), (u * (A @ u)).sum(axis=0), rtol=1e-7)


def test_few_vectors_are_kept_at_a_time(monkeypatch):
    points, A = problem()
    x, W = np.random.default_rng(0).standard_normal((400, 5)), vecchia(points, COV)
    whole = square_root(A, x, W)
    module = sys.modules["h2gpu.solvers.square_root"]  # the package's attribute of this name is the function
    monkeypatch.setattr(module, "BASIS_BYTES", 1)
    np.testing.assert_allclose(square_root(A, x, W), whole, atol=1e-5)


def test_zero_vectors_and_single_sites():
    _, A = problem()
    np.testing.assert_array_equal(square_root(A, np.zeros((400, 2))), 0)
    assert square_root(np.array([[4.0]]), np.array([3.0])) == pytest.approx(6)
    assert square_root(A, np.empty((400, 0))).shape == (400, 0)


# Failures, in one line


def test_indefinite_matrices_are_refused():
    A = np.diag([1.0, 2.0, -3.0])
    for work in (lambda: log_determinant(A), lambda: square_root(A, np.ones(3))):
        with pytest.raises(np.linalg.LinAlgError, match=r"met an eigenvalue of -.*smaller rtol.*nugget"):
            work()


def test_roots_that_do_not_converge_are_told():
    _, A = problem(cov=Exponential(1.0, 0.3))
    with pytest.raises(np.linalg.LinAlgError, match=r"square_root: 5 steps leave an error of .* preconditioner"):
        square_root(A, np.ones(400), maximum=5)


def test_bad_arguments_are_refused():
    A = np.eye(3)
    for work, words in (
        (lambda: square_root(A, np.array([1, np.nan, 0])), "x: expected finite numbers"),
        (lambda: square_root(A, np.ones(3), rtol=2), "rtol: expected"),
        (lambda: square_root(A, np.ones(3), np.eye(3)), "preconditioner: expected a factor"),
        (lambda: log_determinant(np.ones((3, 2))), "A: expected a square matrix"),
        (lambda: log_determinant(A, probes=1), "probes: expected"),
        (lambda: log_determinant(A, atol=-1.0), "atol: expected"),
        (lambda: log_determinant(A, nugget=-1.0), "nugget: expected"),
    ):
        with pytest.raises(ValueError, match=words):
            work()
    with pytest.raises(np.linalg.LinAlgError, match="got NaN or infinity"):
        log_determinant(np.full((3, 3), np.nan))
