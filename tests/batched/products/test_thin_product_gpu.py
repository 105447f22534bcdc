"""Products with few columns on the GPU, kernels/products/thin_product.cuh, against float64: the GEMM criterion."""

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.batched.products.gaussian import gaussian

cp = pytest.importorskip("cupy")
cuda_thin = pytest.importorskip("h2gpu.batched.products.thin")
pytestmark = pytest.mark.gpu

DTYPES = [np.float64, np.float32]
SHAPES = [(3, 512, 72, 512), (2, 132, 36, 68), (2, 260, 56, 100), (1, 1000, 64, 64), (4, 128, 44, 76)]


def suits(A, B, transa, turned=False):
    """Whether the kernel is taken for two stacks."""
    m, k = A.shape[:0:-1] if transa else A.shape[1:]
    sizes = len(A), m, k, B.shape[1 if turned else 2]
    return cuda_thin.aligned(A, B) and cuda_thin.suits_sizes(A.dtype, sizes, transa)


@pytest.fixture(params=[False, True])
def any_size(request, monkeypatch):
    """However small the batch, the kernel is the one to take; with a block a tile, or two for some of them."""
    monkeypatch.setattr(cuda_thin, "LEAST_BLOCKS", 0)
    if request.param:
        monkeypatch.setattr(cuda_thin, "whole_tiles", lambda tiles: tiles // 3)
    cuda_thin._ready.cache_clear()
    yield
    cuda_thin._ready.cache_clear()


def test_only_few_tiles_beyond_full_rounds_are_shared(monkeypatch):
    monkeypatch.setattr(cuda_thin, "_places", lambda device: 264)
    found = [cuda_thin.whole_tiles(tiles) for tiles in (8, 264, 272, 330, 331, 792, 800)]
    assert found == [8, 264, 264, 264, 331, 792, 792]


def factors(batch, m, n, k, transa, dtype):
    """Rows and columns of differing sizes, on the host."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((batch, m, k)) * np.exp(rng.standard_normal((batch, m, 1)))
    B = rng.standard_normal((batch, k, n)) * np.exp(rng.standard_normal((batch, 1, n)))
    return (A.swapaxes(1, 2) if transa else A).astype(dtype), B.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_entries(shape, transa, dtype, any_size):
    """|ΔC_ij| < 3 ε √(k + 2) |A_i| |B_j|, and nothing left unwritten."""
    A, B = factors(*shape, transa, dtype)
    a, b, out = cp.asarray(A), cp.asarray(B), cp.full((shape[0], *shape[1:3]), cp.nan, dtype)
    assert suits(a, b, transa)
    assert batched.gemm(a, b, transa=transa, out=out).data.ptr == out.data.ptr
    A = (A.swapaxes(1, 2) if transa else A).astype(np.float64)
    sizes = np.linalg.norm(A, axis=2)[:, :, None] * np.linalg.norm(B.astype(np.float64), axis=1)[:, None, :]
    assert (np.abs(out.get() - A @ B) <= 3 * np.finfo(dtype).eps * np.sqrt(shape[3] + 2) * sizes).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_entries_of_transposed_products(shape, dtype, any_size):
    """The same for few rows against a transposed factor."""
    A, B = factors(*shape, False, dtype)
    B = np.ascontiguousarray(B.swapaxes(1, 2))
    a, b, out = cp.asarray(A), cp.asarray(B), cp.full((shape[0], shape[2], shape[1]), cp.nan, dtype)
    assert suits(a, b, False, turned=True)
    assert batched.gemm(b, a, transb=True, out=out).data.ptr == out.data.ptr
    A, B = A.astype(np.float64), B.astype(np.float64)
    sizes = np.linalg.norm(B, axis=2)[:, :, None] * np.linalg.norm(A, axis=2)[:, None, :]
    assert (np.abs(out.get() - B @ A.swapaxes(1, 2)) <= 3 * np.finfo(dtype).eps * np.sqrt(shape[3] + 2) * sizes).all()
    assert (batched.gemm(b, a, transb=True) == out).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_entries_of_products_with_samples(shape, dtype, any_size):
    """The same for right factors of few bits."""
    A, _ = factors(*shape, False, dtype)
    a, b = cp.asarray(A), cp.stack([gaussian(shape[3], shape[2], b, dtype, cp) for b in range(shape[0])])
    A, B = A.astype(np.float64), b.get().astype(np.float64)
    sizes = np.linalg.norm(A, axis=2)[:, :, None] * np.linalg.norm(B, axis=1)[:, None, :]
    out = cp.full((shape[0], *shape[1:3]), cp.nan, dtype)
    found = cuda_thin.thin_product(a, b, False, out, short=True).get()
    assert (np.abs(found - A @ B) <= 3 * np.finfo(dtype).eps * np.sqrt(shape[3] + 2) * sizes).all()


def test_matrices_that_do_not_come_in_whole_pieces_go_elsewhere(any_size):
    for shape, transa in (((2, 132, 37, 68), False), ((2, 132, 36, 67), False), ((2, 133, 36, 68), True)):
        A, B = (cp.asarray(M) for M in factors(*shape, transa, np.float64))
        assert not suits(A, B, transa)
        a, b = A.get(), B.get()
        np.testing.assert_allclose(
            batched.gemm(A, B, transa=transa).get(), (a.swapaxes(1, 2) if transa else a) @ b, rtol=0, atol=1e-11
        )
    A, B = (cp.asarray(M) for M in factors(2, 132, 36, 68, False, np.float64))
    shifted = cp.empty(A.size + 1)[1:].reshape(A.shape)
    shifted[...] = A
    assert not suits(shifted, B, False)
    np.testing.assert_allclose(batched.gemm(shifted, B).get(), A.get() @ B.get(), rtol=0, atol=1e-11)


def test_devices_of_little_shared_memory_multiply_in_another_way(any_size, monkeypatch):
    A, B, C = (cp.zeros(shape, np.float32) for shape in ((2, 132, 68), (2, 68, 72), (2, 68, 64)))
    assert suits(A, B, False)
    monkeypatch.setattr(cuda_thin, "most_shared", lambda device: 99 << 10)
    assert suits(A, C, False) and not suits(A, B, False)
    assert all(cuda_thin.parts_bytes(strips, cuda_thin.SHORT) <= 99 << 10 for strips in cuda_thin.STRIPS)


def test_a_bad_matrix_harms_no_other(any_size):
    A, B = factors(3, 260, 56, 100, False, np.float64)
    good = A @ B
    A[1, 7, 3] = np.nan
    out = batched.gemm(cp.asarray(A), cp.asarray(B)).get()
    assert np.isnan(out[1, 7]).all() and np.isfinite(out[1, 8:]).all()
    np.testing.assert_allclose(out[[0, 2]], good[[0, 2]], rtol=0, atol=1e-10)
