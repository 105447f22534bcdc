"""The GPU's batched routines against their CPU twins and LAPACK's criteria, on LAPACK's kinds of matrices."""

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.batched import BlockSparse, MatrixBatch, cpu
from h2gpu.batched.ragged import offsets_of

cp = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

CRITERION = 30  # LAPACK's threshold for residuals in units of ε
DTYPES = [np.float64, np.float32]
SHAPES = [(1, 1), (1, 5), (5, 1), (8, 8), (17, 16), (16, 17), (33, 31), (40, 8), (65, 65), (63, 130), (130, 63)]
LARGE = [(256, 256), (300, 20), (1000, 64), (500, 121), (350, 343), (300, 512), (1030, 1024), (40, 1100)]


def random_batch(rows, columns, dtype, seed=0):
    A = MatrixBatch.empty(rows, columns, dtype)
    A.buffer[:] = np.random.default_rng(seed).standard_normal(A.buffer.size)
    return A


def to_device(A):
    return MatrixBatch(cp.asarray(A.buffer), A.offsets, A.rows, A.columns)


def special_matrices(m, n, dtype, seed=0):
    """Zero, identity, zero and equal columns, deficient rank, graded rows, scaled near the limits: (14, m, n)."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((14, m, n))
    huge = 1e300 if dtype == np.float64 else 1e30
    A[0] = 0
    A[1] = np.eye(m, n)
    A[2, :, 0] = A[3, :, -1] = A[4, :, n // 2 :] = 0
    A[5, :, -1] = A[5, :, 0]
    A[6] = rng.standard_normal((m, 1)) @ rng.standard_normal((1, n))
    A[7] *= huge
    A[8] /= huge
    A[9, : m // 2] /= huge
    A[10, m // 2 :] /= huge
    A[11] = 1
    A[12] *= np.logspace(0, -15, n)
    A[13] *= np.logspace(0, -15, m)[:, None]
    return A.astype(dtype)


def graded_matrices(m, n, dtype, seed=0):
    """Geometric spectra of condition 2, 2.1e7 and 4.5e14: (3, m, n)."""
    rng = np.random.default_rng(seed)
    U, _, Vt = np.linalg.svd(rng.standard_normal((3, m, n)), full_matrices=False)
    decay = np.linspace(0, -1, min(m, n))
    return np.stack([U[i] * c**decay @ Vt[i] for i, c in enumerate((2, 2.1e7, 4.5e14))]).astype(dtype)


def assert_factors(A, Q, R):
    """|A - QR| / (max(m, n) |A| ε) and |I - QᵀQ| / (m ε) below CRITERION, R upper triangular."""
    epsilon, (m, n), k = np.finfo(A.dtype).eps, A.shape[-2:], min(A.shape[-2:])
    scale = np.abs(A).max(axis=(-2, -1), keepdims=True).astype(np.float64)
    scale[scale == 0] = 1
    A, Q, R = A / scale, Q.astype(np.float64), R / scale
    size = np.maximum(np.linalg.norm(A, axis=(-2, -1)), np.finfo(np.float32).tiny)
    assert (np.linalg.norm(A - Q @ R, axis=(-2, -1)) <= CRITERION * max(m, n) * epsilon * size).all()
    assert (np.linalg.norm(np.eye(k) - Q.swapaxes(-1, -2) @ Q, axis=(-2, -1)) <= CRITERION * m * epsilon).all()
    assert not np.tril(R, -1).any()


def assert_triangle(A, R):
    """|AᵀA - RᵀR| / (max(m, n) |A|² ε) below CRITERION, R upper triangular: what is left to ask without Q."""
    epsilon, (m, n) = np.finfo(A.dtype).eps, A.shape[-2:]
    scale = np.abs(A).max(axis=(-2, -1), keepdims=True).astype(np.float64)
    scale[scale == 0] = 1
    A, R = A / scale, R / scale
    error = np.linalg.norm(A.swapaxes(-1, -2) @ A - R.swapaxes(-1, -2) @ R, axis=(-2, -1))
    assert (error <= CRITERION * max(m, n) * epsilon * np.maximum(np.linalg.norm(A, axis=(-2, -1)) ** 2, 1e-30)).all()
    assert not np.tril(R, -1).any()


def assert_qr(A):
    A_device = cp.asarray(A)
    Q, R = batched.qr(A_device)
    assert_factors(A, Q.get(), R.get())
    assert_triangle(A, batched.qr(A_device, mode="r").get())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + LARGE)
def test_qr_of_random_matrices(shape, dtype):
    assert_qr(np.random.default_rng(1).standard_normal((3, *shape)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", range(1, 131))
def test_qr_of_every_order(n, dtype):
    assert_qr(np.random.default_rng(n).standard_normal((2, n, n)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(20, 20), (100, 40), (65, 64), (300, 121), (40, 60), (200, 150)])
def test_qr_of_special_and_graded_matrices(shape, dtype):
    assert_qr(special_matrices(*shape, dtype))
    assert_qr(graded_matrices(*shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr_of_many_and_of_none_in_turn(dtype):
    rng = np.random.default_rng(2)
    for batch in (70_000, 3, 0, 70_000, 1):
        assert_qr(rng.standard_normal((batch, 9, 5)).astype(dtype))


def test_qr_does_not_depend_on_the_batch():
    A = cp.asarray(np.random.default_rng(3).standard_normal((2500, 40, 24)))
    Q, R = batched.qr(A[7:8])
    cp.testing.assert_allclose(batched.qr(A)[0][7:8] @ batched.qr(A)[1][7:8], Q @ R, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr_of_not_a_number_ends_and_harms_no_neighbour(dtype):
    A = np.random.default_rng(4).standard_normal((4, 90, 20)).astype(dtype)
    clean = batched.qr(cp.asarray(A))[1].get()
    A[1, 3, 4], A[2, 0, 0] = np.nan, np.inf
    for mode in ("r", "reduced"):
        R = batched.qr(cp.asarray(A), mode)
        R = (R if mode == "r" else R[1]).get()
        assert np.isnan(R[1:3]).any(axis=(1, 2)).all()
        np.testing.assert_allclose(np.abs(R[[0, 3]]), np.abs(clean[[0, 3]]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [300, 3000])
def test_ragged_qr(count, dtype):
    rng = np.random.default_rng(5)
    rows, columns = rng.integers(0, 300, count), rng.integers(0, 140, count)
    rows[: count // 3] *= 4
    A = random_batch(rows, columns, dtype)
    Q, R = batched.qr(to_device(A))
    only_R = batched.qr(to_device(A), mode="r")
    for b in range(0, count, 1 + count // 300):
        if A.sizes[b]:
            assert_factors(A[b][None], Q[b].get()[None], R[b].get()[None])
            assert_triangle(A[b][None], only_R[b].get()[None])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("largest", [4, 20, 40, 70, 100, 350])
def test_ragged_gemm(largest, transa, transb, dtype):
    """|ΔC| < 3 ε (√(k + 2) |A| |B| + 2 |C|)."""
    m, n, k = np.random.default_rng(6).integers(0, largest + 1, (3, 60))
    A = random_batch(k if transa else m, m if transa else k, dtype, 1)
    B = random_batch(n if transb else k, k if transb else n, dtype, 2)
    C = random_batch(m, n, dtype, 3)
    out = batched.gemm(to_device(A), to_device(B), to_device(C), 1.5, -0.5, transa, transb)
    exact = cpu.gemm(A.astype(np.float64), B.astype(np.float64), C.astype(np.float64), 1.5, -0.5, transa, transb, None)
    norms = [np.sqrt(cpu.frobenius_norms(M) ** 2) for M in (A, B, C)]
    bound = 3 * np.finfo(dtype).eps * (np.sqrt(k + 2) * 1.5 * norms[0] * norms[1] + 2 * norms[2])
    difference = MatrixBatch(out.buffer.get() - exact.buffer, out.offsets, out.rows, out.columns)
    assert (cpu.frobenius_norms(difference) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 33, 65, 17), (70_000, 3, 2, 4), (0, 3, 3, 3), (3, 300, 200, 100), (2, 0, 5, 3)])
def test_uniform_gemm(shape, dtype):
    batch, m, n, k = shape
    rng = np.random.default_rng(7)
    A, B = (rng.standard_normal((batch, *s)).astype(dtype) for s in ((m, k), (k, n)))
    out = batched.gemm(cp.asarray(A), cp.asarray(B)).get()
    np.testing.assert_allclose(out, A @ B, rtol=0, atol=100 * np.finfo(dtype).eps * max(1, k))


def test_gemm_ignores_what_beta_zero_multiplies():
    A = np.ones((2, 3, 3))
    out = batched.gemm(cp.asarray(A), cp.asarray(A), cp.full((2, 3, 3), cp.nan), beta=0)
    assert (out == 3).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_and_gather(dtype):
    rng = np.random.default_rng(8)
    A = random_batch(rng.integers(0, 100, 50), rng.integers(0, 100, 50), dtype)
    np.testing.assert_allclose(batched.frobenius_norms(to_device(A)).get(), cpu.frobenius_norms(A), rtol=1e-14)
    index, flip = rng.integers(0, 50, 200), rng.random(200) < 0.5
    rows, columns = np.where(flip, A.columns[index], A.rows[index]), np.where(flip, A.rows[index], A.columns[index])
    rows, columns = (rows * rng.random(200)).astype(int), (columns * rng.random(200)).astype(int)
    out = cpu.gather(A, index, flip, MatrixBatch.empty(rows, columns, dtype))
    device = batched.gather(to_device(A), index, flip, MatrixBatch.empty(rows, columns, dtype, cp))
    assert np.array_equal(device.buffer.get(), out.buffer)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pairwise(dtype, monkeypatch):
    from h2gpu.batched import cuda_pairwise

    monkeypatch.setattr(cuda_pairwise, "PAIRS_AT_ONCE", 10_000)
    rng = np.random.default_rng(9)
    X = rng.random((1000, 3)).astype(dtype)
    (x, y), (rows, columns) = np.sort(rng.integers(0, 900, (2, 80))), rng.integers(0, 90, (2, 80))
    pairs = [(MatrixBatch.from_rows(P, x, rows), MatrixBatch.from_rows(P, y, columns)) for P in (X, cp.asarray(X))]
    out, device = (batched.pairwise(lambda x, y: ((x - y) ** 2).sum(-1), *pair) for pair in pairs)
    np.testing.assert_allclose(device.buffer.get(), out.buffer, rtol=0, atol=10 * np.finfo(dtype).eps)


def block_sparse(clusters, largest, symmetric, dtype, seed=10):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, clusters)
    columns, rows = np.nonzero(rng.random((clusters, clusters)) < 0.4)
    if symmetric:
        columns, rows = columns[rows >= columns], rows[rows >= columns]
    blocks = random_batch(sizes[rows], sizes[columns], dtype, seed)
    for b in np.flatnonzero((rows == columns) & symmetric):
        blocks[b][...] += blocks[b].T.copy()
    starts = offsets_of(sizes)
    return BlockSparse(blocks, rows, columns, starts[:-1], starts[:-1], symmetric), int(starts[-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("largest", [5, 30, 64, 300])
def test_block_multiply(largest, symmetric, dtype):
    A, size = block_sparse(20, largest, symmetric, dtype)
    on_device = BlockSparse(to_device(A.blocks), A.rows, A.columns, A.row_starts, A.col_starts, symmetric)
    for sides in (1, 3, 4, 16):
        x = np.random.default_rng(11).standard_normal((size, sides)).astype(dtype)
        for transpose in (False, True):
            y = batched.block_multiply(A, x, size, transpose)
            z, again = (batched.block_multiply(on_device, cp.asarray(x), size, transpose).get() for _ in range(2))
            np.testing.assert_allclose(z, y, rtol=0, atol=size * np.finfo(dtype).eps * np.abs(y).max())
            assert np.array_equal(z, again)  # bit for bit
