"""What follows from LU, on both back ends: solutions, inverses and determinants."""

import numpy as np
import pytest
from lu_matrices import C64, C128, F32, F64, random, singular_matrices

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import solution_error
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch


def test_batches_of_none_one_and_very_many(xp):
    for batch in (0, 1, 70_000):
        A = random(batch, 3, 3) + 4 * np.eye(3)
        x = to_host(batched.solve(xp.asarray(A), xp.ones((batch, 3))))
        np.testing.assert_allclose(np.einsum("bij,bj->bi", A, x), np.ones((batch, 3)), atol=1e-12)
    assert batched.lu_factor(xp.zeros((4, 0, 5)))[1].shape == (4, 0)
    assert batched.lu_factor(xp.asarray(random(5, 5)))[1].shape == (5,)
    assert batched.inv(xp.asarray(random(2, 3, 4, 4))).shape == (2, 3, 4, 4)


@pytest.mark.parametrize("dtype", [F64, F32, C128, C64])
@pytest.mark.parametrize("n", [1, 4, 31, 33, 70, 130])
def test_solutions(xp, n, dtype):
    A = random(4, n, n, dtype=dtype) + n**0.5 * np.eye(n, dtype=dtype)
    for k in (None, 1, 3, 11):
        b = random(4, n, *([] if k is None else [k]), dtype=dtype, seed=1)
        x = to_host(batched.solve(xp.asarray(A), xp.asarray(b)))
        assert x.shape == b.shape and x.dtype == dtype
        assert max(solution_error(*parts) for parts in zip(A, x, b)) < 1
    inverse = to_host(batched.inv(xp.asarray(A)))
    assert max(solution_error(a, y, np.eye(n)) for a, y in zip(A, inverse)) < 1


@pytest.mark.parametrize("dtype", [F64, F32, C128])
def test_small_systems_of_every_size(xp, dtype):
    for n in range(1, 33):
        A = random(9, n, n, dtype=dtype, seed=n)
        for k in (1, 2, 5, 16, 17):
            b = random(9, n, k, dtype=dtype, seed=k)
            x = to_host(batched.solve(xp.asarray(A), xp.asarray(b)))
            assert max(solution_error(*parts) for parts in zip(A, x, b)) < 1
        inverse = to_host(batched.inv(xp.asarray(A)))
        assert max(solution_error(a, y, np.eye(n)) for a, y in zip(A, inverse)) < 1


@pytest.mark.parametrize("dtype", [F64, F32, C64])
@pytest.mark.parametrize("n", [3, 50, 100])
def test_many_right_hand_sides(xp, n, dtype):
    A = random(3, n, n, dtype=dtype) + n**0.5 * np.eye(n, dtype=dtype)
    b = random(3, n, 45, dtype=dtype, seed=1)
    x = to_host(batched.lu_solve(batched.lu_factor(xp.asarray(A)), xp.asarray(b)))
    assert max(solution_error(*parts) for parts in zip(A, x, b)) < 1
    if dtype in (F64, F32):
        S = A @ A.swapaxes(1, 2)
        x = to_host(batched.cholesky_solve(batched.cholesky(xp.asarray(S)), xp.asarray(b)))
        assert max(solution_error(*parts) for parts in zip(S, x, b)) < 1


@pytest.mark.parametrize("dtype", [F64, F32, C128, C64])
def test_determinants(xp, dtype):
    for n in (1, 2, 9, 40):
        A = np.concatenate([random(4, n, n, dtype=dtype), np.zeros((1, n, n), dtype)])
        (sign, logarithm), (s, l) = batched.slogdet(xp.asarray(A)), np.linalg.slogdet(A)
        tolerance = 2e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(to_host(sign), s, atol=tolerance)
        np.testing.assert_allclose(to_host(logarithm), l, atol=tolerance * n)
        np.testing.assert_allclose(to_host(batched.det(xp.asarray(A))), np.linalg.det(A), rtol=tolerance * n)
    A[1, 0, 0] = np.nan
    assert np.isnan(to_host(batched.det(xp.asarray(A)))[1])
    assert batched.det(xp.zeros((2, 0, 0))).tolist() == [1, 1]


def test_ragged_solutions_inverses_and_determinants(xp):
    sizes = [3, 40, 1, 0, 33, 70]
    matrices = [random(n, n, seed=n) + 3 * np.eye(n) for n in sizes]
    batch = MatrixBatch.from_matrices([xp.asarray(A) for A in matrices])
    sides = [random(n, k, seed=n) for n, k in zip(sizes, (1, 2, 9, 3, 1, 0))]
    x = batched.solve(batch, MatrixBatch.from_matrices([xp.asarray(b) for b in sides]))
    inverse, (sign, logarithm) = batched.inv(batch), batched.slogdet(batch)
    for i, (A, b) in enumerate(zip(matrices, sides)):
        assert solution_error(A, to_host(x[i]), b) < 1
        assert solution_error(A, to_host(inverse[i]), np.eye(len(A))) < 1
        np.testing.assert_allclose((to_host(sign)[i], to_host(logarithm)[i]), np.linalg.slogdet(A), rtol=1e-10)


def test_singular_matrices_have_no_solution(xp):
    A = singular_matrices(4)
    for function in (batched.inv, lambda A: batched.solve(A, A)):
        with pytest.raises(np.linalg.LinAlgError, match="zero pivot in matrices 0, 1, 2, 3, 4, 5"):
            function(xp.asarray(A))
    LU, piv, _ = batched.lu_factor(xp.asarray(A), return_info=True)
    x = to_host(batched.lu_solve((LU, piv), xp.ones((7, 4))))
    assert np.isnan(x[:6]).any(axis=1).all() and (x[6] == 1).all()


@pytest.mark.parametrize("function", [batched.solve, lambda A, _: batched.inv(A)])
def test_all_bad_matrices_are_named_at_once(function, xp):
    A = np.stack([np.eye(3)] * 5)
    A[1], A[2, 0, 0], A[4, 2, 1] = 0, np.nan, np.inf
    name = "inv" if function is not batched.solve else "solve"
    with pytest.raises(np.linalg.LinAlgError, match=f"{name}: NaN or Inf in matrices 2, 4; a zero pivot in matrices 1"):
        function(xp.asarray(A), xp.ones((5, 3)))


@pytest.mark.parametrize("dtype", [F64, F32, C128])
def test_determinants_of_what_is_not_finite(dtype, xp):
    A = np.stack([np.diag([2.0, -3.0])] * 3).astype(dtype)
    A[0, 0, 0], A[2, 1, 0] = np.inf, np.nan
    batch = MatrixBatch.from_stack(xp.asarray(A))
    for given in (xp.asarray(A), *([batch] if xp is np or dtype != C128 else [])):
        sign, logarithm = map(to_host, batched.slogdet(given))
        assert np.isnan(sign[[0, 2]]).all() and np.isnan(logarithm[[0, 2]]).all() and sign[1] == -1
        det = to_host(batched.det(given))
        assert np.isnan(det[[0, 2]]).all() and abs(det[1] + 6) < 1e-5


@pytest.mark.parametrize("shape", [(2, 0, 0), (0, 0, 0), (0, 3, 3), (2, 0, 3, 3), (3, 0, 0, 0)])
def test_systems_of_nothing(shape, xp):
    A, b = xp.zeros(shape), xp.zeros(shape[:-1])
    assert batched.solve(A, b).shape == shape[:-1] and batched.inv(A).shape == shape
    assert batched.lu_solve(batched.lu_factor(A), b).shape == shape[:-1]
    assert batched.det(A).shape == shape[:-2]


def test_pivots_that_are_no_rows():
    A, b = random(2, 4, 4), np.ones((2, 4))
    LU, piv = batched.lu_factor(A)
    ragged = MatrixBatch.from_stack(LU), MatrixBatch.from_stack(piv[..., None])
    right = MatrixBatch.from_stack(b[..., None])
    x = batched.lu_solve((LU, piv.tolist()), b)
    np.testing.assert_array_equal(batched.lu_solve(ragged, right).entries, x.ravel())
    for change in (10**8, 1, -1):  # SciPy counts from 0 too, LAPACK from 1
        with pytest.raises(ValueError, match=r"lu_solve: expected piv\[k\] from k to the last row"):
            batched.lu_solve((LU, piv + change), b)
        with pytest.raises(ValueError, match=r"lu_solve: expected piv\[k\] from k to the last row"):
            batched.lu_solve((ragged[0], MatrixBatch.from_stack(piv[..., None] + np.int32(change))), right)
    with pytest.raises(ValueError, match="expected piv a MatrixBatch of int32 columns"):
        batched.lu_solve((ragged[0], piv), right)


def test_doors(xp):
    A, b = xp.asarray(random(2, 4, 4)), xp.ones((2, 4))
    LU = batched.lu_factor(A)
    wide = MatrixBatch.from_stack(xp.ones((2, 3, 4)))
    for call, words in (
        (lambda: batched.lu_factor(A, "fast"), "expected method one of auto"),
        (lambda: batched.lu_factor(xp.ones(3)), "float32 or float64 or complex64"),
        (lambda: batched.cholesky(xp.ones((2, 2), complex)), "expected float32 or float64 matrices"),
        (lambda: batched.solve(A[:, :3], b), "solve: expected square"),
        (lambda: batched.slogdet(wide), "slogdet: expected square"),
        (lambda: batched.cholesky(wide), "cholesky: expected square"),
        (lambda: batched.lu_solve(LU, xp.ones((2, 5))), r"expected b \(2, 4\)"),
        (lambda: batched.lu_solve(LU, b.astype(complex)), "expected b of the precision of A, float64"),
        (lambda: batched.lu_solve((LU[0], LU[1][:, :2]), b), "expected piv integers"),
        (lambda: batched.solve(MatrixBatch.from_stack(A), b), "expected b a MatrixBatch"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
