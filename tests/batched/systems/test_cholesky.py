"""Cholesky factors and their solutions, on both back ends: LAPACK's criteria and its info."""

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.criteria import cholesky_error, solution_error
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

F64, F32 = np.float64, np.float32


def random(*shape, dtype=F64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def positive_definite(batch, n, dtype=F64, seed=0):
    G = random(batch, n, n, seed=seed)
    return (G @ G.swapaxes(1, 2) / n + 0.1 * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", [F64, F32])
def test_cholesky_of_every_size(xp, dtype):
    for n in (*range(1, 131), 170, 300):
        A = positive_definite(3, n, dtype)
        upper = np.where(np.tri(n, dtype=bool), A, np.nan)  # is not read
        L = to_host(batched.cholesky(xp.asarray(upper)))
        assert max(map(cholesky_error, A, L)) < 1


def test_cholesky_of_many(xp):
    for n in (4, 30):
        A = np.tile(positive_definite(50, n), (100, 1, 1))
        assert max(map(cholesky_error, A[:50], to_host(batched.cholesky(xp.asarray(A))))) < 1


@pytest.mark.parametrize("n", [6, 32, 70, 250])
def test_what_has_no_cholesky_factor_is_reported(xp, n):
    A = positive_definite(6, n)
    clean = to_host(batched.cholesky(xp.asarray(A)))
    A[1, n // 2, n // 2], A[3, 0, 0], A[4, -1, 0] = -1, 0, np.nan
    L, info = map(to_host, batched.cholesky(xp.asarray(A), return_info=True))
    np.testing.assert_array_equal(info, [0, n // 2 + 1, 0, 1, -1, 0])
    np.testing.assert_array_equal(np.isnan(L), np.isin(np.arange(6), (1, 3, 4))[:, None, None] & np.tri(n, dtype=bool))
    np.testing.assert_allclose(L[[0, 2, 5]], clean[[0, 2, 5]], rtol=1e-12, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match=r"matrices 4; a pivot that is not positive in matrices 1, 3$"):
        batched.cholesky(xp.asarray(A))
    with pytest.raises(np.linalg.LinAlgError, match=r"a pivot that is not positive in matrices 1, 3$"):
        batched.cholesky(xp.asarray(A[:4]))


@pytest.mark.parametrize("dtype", [F64, F32])
def test_cholesky_solutions_uniform_and_ragged(xp, dtype):
    sizes = [1, 5, 32, 33, 90, 250]
    matrices = [positive_definite(1, n, dtype)[0] for n in sizes]
    sides = [random(n, k, dtype=dtype) for n, k in zip(sizes, (1, 4, 1, 9, 1, 2))]
    L = batched.cholesky(MatrixBatch.from_matrices([xp.asarray(A) for A in matrices]))
    ragged = batched.cholesky_solve(L, MatrixBatch.from_matrices([xp.asarray(b) for b in sides]))
    for i, (A, b) in enumerate(zip(matrices, sides)):
        assert cholesky_error(A, to_host(L[i])) < 1
        x = batched.cholesky_solve(batched.cholesky(xp.asarray(A)), xp.asarray(b))
        assert solution_error(A, to_host(x), b) < 1
        assert solution_error(A, to_host(ragged[i]), b) < 1


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e6])
def test_a_matrix_has_the_same_factor_whatever_its_neighbours_are(bad, dtype):
    for n in (3, 8, 33):
        A = positive_definite(40, n, dtype)
        L = batched.cholesky(A)
        A[7, 0, 0] = bad
        factors, info = batched.cholesky(A, return_info=True)
        assert info[7] != 0 and np.isnan(factors[7]).any()
        others = np.arange(40) != 7
        assert (factors[others] == L[others]).all() and not info[others].any()
