"""R alone of tall matrices on the GPU: as stable as Householder's QR, whatever the scale of columns and rows."""

import numpy as np
import pytest
from latms import latms

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of

cp = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

CRITERION = 30  # in units of ε
DTYPES = [np.float64, np.float32]
COLUMNS = [3, 16, 17, 32, 33, 61, 64, 65, 81, 96, 97, 121, 128]
MANY, FEW, SOME = 650, 40, 200  # matrices, on either side of the tuning table's limits


def kinds(n, dtype, seed=0):
    """Name → a matrix of n columns and at least twice as many rows."""
    rng = np.random.default_rng(seed)
    m = [int(x) for x in rng.integers(2 * n, 6 * n + 40, 12)]
    condition = 1e12 if dtype == np.float64 else 1e5
    huge = 1e300 if dtype == np.float64 else 1e30

    def normal(i):
        return rng.standard_normal((m[i], n))

    found = {
        "random": normal(0),
        "shortest": rng.standard_normal((2 * n, n)),
        "geometric": latms(1, m[1], n, 3, condition, rng)[0],
        "one small": latms(1, m[2], n, 2, condition, rng)[0],
        "rows graded up": normal(3) * np.logspace(-15, 0, m[3])[:, None],
        "rows graded down": normal(4) * np.logspace(0, -15, m[4])[:, None],
        "deficient": rng.standard_normal((m[5], 1)) @ rng.standard_normal((1, n)),
        "zero rows first": np.where(np.arange(m[6])[:, None] < m[6] // 2, 0, normal(6)),
        "zero columns": normal(7) * (np.arange(n) % 3 > 0),
        "huge": normal(8) * huge,
        "tiny": normal(9) / huge,
        "tiny then huge": normal(10) * np.where(np.arange(m[10]) < m[10] // 2, 1 / huge, huge)[:, None],
        "zero": np.zeros((m[11], n)),
    }
    return {name: A.astype(dtype) for name, A in found.items()}


def to_batch(matrices):
    rows, columns = (np.array([A.shape[i] for A in matrices]) for i in (0, 1))
    buffer = np.concatenate([A.ravel() for A in matrices])
    return MatrixBatch(cp.asarray(buffer), offsets_of(rows * columns)[:-1], rows, columns)


def triangles(matrices, count):
    """R of the matrices, repeated to a batch of `count`; the repetitions agree bit for bit."""
    repeats = -(-count // len(matrices))
    R = batched.qr(to_batch(matrices * repeats), mode="r")
    first = [R[b].get() for b in range(len(matrices))]
    for b in range(len(matrices), len(R), 37):
        np.testing.assert_array_equal(R[b].get(), first[b % len(matrices)])
    return first


def assert_triangle(A, R):
    """Singular values to CRITERION ε σ₁, every column's norm to CRITERION √m ε of its own; R upper triangular."""
    epsilon, scale = np.finfo(A.dtype).eps, np.abs(A).max() or 1
    A, R = A.astype(np.float64) / scale, R.astype(np.float64) / scale
    sigma, of_R = (np.linalg.svd(M, compute_uv=False) for M in (A, R))
    assert np.abs(sigma - of_R).max() <= CRITERION * epsilon * sigma[0]
    norms, of_R = (np.linalg.norm(M, axis=0) for M in (A, R))
    assert (np.abs(norms - of_R) <= CRITERION * np.sqrt(len(A)) * epsilon * norms).all()
    assert not np.tril(R, -1).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [FEW, SOME, MANY])
@pytest.mark.parametrize("n", COLUMNS)
def test_singular_values_and_norms_of_columns(n, count, dtype):
    matrices = kinds(n, dtype, seed=n)
    for A, R in zip(matrices.values(), triangles(list(matrices.values()), count)):
        assert_triangle(A, R)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [32, 64, 81, 121])
def test_scaled_columns_do_not_spoil_each_other(n, dtype):
    rng = np.random.default_rng(n)
    D = np.exp2(rng.permutation(np.linspace(-25, 25, n).round()))  # exact, and B D within the range of squares
    B = rng.standard_normal((4, 5 * n + 3, n)).astype(dtype)
    R = triangles(list((B * D).astype(dtype)), MANY)
    for b in range(4):
        assert_triangle(B[b], (R[b] / D).astype(dtype))


@pytest.mark.parametrize("n", [31, 64, 90, 128])
def test_mixed_numbers_of_columns_in_one_batch(n):
    rng = np.random.default_rng(n)
    columns = rng.integers(n // 2 + 1, n + 1, 40)
    matrices = [rng.standard_normal((int(rng.integers(2 * n, 900)), c)) for c in columns]
    for A, R in zip(matrices, triangles(matrices, MANY)):
        assert_triangle(A, R)


@pytest.mark.parametrize("n", [32, 64, 81, 121])
def test_not_a_number_ends_and_harms_no_neighbour(n):
    A = np.random.default_rng(n).standard_normal((MANY, 3 * n, n))
    clean = batched.qr(cp.asarray(A), mode="r").get()
    A[1, 5, 2], A[7, 2 * n, n - 1], A[9, 0, 0] = np.nan, np.inf, -np.inf
    R = batched.qr(cp.asarray(A), mode="r").get()
    spoilt = np.isin(np.arange(MANY), (1, 7, 9))
    assert (~np.isfinite(R[spoilt])).any(axis=(1, 2)).all()
    np.testing.assert_array_equal(R[~spoilt], clean[~spoilt])
