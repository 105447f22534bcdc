"""out_b = A_b B_b C_bᵀ for ragged batches, on both back ends."""

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch


def ragged(rng, rows, columns, dtype):
    """Random matrices of the given sizes."""
    batch = MatrixBatch.empty(rows, columns, dtype)
    batch.buffer[:] = rng.standard_normal(batch.buffer.size)
    return batch


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rank, side", [(8, 20), (37, 64), (50, 81), (64, 96), (70, 40), (100, 120), (20, 200)])
def test_products_of_three(rank, side, dtype, xp):
    """|error| ≤ c ε (m + n) |A| |B| |C|ᵀ entry by entry, whatever the sizes, empty ones among them."""
    rng = np.random.default_rng(rank)
    (p, q), (m, n) = rng.integers(0, rank + 1, (2, 40)), rng.integers(0, side + 1, (2, 40))
    p[0], q[0], m[0], n[0], m[1], n[2] = rank, rank, side, side, 0, 0
    host = [ragged(rng, *shape, dtype) for shape in ((p, m), (m, n), (q, n))]
    out = batched.triple_product(*(M.to(xp) for M in host))
    for b in range(40):
        A, B, C = (M[b].astype(np.float64) for M in host)
        bound = 4 * np.finfo(dtype).eps * (m[b] + n[b]) * (abs(A) @ abs(B) @ abs(C).T)
        assert (abs(to_host(out[b]) - A @ B @ C.T) <= bound).all()


def test_an_index_on_the_device_chooses_the_same(xp):
    """Batches indexed where their entries are give what the index on the host gives; into given memory."""
    rng = np.random.default_rng(0)
    A, B, C = (ragged(rng, *shape, np.float64).to(xp) for shape in (([5, 9], 12), ([12, 12], 7), ([3, 8], 7)))
    index = rng.integers(0, 2, 30)
    expected = batched.triple_product(A[index], B[index], C[index])
    out = MatrixBatch.empty(expected.rows, expected.columns, np.float64, xp)
    where = xp.asarray(index)
    batched.triple_product(A[where], B[where], C[where], out)
    np.testing.assert_array_equal(to_host(out.entries), to_host(expected.entries))


def test_sizes_that_do_not_match_are_refused(xp):
    rng = np.random.default_rng(0)
    A, B, C = (ragged(rng, *shape, np.float64).to(xp) for shape in (([5, 9], 12), ([12, 11], 7), ([3, 8], 7)))
    with pytest.raises(ValueError, match="triple_product: matrices 1 do not match: inner dimensions 12 and 11"):
        batched.triple_product(A, B, C)
    with pytest.raises(ValueError, match="expected C a MatrixBatch of 2 matrices"):
        batched.triple_product(A, B, C[:1])
