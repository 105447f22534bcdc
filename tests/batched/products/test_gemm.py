"""C = α op(A) op(B) + β C for every batch."""

import numpy as np
import pytest
from batches import DTYPES, close, ragged, stack, transposed
from hypothesis import given, settings
from hypothesis import strategies as st

from h2gpu import batched
from h2gpu.batched import MatrixBatch


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
def test_gemm_of_stacks(dtype, transa, transb):
    A, B, C = stack((50, 4, 6), dtype), stack((50, 6, 5), dtype, 1), stack((50, 4, 5), dtype, 2)
    given_A, given_B = transposed(A, transa).copy(), transposed(B, transb).copy()
    close(batched.gemm(given_A, given_B, transa=transa, transb=transb), A @ B, 6)
    P = batched.gemm(given_A, given_B, C, 1.5, -0.5, transa, transb)
    close(P, dtype(1.5) * (A @ B) - dtype(0.5) * C, 6)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), max_size=8),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(1, 0), (2.0, 1), (-0.5, 0.25)]),
)
def test_gemm_of_ragged_matrices(sizes, dtype, transa, transb, factors):
    m, k, n = np.array(sizes, int).reshape(-1, 3).T
    A = ragged(k if transa else m, m if transa else k, dtype)
    B = ragged(n if transb else k, k if transb else n, dtype, 1)
    C, (alpha, beta) = ragged(m, n, dtype, 2), factors
    P = batched.gemm(A, B, C, alpha, beta, transa, transb)
    out = MatrixBatch.empty(m, n, dtype)
    assert batched.gemm(A, B, C, alpha, beta, transa, transb, out=out) is out
    for b in range(len(A)):
        expected = dtype(alpha) * (transposed(A[b], transa) @ transposed(B[b], transb)) + dtype(beta) * C[b]
        close(P[b], expected, k[b])
        close(out[b], expected, k[b])


def test_gemm_adds_into_its_own_c_and_never_reads_it_when_beta_is_zero():
    A, B, C = stack((3, 4, 4)), stack((3, 4, 4), seed=1), np.full((3, 4, 4), np.nan)
    close(batched.gemm(A, B, C), A @ B, 4)
    A, B, C = (MatrixBatch.from_stack(M) for M in (A, B, stack((3, 4, 4), seed=2)))
    expected = A.as_stack() @ B.as_stack() + C.as_stack()
    batched.gemm(A, B, C, beta=1, out=C)
    close(C.as_stack(), expected, 4)
