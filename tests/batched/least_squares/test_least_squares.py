"""Least squares of many small matrices: normal equations, least norm, rank, against numpy.linalg.lstsq."""

import numpy as np
import pytest
from latms import latms
from reference import normal

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

DTYPES = [np.float32, np.float64, np.complex64]
SHAPES = [(1, 1), (4, 4), (9, 5), (16, 16), (16, 3), (40, 24), (5, 9), (70, 64), (200, 20)]
THRESHOLD = 30


@pytest.fixture
def rng():
    return np.random.default_rng(16)


def check(A, b, x, rank, rcond=None):
    """LAPACK's criterion on Aᴴ(b − Ax), the rank, and the least norm: x lies in the row space."""
    epsilon, (m, n) = np.finfo(A.dtype).eps, A.shape
    expected = np.linalg.matrix_rank(A, rtol=rcond or max(m, n) * epsilon)
    kind = np.result_type(A.dtype, np.float64)
    A, b, x = A.astype(kind), b.astype(kind), to_host(x).astype(kind)
    norm = np.linalg.norm(A, 2)
    unit = max(m, n) * norm * (norm * np.linalg.norm(x) + np.linalg.norm(b)) * epsilon
    assert rank == expected
    assert np.linalg.norm(A.conj().T @ (b - A @ x)) <= THRESHOLD * unit
    if rank < n:
        _, s, Vt = np.linalg.svd(A)
        null = Vt[rank:]
        assert np.linalg.norm(null @ x) <= 1e3 * epsilon * s[0] / s[rank - 1] * np.linalg.norm(x) * max(m, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_random_problems(shape, dtype, xp, rng):
    for columns in ((), (3,)):
        A, b = normal(rng, dtype, 7, *shape), normal(rng, dtype, 7, shape[0], *columns)
        x, rank = batched.lstsq(xp.asarray(A), xp.asarray(b))
        assert x.shape == (7, shape[1], *columns) and x.dtype == dtype and rank.shape == (7,)
        for i in range(7):
            check(A[i], b[i], x[i], int(rank[i]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (16, 16), (30, 20)])
def test_deficient_ranks_among_full_ones(shape, dtype, xp, rng):
    A, b = normal(rng, dtype, 6, *shape), normal(rng, dtype, 6, shape[0])
    A[1, :, -1] = A[1, :, 0]
    A[2] = np.outer(A[2, :, 0], A[2, 0])
    A[4, :, 1] = 0
    x, rank = batched.lstsq(xp.asarray(A), xp.asarray(b))
    n = shape[1]
    assert to_host(rank).tolist() == [n, n - 1, 1, n, n - 1, n]
    for i in range(6):
        check(A[i], b[i], x[i], int(rank[i]))
    A[3] = 0
    x, rank = batched.lstsq(xp.asarray(A), xp.asarray(b))
    assert int(rank[3]) == 0 and not to_host(x)[3].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rcond_decides_on_the_rank(dtype, xp, rng):
    A = latms(3, 12, 8, 3, 1e3, rng, dtype)
    b = normal(rng, dtype, 3, 12)
    for rcond, expected in ((None, 8), (2e-2, 4), (0.5, 1)):
        x, rank = batched.lstsq(xp.asarray(A), xp.asarray(b), rcond)
        assert to_host(rank).tolist() == [expected] * 3
        for i in range(3):
            reference = np.linalg.lstsq(A[i].astype(float), b[i].astype(float), rcond=rcond)[0]
            assert np.linalg.norm(to_host(x)[i] - reference) <= 1e5 * np.finfo(dtype).eps * np.linalg.norm(reference)


def test_scales_of_both_sides(xp, rng):
    A, b = rng.standard_normal((4, 9, 5)), rng.standard_normal((4, 9))
    plain = to_host(batched.lstsq(xp.asarray(A), xp.asarray(b))[0])
    for size, right in ((1e-200, 1e-180), (1e250, 1e200), (1e-200, 1.0)):
        x, rank = batched.lstsq(xp.asarray(A * size), xp.asarray(b * right))
        np.testing.assert_allclose(to_host(x), plain * (right / size), rtol=1e-10)
        assert (to_host(rank) == 5).all()


def test_nan_is_named_and_empty_is_empty(xp, rng):
    A, b = rng.standard_normal((3, 6, 4)), rng.standard_normal((3, 6))
    A[1, 2, 2] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="NaN or Inf in matrices 1"):
        batched.lstsq(xp.asarray(A), xp.asarray(b))
    x, rank = batched.lstsq(xp.asarray(A[:0]), xp.asarray(b[:0]))
    assert x.shape == (0, 4) and rank.shape == (0,)
    x, rank = batched.lstsq(xp.zeros((2, 3, 0)), xp.zeros((2, 3)))
    assert x.shape == (2, 0) and to_host(rank).tolist() == [0, 0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: batched.lstsq(np.ones((2, 3, 3)), np.ones((2, 4))),
        lambda: batched.lstsq(np.ones((2, 3, 3)), np.ones((2, 3)), rcond=-1),
        lambda: batched.lstsq(np.ones((2, 3, 3), np.int8), np.ones((2, 3), complex)),
        lambda: batched.lstsq(MatrixBatch.from_stack(np.ones((2, 3, 3))), np.ones((2, 3))),
    ],
)
def test_doors(call):
    with pytest.raises(ValueError, match="expected"):
        call()
