"""SVD of every batch is that of its matrices."""

import numpy as np
import pytest
from batches import DTYPES, SHAPES, SIZES, assert_svd, close, of_sizes, stack
from hypothesis import given
from hypothesis import strategies as st

from h2gpu import batched


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd_of_a_stack(shape, dtype):
    A = stack(shape, dtype)
    U, s, Vt = batched.svd(A)
    for b in range(len(A)):
        assert_svd(A[b], U[b], s[b], Vt[b])
    close(batched.svd(A, vectors="none"), s, max(shape))
    left = batched.svd(A, vectors="left")
    close(left[1], s, max(shape))
    close(left[0], U, max(shape))


@given(SIZES, st.sampled_from(DTYPES))
def test_svd_of_ragged_matrices(sizes, dtype):
    A = of_sizes(sizes, dtype)
    U, s, Vt = batched.svd(A)
    alone = batched.svd(A, vectors="none")
    for b in range(len(A)):
        assert s[b].shape == (min(sizes[b]), 1)
        assert_svd(A[b], U[b], s[b][:, 0], Vt[b])
        close(alone[b], s[b], max(sizes[b]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("vectors", ["both", "left", "none"])
def test_svd_names_the_matrices_that_hold_nan_or_inf(vectors, bad):
    A = stack((40, 6, 4))
    A[[7, 30], 1, 2] = bad
    with pytest.raises(np.linalg.LinAlgError, match=r"svd: NaN or Inf in matrices 7, 30$"):
        batched.svd(A, vectors=vectors)
    B = of_sizes([(3, 2), (0, 5), (4, 4)])
    B[2][1, 1] = bad
    with pytest.raises(np.linalg.LinAlgError, match=r"svd: NaN or Inf in matrices 2$"):
        batched.svd(B, vectors=vectors)


def test_nan_stays_in_its_own_matrix():
    A, B = stack((9, 6, 4)), stack((9, 4, 5), seed=1)
    bad = A.copy()
    bad[3, 0, 0] = np.nan
    others = np.arange(9) != 3
    np.testing.assert_array_equal(batched.gemm(bad, B)[others], batched.gemm(A, B)[others])
    for with_nan, without in zip(batched.qr(bad), batched.qr(A)):
        np.testing.assert_array_equal(with_nan[others], without[others])
    norms = batched.frobenius_norms(bad)
    np.testing.assert_array_equal(np.isnan(norms), ~others)
