"""Products with block-sparse matrices are those with dense ones."""

import numpy as np
import pytest
from batches import DTYPES, close, ragged, stack
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import block_sparse_dense

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse import BlockSparse, block_multiply


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
    close(A.T.multiply(z, sum(col_sizes)), dense.T @ z, 30)
    np.testing.assert_array_equal(block_sparse_dense(A.T, col_sizes, row_sizes), dense.T)
    assert A.nbytes == A.blocks.buffer.nbytes and len(A) == len(A.rows)
