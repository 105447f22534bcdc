"""A x on the GPU: the same bits every time, whatever the right-hand sides beside it, on ragged and awkward shapes."""

import gc
from dataclasses import replace

import numpy as np
import pytest

import h2gpu
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device import plans
from h2gpu.blocksparse import BlockSparse, block_multiply
from h2gpu.blocksparse.nested import Nested
from h2gpu.covariance import Exponential

cp = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

DTYPES = [np.float64, np.float32]


def filled(rows, columns, dtype, seed, gap=0):
    """Random matrices; with a gap, the first begins so many entries into the buffer: no 16-byte boundary."""
    A = MatrixBatch.empty(rows, columns, dtype)
    buffer = np.random.default_rng(seed).standard_normal(gap + A.buffer.size).astype(dtype)
    return MatrixBatch(buffer, A.offsets + gap, A.rows, A.columns)


def on_device(A):
    if isinstance(A, MatrixBatch):
        return MatrixBatch(cp.asarray(A.buffer), A.offsets, A.rows, A.columns)
    return BlockSparse(on_device(A.blocks), A.rows, A.columns, A.row_starts, A.col_starts, A.symmetric)


def band(sizes, symmetric, dtype, gap=0):
    """Blocks near the diagonal; sizes of zero stand for clusters without rank."""
    clusters = len(sizes)
    columns, rows = np.nonzero(np.abs(np.subtract.outer(np.arange(clusters), np.arange(clusters))) < 4)
    if symmetric:
        columns, rows = columns[rows >= columns], rows[rows >= columns]
    blocks = filled(sizes[rows], sizes[columns], dtype, 1, gap)
    for b in np.flatnonzero((rows == columns) & symmetric):
        blocks[b][...] += blocks[b].T.copy()
    starts = offsets_of(sizes)
    return BlockSparse(blocks, rows, columns, starts[:-1], starts[:-1], symmetric), int(starts[-1])


def assert_close(z, y, size):
    scale = np.abs(y).max(initial=1)
    np.testing.assert_allclose(z, y, rtol=0, atol=size * np.finfo(z.dtype).eps * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("size", [*range(1, 40, 3), 32, 47, 48, 56, 57, 63, 64, 65, 80, 96, 128, 129, 200])
def test_products_of_equal_blocks_of_every_size(size, symmetric, dtype):
    for gap in (0, 1, 3):
        A, n = band(np.full(9, size), symmetric, dtype, gap)
        B = on_device(A)
        for sides in (1, 2, 9):
            x = np.random.default_rng(2).standard_normal((n, sides)).astype(dtype)
            for transpose in (False, True):
                y = block_multiply(A, x, n, transpose)
                assert_close(block_multiply(B, cp.asarray(x), n, transpose).get(), y, 10 * size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 5, 31, 67])
def test_what_lies_beside_the_entries_of_panels_is_not_used(size, dtype):
    """Pieces of 16 bytes reach beyond the first and the last entry: the same bits whatever lies there."""
    for gap in (0, 1, 3):
        A, n = band(np.full(5, size), False, dtype, gap)
        blocks, found = A.blocks, []
        for beside in (0, np.nan):
            buffer = np.concatenate([np.full(gap, beside), blocks.buffer[gap:], np.full(5, beside)]).astype(dtype)
            B = on_device(replace(A, blocks=MatrixBatch(buffer, blocks.offsets, blocks.rows, blocks.columns)))
            for sides in (1, 2, 9):
                x = cp.asarray(np.random.default_rng(2).standard_normal((n, sides)).astype(dtype))
                found.append([block_multiply(B, x, n, transpose).get() for transpose in (False, True)])
        assert np.isfinite(found[0]).all()
        assert all((y == z).all() for one, other in zip(found[:3], found[3:]) for y, z in zip(one, other))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("tall", [0, 5])
def test_products_where_all_blocks_are_empty(symmetric, tall):
    """Compression may leave no rank anywhere: blocks of 0 × 0, and of bases 5 × 0."""
    count = np.arange(9)
    A = BlockSparse(filled(np.full(9, tall), np.zeros(9, int), float, 1), count, count, tall * count, 0 * count, False)
    if not tall:
        A, _ = band(np.zeros(9, int), symmetric, float)
    for transpose, (size, other) in ((False, (9 * tall, 0)), (True, (0, 9 * tall))):
        y = block_multiply(on_device(A), cp.ones((other, 3)), size, transpose)
        assert y.shape == (size, 3) and not y.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_products_where_some_blocks_are_empty(symmetric, dtype):
    sizes = np.random.default_rng(3).integers(0, 4, 60) * np.random.default_rng(4).integers(0, 30, 60)
    A, n = band(sizes, symmetric, dtype)
    x = np.random.default_rng(5).standard_normal((n, 5)).astype(dtype)
    for transpose in (False, True):
        y = block_multiply(A, x, n, transpose)
        assert_close(block_multiply(on_device(A), cp.asarray(x), n, transpose).get(), y, 1000)
        assert block_multiply(on_device(A), cp.asarray(x[:, :0]), n, transpose).shape == (n, 0)


@pytest.fixture
def nothing_is_zero(monkeypatch):
    """Memory that has not been written holds NaN."""
    empty = cp.empty

    def spoiled(shape, dtype=float, **options):
        out = empty(shape, dtype, **options)
        if out.dtype.kind == "f":
            out.fill(np.nan)
        return out

    monkeypatch.setattr(cp, "empty", spoiled)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("present", [(3, 4, 9), (0, 1, 11), (0, 11), (5,)])
def test_rows_between_blocks_are_zero_and_sums_are_added_to_what_is_there(present, symmetric, nothing_is_zero):
    """Blocks on the diagonal alone, of a few of twelve clusters of one to 200 rows, in no order in memory."""
    present, sizes = np.array(present), np.array([20, 1, 7, 33, 0, 200, 64, 2, 100, 3, 40, 5])
    order = np.random.default_rng(10).permutation(12)
    starts = np.empty(12, np.int64)
    starts[order] = offsets_of(sizes[order])[:-1]
    A = BlockSparse(filled(sizes[present], sizes[present], float, 11), present, present, starts, starts, symmetric)
    n = int(sizes.sum())
    for sides in (1, 3, 17):
        x = np.random.default_rng(12).standard_normal((n, sides))
        for transpose in (False, True):
            y, device = block_multiply(A, x, n, transpose), on_device(A)
            assert_close(block_multiply(device, cp.asarray(x), n, transpose).get(), y, 1000)
            z = cp.asarray(x[::-1].copy())
            assert block_multiply(device, cp.asarray(x), n, transpose, z) is z
            assert_close(z.get(), block_multiply(A, x, n, transpose, x[::-1].copy()), 1000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest", [3, 30, 64, 200])
def test_nested_products(largest, dtype, nothing_is_zero):
    """up: c = Pᵀ v, and down: v += P c, with one step of the pairs of all c before."""
    rng = np.random.default_rng(6)
    ranks, parents = rng.integers(0, largest + 1, 40), rng.integers(0, largest + 1, 20)
    ranks[4:6], parents[2] = 0, 3  # a matrix without rows: 0 × 3
    sizes = rng.integers(1, 70, 40)
    first, last = offsets_of(ranks), ranks.sum() + offsets_of(parents)
    inner = ranks[0::2] + ranks[1::2]
    N = Nested(
        filled(sizes, ranks, dtype, 7, 1),
        filled(inner, parents, dtype, 8),
        offsets_of(sizes)[:-1],
        first[:-1:2],
        first[:-1],
        last[:-1],
        np.array([0, 13, 20]),
        int(last[-1]),
    )
    D = Nested(on_device(N.outer), on_device(N.inner), *(getattr(N, name) for name in list(vars(N))[2:8]))
    for sides in (1, 4, 17):
        x = rng.standard_normal((int(sizes.sum()), sides)).astype(dtype)
        c = N.up(x)
        assert_close(D.up(cp.asarray(x)).get(), c, 5000)
        y, z = N.down(c.copy(), x.copy()), D.down(cp.asarray(c), cp.asarray(x))
        assert_close(z.get(), y, 5000)


@pytest.fixture(params=["symmetric", "rectangular"])
def A(request):
    rng = np.random.default_rng(9)
    columns = {} if request.param == "symmetric" else {"col_points": cp.asarray(rng.random((2200, 2)))}
    B = h2gpu.build(cp.asarray(rng.random((3000, 2))), Exponential(1.0, 0.2), leaf_size=40, order=5, eta=1.5, **columns)
    return h2gpu.compress(B, 1e-4)


def test_products_have_the_same_bits_every_time(A):
    for sides in (1, 3, 16, 33):
        x = cp.random.standard_normal((A.shape[1], sides))
        y = A @ x
        assert all((A @ x == y).all() for _ in range(5))


def test_many_right_hand_sides_are_the_single_ones_together(A):
    x = cp.random.standard_normal((A.shape[1], 70))
    y = (A @ x).get()
    for h in (0, 7, 8, 15, 16, 63, 64, 69):
        assert_close((A @ x[:, h]).get(), y[:, h], 50)
    z = cp.random.standard_normal((A.shape[0], 70))
    assert_close((A.rmatvec(z[:, 5])).get(), (A.rmatvec(z)).get()[:, 5], 50)


def test_plans_are_made_once_and_go_with_their_matrix(A):
    x = cp.ones(A.shape[1])
    A @ x
    gc.collect()
    B = A.replace(couplings=A.couplings)  # shares everything that is planned but the recording of the whole
    before = len(plans._plans)
    A @ x, B @ x
    assert len(plans._plans) == before + 1
    C = A.replace(nearfield=replace(A.nearfield, narrow=on_device_copy(A.nearfield.narrow)))
    C @ x
    assert len(plans._plans) == before + 3
    del B, C
    gc.collect()
    assert len(plans._plans) == before


def on_device_copy(A):
    return BlockSparse(A.blocks, A.rows, A.columns, A.row_starts, A.col_starts, A.symmetric)
