"""QR of every batch is that of its matrices."""

import numpy as np
import pytest
from batches import DTYPES, SHAPES, SIZES, close, of_sizes, stack
from hypothesis import given
from hypothesis import strategies as st

from h2gpu import batched


def assert_qr(A, Q, R):
    """Q R = A, QᵀQ = I, R upper triangular."""
    m, n = A.shape
    k = min(m, n)
    assert Q.shape == (m, k) and R.shape == (k, n)
    close(Q @ R, A, m)
    close(Q.T @ Q, np.eye(k, dtype=A.dtype), m)
    assert not np.tril(R, -1).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr_of_a_stack(shape, dtype):
    A = stack(shape, dtype)
    Q, R = batched.qr(A)
    for b in range(len(A)):
        assert_qr(A[b], Q[b], R[b])
    close(np.abs(batched.qr(A, mode="r")), np.abs(R), shape[1])
    assert Q.dtype == R.dtype == dtype and len(Q) == len(R) == shape[0]


@given(SIZES, st.sampled_from(DTYPES))
def test_qr_of_ragged_matrices(sizes, dtype):
    A = of_sizes(sizes, dtype)
    (Q, R), R_alone = batched.qr(A), batched.qr(A, mode="r")
    for b in range(len(A)):
        assert_qr(A[b], Q[b], R[b])
        close(np.abs(R_alone[b]), np.abs(R[b]), A.rows[b])


def test_qr_of_rank_deficient_matrices_is_still_orthogonal():
    A = stack((5, 20, 2)) @ stack((5, 2, 10), seed=1)
    A[4] = 0
    Q, R = batched.qr(A)
    for b in range(5):
        assert_qr(A[b], Q[b], R[b])
