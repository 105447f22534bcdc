"""Values of a function at all pairs of points."""

import numpy as np
import pytest
from batches import DTYPES

from h2gpu.batched import MatrixBatch
from h2gpu.covariance import pairwise


@pytest.mark.parametrize("dtype", DTYPES)
def test_pairwise_evaluates_a_function_at_all_pairs(dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.random((300, 2)).astype(dtype), rng.random((200, 2)).astype(dtype)

    def function(x, y):
        return x[..., 0] - 2 * y[..., 1] + x[..., 1] * y[..., 0]

    for blocks, largest in ((30, 20), (1, 200), (0, 1), (4, 0)):
        rows, columns = rng.integers(0, largest + 1, (2, blocks))
        x, y = rng.integers(0, 301 - rows), np.sort(rng.integers(0, 201 - columns))
        out = pairwise(function, MatrixBatch.from_rows(X, x, rows), MatrixBatch.from_rows(Y, y, columns))
        assert out.dtype == dtype and len(out) == blocks
        for b in range(blocks):
            expected = function(X[x[b] : x[b] + rows[b], None], Y[None, y[b] : y[b] + columns[b]])
            np.testing.assert_array_equal(out[b], expected)
