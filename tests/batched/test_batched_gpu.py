"""The GPU's products, copies and norms against their CPU twins. For QR and SVD see test_qr_matrices.py and others."""

import numpy as np
import pytest

from h2gpu import arrays, batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies import cpu as copies
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.products import cpu as products
from h2gpu.blocksparse import BlockSparse, block_multiply
from h2gpu.covariance import pairwise

cp = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

DTYPES = [np.float64, np.float32]


def random_batch(rows, columns, dtype, seed=0):
    A = MatrixBatch.empty(rows, columns, dtype)
    A.buffer[:] = np.random.default_rng(seed).standard_normal(A.buffer.size)
    return A


def to_device(A):
    return MatrixBatch(cp.asarray(A.buffer), A.offsets, A.rows, A.columns)


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
    exact = products.gemm(
        A.astype(np.float64), B.astype(np.float64), C.astype(np.float64), 1.5, -0.5, transa, transb, None
    )
    norms = [np.sqrt(copies.frobenius_norms(M) ** 2) for M in (A, B, C)]
    bound = 3 * np.finfo(dtype).eps * (np.sqrt(k + 2) * 1.5 * norms[0] * norms[1] + 2 * norms[2])
    difference = MatrixBatch(out.buffer.get() - exact.buffer, out.offsets, out.rows, out.columns)
    assert (copies.frobenius_norms(difference) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("largest", [40, 90, 350])
def test_ragged_gemm_of_triangles(largest, transb, dtype):
    """Wide and tall trapezoids: the same bits as where zeros are multiplied."""
    m, n, k = np.random.default_rng(16).integers(1, largest + 1, (3, 30))
    A, B = random_batch(m, k, dtype, 1), random_batch(n if transb else k, k if transb else n, dtype, 2)
    for matrix in A.matrices():
        matrix[...] = np.triu(matrix)
    found, right = (batched.gemm(to_device(A), to_device(B), transb=transb, triangular=t).buffer for t in (True, False))
    np.testing.assert_array_equal(found.get(), right.get())


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
    np.testing.assert_allclose(batched.frobenius_norms(to_device(A)).get(), copies.frobenius_norms(A), rtol=1e-14)
    index, flip = rng.integers(0, 50, 200), rng.random(200) < 0.5
    rows, columns = np.where(flip, A.columns[index], A.rows[index]), np.where(flip, A.rows[index], A.columns[index])
    rows, columns = (rows * rng.random(200)).astype(int), (columns * rng.random(200)).astype(int)
    out = copies.gather(A, index, flip, MatrixBatch.empty(rows, columns, dtype))
    device = batched.gather(to_device(A), index, flip, MatrixBatch.empty(rows, columns, dtype, cp))
    assert np.array_equal(device.buffer.get(), out.buffer)


@pytest.mark.parametrize("count", [0, 1, 3, 32, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_join(dtype, count):
    rng = np.random.default_rng(count)
    sizes = [rng.integers(0, 90, (2, rng.integers(0, 30))) for _ in range(count)]
    batches = [random_batch(*size, dtype) for size in sizes]
    rows, columns = (np.concatenate([np.zeros((2, 0)), *sizes], axis=1) * rng.random()).astype(int)
    out = copies.join(batches, MatrixBatch.empty(rows, columns, dtype))
    there = [to_device(A).resident if i % 2 else to_device(A) for i, A in enumerate(batches)]
    device = batched.join(there, MatrixBatch.empty(rows, columns, dtype, cp))
    assert np.array_equal(device.buffer.get(), out.buffer)


@pytest.mark.parametrize("dtype", [*DTYPES, np.complex64, np.complex128, np.int32, np.int64])
def test_matrices_that_lie_apart_are_packed_without_an_index_of_their_entries(dtype, monkeypatch):
    A = random_batch([30, 2, 0, 41, 5], [3, 70, 4, 40, 1], np.float64).astype(dtype)
    chosen = np.array([3, 0, 2, 4, 3])
    sent = []
    monkeypatch.setattr(
        arrays, "to_device", lambda a, xp, known=arrays.to_device: (sent.append(a.size), known(a, xp))[1]
    )
    there = to_device(A)[chosen]
    sent.clear()
    packed, joined, entries = there.packed(), batched.join([there, there]), there[::2].entries
    assert max(sent) <= 6 * 2 * len(chosen)
    monkeypatch.undo()
    expected = np.concatenate([A[b].ravel() for b in chosen])
    assert packed.is_packed and packed.buffer.size == expected.size and packed.dtype == dtype
    np.testing.assert_array_equal(packed.buffer.get(), expected)
    np.testing.assert_array_equal(joined.buffer.get(), np.tile(expected, 2))
    np.testing.assert_array_equal(entries.get(), np.concatenate([A[b].ravel() for b in chosen[::2]]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pairwise(dtype, monkeypatch):
    from h2gpu.covariance.pairs import cuda

    monkeypatch.setattr(cuda, "PAIRS_AT_ONCE", 10_000)
    rng = np.random.default_rng(9)
    X = rng.random((1000, 3)).astype(dtype)
    (x, y), (rows, columns) = np.sort(rng.integers(0, 900, (2, 80))), rng.integers(0, 90, (2, 80))
    pairs = [(MatrixBatch.from_rows(P, x, rows), MatrixBatch.from_rows(P, y, columns)) for P in (X, cp.asarray(X))]

    def squares(x, y):
        return ((x - y) ** 2).sum(-1)

    out, device = (pairwise(squares, *pair) for pair in pairs)
    np.testing.assert_allclose(device.buffer.get(), out.buffer, rtol=0, atol=10 * np.finfo(dtype).eps)
    apart = MatrixBatch.empty(np.repeat(rows, 2), np.repeat(columns, 2), dtype, cp)[::2]
    assert np.array_equal(pairwise(squares, *pairs[1], out=apart).entries.get(), device.buffer.get())


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
            y = block_multiply(A, x, size, transpose)
            z, again = (block_multiply(on_device, cp.asarray(x), size, transpose).get() for _ in range(2))
            np.testing.assert_allclose(z, y, rtol=0, atol=size * np.finfo(dtype).eps * np.abs(y).max())
            assert np.array_equal(z, again)  # bit for bit


PARTS = {
    "slice": lambda A: A[2:9],
    "slice of a slice": lambda A: A[1:][::2][1:4],
    "indices": lambda A: A[np.array([5, 0, 5])],
    "indices there": lambda A: A[cp.asarray([7, 3])],
    "slice of indices there": lambda A: A[cp.asarray([7, 3, 0])][1:],
    "mask": lambda A: A[np.arange(11) % 3 == 0],
    "none": lambda A: A[4:4],
    "narrower bounds": lambda A: A[3:].bounded((4, 5)),
}


@pytest.mark.parametrize("placed", [True, False])
@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_batch_have_its_numbers_wherever_these_are(name, resident, placed):
    """Asked for in any order, on the device; sizes on the host where they were."""
    if resident and name in ("indices", "mask"):
        pytest.skip("indices of matrices whose sizes the device has are there too")
    rng = np.random.default_rng(1)
    whole = random_batch(rng.integers(0, 5, 11), rng.integers(1, 6, 11), np.float64)
    there = to_device(whole)
    if placed:
        MatrixBatch.place(there)
    plain = {"indices there": [7, 3], "slice of indices there": [3, 0]}
    right = whole[np.array(plain[name])] if name in plain else PARTS[name](whole)
    sides = right.offsets, right.rows, right.columns
    for order in ((2, 0, 1), (0, 1, 2)):
        part = PARTS[name](there.resident if resident else there)
        assert len(part) == len(right)
        for i in order:
            found = part.number(i)
            assert found.flags.c_contiguous and found.tolist() == sides[i].tolist()
            assert part.number(i) is found
        assert part.numbers.tolist() == [side.tolist() for side in sides]
    assert part.rows.tolist() == right.rows.tolist() and part.sizes.tolist() == right.sizes.tolist()
    assert type(part.rows) is (cp.ndarray if resident or name in plain else np.ndarray)


def test_a_table_of_several_columns_that_are_brought_to_other_integers():
    """Each is made anew for the launch, and none where another was; one number may stand for all of a column."""
    from h2gpu.batched.device.launch import tables

    columns = [cp.arange(first, first + 500, dtype=np.int32) for first in (3, 1000, -7)]
    columns += [cp.broadcast_to(cp.asarray([9]), 500), cp.arange(1000)[::2]]
    (table,) = tables(500, columns)
    assert (table.get() == np.stack([column.get() for column in columns])).all()
