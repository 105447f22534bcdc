"""Products with block-sparse matrices are those with dense ones."""

import gc
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
from batches import DTYPES, close, ragged, stack
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import block_sparse_dense

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse import BlockSparse, Nested, block_multiply
from h2gpu.blocksparse.widened import LONG, copy, in_turn


@st.composite
def block_sparse(draw, dtype):
    """(BlockSparse, rows and columns of its block rows and columns), some of them empty."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    symmetric, density = draw(st.booleans()), draw(st.sampled_from([0.0, 0.3, 1.0]))
    row_sizes = rng.integers(0, 6, draw(st.integers(1, 6)))
    col_sizes = row_sizes if symmetric else rng.integers(0, 6, draw(st.integers(1, 6)))
    columns, rows = np.nonzero(rng.random((len(col_sizes), len(row_sizes))) < density)
    if symmetric:
        rows, columns = rows[rows >= columns], columns[rows >= columns]
    blocks = ragged(row_sizes[rows], col_sizes[columns], dtype, 1)
    for b in np.flatnonzero(rows == columns) if symmetric else ():
        blocks[b][...] += blocks[b].T.copy()
    starts = offsets_of(row_sizes)[:-1], offsets_of(col_sizes)[:-1]
    return BlockSparse(blocks, rows, columns, *starts, symmetric), row_sizes, col_sizes


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=60)
@given(st.data(), st.integers(0, 5))
def test_block_multiply_is_the_dense_product(dtype, data, count):
    A, row_sizes, col_sizes = data.draw(block_sparse(dtype))
    dense = block_sparse_dense(A, row_sizes, col_sizes).astype(dtype)
    x, z = stack((sum(col_sizes), count), dtype), stack((sum(row_sizes), count), dtype, 1)
    y = A.multiply(x, sum(row_sizes))
    close(y, dense @ x, 30)
    close(block_multiply(A, x, sum(row_sizes)), y)
    close(A.multiply(z, sum(col_sizes), transpose=True), dense.T @ z, 30)
    both = y.copy()
    assert A.multiply(x, sum(row_sizes), out=both) is both
    np.testing.assert_array_equal(both, y + y)
    close(A.T.multiply(z, sum(col_sizes)), dense.T @ z, 30)
    np.testing.assert_array_equal(block_sparse_dense(A.T, col_sizes, row_sizes), dense.T)
    assert A.nbytes == A.blocks.buffer.nbytes and len(A) == len(A.rows)


@pytest.mark.parametrize(
    "stored, dtype", [(np.float32, np.float64), (np.float64, np.float64), (np.float32, np.float32)]
)
def test_a_vector_is_multiplied_as_a_column_of_several_whoever_multiplies_beside(stored, dtype):
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 40, 30)
    columns, rows = np.nonzero(np.tri(len(sizes)).T * (rng.random((len(sizes),) * 2) < 0.5))
    starts = offsets_of(sizes)[:-1]
    A = BlockSparse(ragged(sizes[rows], sizes[columns], stored, 1), rows, columns, starts, starts, True)
    X = stack((sizes.sum(), 8), dtype)
    expected = A.multiply(X, sizes.sum())

    def product(j):
        return A.multiply(X[:, j % 8 : j % 8 + 1], sizes.sum())[:, 0]

    with ThreadPoolExecutor(4) as pool:
        for j, y in enumerate(pool.map(product, range(64))):
            close(y, expected[:, j % 8], 30)


@pytest.mark.parametrize("symmetric", [True, False])
def test_panels_widened_with_their_rows_in_turn_are_multiplied_as_stored(symmetric):
    sizes = np.array([LONG, LONG + 3, 2 * LONG + 1, 3])
    columns, rows = np.nonzero(np.tri(len(sizes)).T if symmetric else np.ones((len(sizes),) * 2))
    starts, n = offsets_of(sizes)[:-1], sizes.sum()
    A = BlockSparse(ragged(sizes[rows], sizes[columns], np.float32, 1), rows, columns, starts, starts, symmetric)
    for b in np.flatnonzero(rows == columns) if symmetric else ():
        A.blocks[b][...] += A.blocks[b].T.copy()
    dense, X = block_sparse_dense(A, sizes, sizes).astype(np.float64), stack((n, 3), np.float64)
    for transpose, M in ((False, dense), (True, dense.T)):
        close(A.multiply(X, n, transpose), M @ X, 30)
        close(A.multiply(X[:, :1], n, transpose), M @ X[:, :1], 30)


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 13, 32])
@pytest.mark.parametrize("diagonal", [0, 5])
def test_rows_in_turn_are_those_of_the_panel_once_each_a_diagonal_block_first(rows, diagonal):
    P = np.arange(2.0 * (diagonal + rows)).reshape(-1, 2)
    W = np.full_like(P, -1)
    copy(in_turn(W, P, diagonal))
    for part in (slice(0, diagonal), slice(diagonal, None)):
        np.testing.assert_array_equal(np.sort(W[part], axis=0), P[part])
    if rows == 32:
        np.testing.assert_array_equal(W[diagonal : diagonal + 4], P[diagonal::8])


@pytest.mark.parametrize("count", [1, 2])
def test_a_matrix_that_multiplied_goes_without_the_garbage_collector(count):
    A = BlockSparse(ragged(np.array([3]), np.array([3]), np.float32, 1), *np.zeros((4, 1), np.int64), False)
    entries = ref(A.blocks.buffer)
    gc.disable()
    try:
        A.multiply(np.ones((3, count)), 3)
        del A
        assert entries() is None
    finally:
        gc.enable()


def test_nested_products_with_a_vector_are_those_of_a_column_of_several_again_and_again():
    rng = np.random.default_rng(1)
    outer, inner = (
        ragged(np.full(count, 2), columns, np.float64)
        for count, columns in ((4, np.array([2, 2, 2, 1])), (3, np.full(3, 2)))
    )
    # leaves make c_0 … c_3, of which the last has one column and one row left; steps take rows 0 and 4, then 2
    N = Nested(
        outer, inner, 2 * np.arange(4), np.array([0, 4, 2]), 2 * np.arange(4), np.array([8, 10, 12]), [0, 2, 3], 14
    )
    X, C = (rng.random((size, 5)) for size in (8, 14))
    sums, y = C.copy(), np.zeros((8, 5))
    up, down = N.up(X), N.down(sums, y)
    for j in (0, 3, 0, 4):
        close(N.up(X[:, j : j + 1])[:, 0], up[:, j], 30)
        c = C[:, j : j + 1].copy()
        close(N.down(c, np.zeros((8, 1)))[:, 0], down[:, j], 30)
        close(c[:, 0], sums[:, j], 30)
