"""Conjugate gradients: A x = b to the accuracy asked for, column by column, or one sentence on why not."""

import numpy as np
import pytest
import scipy.sparse
from reference import points_of
from scipy.sparse.linalg import aslinearoperator

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget
from h2gpu.solvers import Solution, block_jacobi, conjugate_gradients, vecchia

COV = Matern(2.0, 0.3, 1.5) + Nugget(0.1)


def problem(xp=np, n=400, count=3, cov=COV, name="uniform", seed=0):
    """Sites, dense covariance matrix, solution and right-hand sides, where xp has them."""
    points = points_of(name, n, 2, seed)
    A = cov(points)
    x = np.random.default_rng(seed).standard_normal((n, count))
    return tuple(xp.asarray(a) for a in (points, A, x, A @ x))


def relative(A, x, b):
    """‖b − A x‖ / ‖b‖ of the columns."""
    A, x, b = (to_host(M) for M in (A, x, b))
    return np.linalg.norm(b - A @ x, axis=0) / np.linalg.norm(b, axis=0)


# Solutions


def test_solutions_are_those_of_the_dense_matrix(xp):
    points, A, x, b = problem(xp)
    for preconditioner in (None, block_jacobi(points, COV, 32), vecchia(points, COV, 20)):
        solution = conjugate_gradients(A, b, preconditioner, rtol=1e-11)
        assert solution.converged.all() and not solution.indefinite.any() and solution.message == ""
        assert relative(A, solution.x, b).max() <= 1.05e-11
        np.testing.assert_allclose(solution.residuals, relative(A, solution.x, b), rtol=0.1, atol=1e-13)
        np.testing.assert_allclose(to_host(solution.checked()), to_host(x), atol=1e-8)
        one = conjugate_gradients(A, b[:, 0], preconditioner, rtol=1e-11)
        assert one.x.shape == (400,)
        np.testing.assert_allclose(to_host(one.x), to_host(x[:, 0]), atol=1e-8)


@pytest.mark.parametrize("kind", ["array", "sparse matrix", "operator", "H2Matrix"])
def test_anything_with_a_product_is_solved(kind):
    points, A, x, b = problem()
    operator = {
        "array": lambda: A,
        "sparse matrix": lambda: scipy.sparse.csr_array(A),
        "operator": lambda: aslinearoperator(A),
        "H2Matrix": lambda: h2gpu.covariance_matrix(points, COV, 1e-11),
    }[kind]()
    solution = conjugate_gradients(operator, b, vecchia(points, COV), rtol=1e-11)
    np.testing.assert_allclose(solution.checked(), x, atol=1e-7)


def test_h2_matrices_are_solved_where_they_live(xp):
    points, _, x, _ = problem(xp, n=3000)
    A = h2gpu.covariance_matrix(points, COV, 1e-10)
    solution = conjugate_gradients(A, A @ x, vecchia(points, COV), rtol=1e-10)
    assert isinstance(solution.x, type(x))
    np.testing.assert_allclose(to_host(solution.checked()), to_host(x), atol=1e-6)


def test_a_nugget_shifts_the_diagonal():
    points, A, _, b = problem(cov=Exponential(1.0, 0.2))
    solution = conjugate_gradients(A, b, vecchia(points, Exponential(1.0, 0.2), nugget=0.5), nugget=0.5, rtol=1e-12)
    np.testing.assert_allclose(solution.x, np.linalg.solve(A + 0.5 * np.eye(400), b), atol=1e-9)


def test_n_distinct_eigenvalues_take_n_steps():
    """In exact arithmetic CG ends after as many steps as there are distinct eigenvalues."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0]
    A = Q * np.repeat([1.0, 2.0, 5.0], 20) @ Q.T
    assert conjugate_gradients(A, np.ones((60, 2)), rtol=1e-12).iterations.tolist() == [3, 3]


def test_columns_stop_on_their_own_and_leave_the_product():
    A = np.diag(np.arange(1.0, 51))
    widths = []

    class Watched:
        shape = A.shape

        def __matmul__(self, x):
            widths.append(x.shape[1])
            return A @ x

    b = np.stack([np.ones(50), np.zeros(50), np.eye(50)[3]], axis=1)
    solution = conjugate_gradients(Watched(), b, rtol=1e-10)
    assert solution.iterations[1:].tolist() == [0, 1] and solution.iterations[0] > 20
    assert widths[0] == 2 and set(widths[1:-1]) == {1}
    assert solution.converged.all() and solution.residuals[1] == 0 and not solution.x[:, 1].any()


def test_columns_do_not_influence_each_other():
    points, A, _, b = problem()
    W = vecchia(points, COV, 10)
    together = conjugate_gradients(A, b, W)
    for j in range(b.shape[1]):
        alone = conjugate_gradients(A, b[:, j], W)
        assert alone.iterations[0] == together.iterations[j]
        np.testing.assert_allclose(together.x[:, j], alone.x, atol=1e-10)


def test_a_start_is_continued_from():
    _, A, x, b = problem()
    again = conjugate_gradients(A, b, start=x)
    assert again.iterations.tolist() == [0, 0, 0] and again.converged.all()
    near = conjugate_gradients(A, b, start=x + 1e-6)
    assert near.converged.all() and (near.iterations < conjugate_gradients(A, b).iterations).all()
    np.testing.assert_array_equal(x, problem()[2])


def test_single_precision_reaches_its_own_accuracy(xp):
    points, A, x, b = (array.astype(np.float32) for array in problem(xp))
    W = vecchia(points, COV)
    solution = conjugate_gradients(A, b, W, rtol=1e-5)
    assert W.dtype == solution.x.dtype == np.float32
    assert solution.converged.all()
    np.testing.assert_allclose(to_host(solution.x), to_host(x), atol=1e-2)


def test_sizes_at_the_edge():
    one = conjugate_gradients(np.array([[4.0]]), np.array([2.0]), vecchia(np.zeros((1, 2)), COV))
    assert one.x == pytest.approx([0.5]) and one.iterations.tolist() == [1]
    none = conjugate_gradients(np.eye(3), np.empty((3, 0)))
    assert none.x.shape == (3, 0) and none.message == ""


def test_the_same_call_gives_the_same_bits():
    points, A, _, b = problem()
    first, second = (conjugate_gradients(A, b, vecchia(points, COV, random_state=1)).x for _ in range(2))
    np.testing.assert_array_equal(first, second)


# Vecchia makes iterations few


@pytest.mark.parametrize(
    "cov, most",
    [
        (Exponential(1.0, 0.5), 8),
        (Matern(1.0, 0.3, 1.5), 14),
        (Matern(1.0, 0.1, 2.3), 22),
        (Matern(1.0, 0.2, 1.5) + Nugget(0.2), 25),
    ],
    ids=repr,
)
def test_iterations_are_few_with_vecchia(cov, most):
    points, A, _, b = problem(n=900, count=1, cov=cov)
    good = conjugate_gradients(A, b, vecchia(points, cov))
    assert good.converged.all() and good.iterations[0] <= most
    for other in (None, block_jacobi(points, cov)):
        assert not conjugate_gradients(A, b, other, maximum=2 * most).converged.any()


def test_duplicates_collinear_and_clustered_sites_are_solved():
    for name in ("duplicates", "collinear", "clustered", "all_equal", "on_an_axis", "outlier"):
        points, A, _, b = problem(n=300, name=name)
        solution = conjugate_gradients(A, b, vecchia(points, COV), rtol=1e-9)
        assert relative(A, solution.checked(), b).max() <= 1.05e-9, name
        assert solution.iterations.max() <= 60, name


def test_duplicated_sites_without_nugget_are_solved_where_the_data_agree():
    cov = Exponential(1.0, 0.3)
    points, A, _, b = problem(n=300, name="duplicates", cov=cov)
    solution = conjugate_gradients(A, b, vecchia(points, cov), rtol=1e-8)
    assert relative(A, solution.checked(), b).max() <= 1.05e-8


# Failures, in one sentence


def test_negative_curvature_is_told_by_column():
    A = np.diag([3.0, 2.0, 1.0, -1.0])
    b = np.eye(4)[:, [0, 3, 1]]
    solution = conjugate_gradients(A, b)
    assert solution.indefinite.tolist() == [False, True, False] == (~solution.converged).tolist()
    assert "negative curvature in 1 of 3 columns (the first is 1)" in solution.message
    assert "smaller rtol" in solution.message and "nugget" in solution.message
    with pytest.raises(np.linalg.LinAlgError, match="negative curvature"):
        solution.checked()
    np.testing.assert_allclose(solution.x[:, [0, 2]], b[:, [0, 2]] / [3, 2])


def test_an_h2_matrix_that_is_too_coarse_for_its_spectrum_is_told_or_solved_never_silently_wrong():
    cov, points = Gaussian(1.0, 0.3), points_of("uniform", 1500, 2)
    A = h2gpu.covariance_matrix(points, cov, 1e-3)
    b = np.random.default_rng(0).standard_normal((1500, 2))
    solution = conjugate_gradients(A, b, vecchia(points, cov), maximum=200)
    assert not solution.converged.any() and solution.message
    assert conjugate_gradients(A, b, nugget=50.0).converged.all()


def test_too_few_iterations_are_told():
    _, A, _, b = problem()
    solution = conjugate_gradients(A, b, maximum=3)
    assert not solution.converged.any() and solution.iterations.tolist() == [3, 3, 3]
    assert "3 of 3 columns" in solution.message and "preconditioner" in solution.message
    assert conjugate_gradients(A, b, maximum=0).residuals.tolist() == [1, 1, 1]


def test_the_residual_told_is_the_true_one_where_arithmetic_ends():
    """An ill-conditioned matrix: the recurrence's residual falls below what x attains."""
    A = np.diag(np.geomspace(1e-14, 1, 40))
    A = A + 1e-15 * np.random.default_rng(0).standard_normal((40, 40))
    b = np.random.default_rng(1).standard_normal(40)
    solution = conjugate_gradients(A, b, rtol=1e-15, maximum=500)
    np.testing.assert_allclose(solution.residuals, relative(A, solution.x, b), rtol=1e-6)
    assert not solution.converged.any() and solution.message


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((np.ones((3, 2)), np.ones(3)), "A: expected a square matrix"),
        (([[1.0]], np.ones(1)), "A: expected a square matrix with @, got list"),
        ((np.eye(3), np.ones(4)), r"b: expected shape \(3,\)"),
        (
            (np.eye(3), np.array([1, np.nan, 2])),
            "b: expected finite numbers, got NaN or infinity in 1 rows, first in row 1",
        ),
        ((np.eye(3), np.ones(3) * 1j), "b: expected real numbers"),
        ((np.eye(3), np.ones(3), np.eye(4)), "preconditioner: expected shape"),
        ((np.eye(3), np.ones(3), lambda x: x), "preconditioner: expected a square matrix with @"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        conjugate_gradients(*arguments)


@pytest.mark.parametrize(
    "option, words",
    [
        ({"rtol": 0}, "rtol: expected"),
        ({"maximum": -1}, "maximum: expected"),
        ({"nugget": -1}, "nugget: expected"),
        ({"nugget": np.nan}, "nugget: expected"),
        ({"start": np.full(3, np.inf)}, "start: expected finite"),
    ],
)
def test_bad_options_are_refused(option, words):
    with pytest.raises(ValueError, match=words):
        conjugate_gradients(np.eye(3), np.ones(3), **option)


def test_a_matrix_that_is_not_finite_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="got NaN or infinity"):
        conjugate_gradients(np.full((3, 3), np.nan), np.ones(3))


def test_a_solution_is_described_by_its_fields():
    assert set(Solution.__dataclass_fields__) == {"x", "iterations", "residuals", "converged", "indefinite", "rtol"}
