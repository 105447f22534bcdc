"""Random stacks and ragged batches, and the products that they are held against."""

import numpy as np
from hypothesis import strategies as st

from h2gpu.apps.benchmarks.routines.criteria import on_host
from h2gpu.batched import MatrixBatch

DTYPES = [np.float64, np.float32]
SHAPES = [(0, 4, 3), (1, 1, 1), (3, 5, 5), (4, 9, 2), (4, 2, 9), (3, 0, 4), (3, 4, 0), (2, 0, 0), (300, 40, 30)]
SIZES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8)


def stack(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def ragged(rows, columns, dtype=np.float64, seed=0):
    A = MatrixBatch.empty(rows, columns, dtype)
    A.buffer[...] = stack(A.buffer.shape, dtype, seed)
    return A


def of_sizes(sizes, dtype=np.float64, seed=0):
    """A ragged batch of the given list of (rows, columns)."""
    rows, columns = np.array(sizes, int).reshape(-1, 2).T
    return ragged(rows, columns, dtype, seed)


def close(A, B, size=1):
    """A = B to c · ε · size, relative to the largest entry."""
    A, B = np.asarray(A), np.asarray(B)
    assert A.shape == B.shape and A.dtype == B.dtype
    np.testing.assert_allclose(A, B, rtol=0, atol=8 * np.finfo(A.dtype).eps * max(1, size) * np.abs(B).max(initial=1))


def assert_alone_as_together(work, given, names=None):
    """work(stack) → arrays gives each matrix of a stack on a GPU the same bits when it is alone; names: of those."""
    together = list(map(on_host, work(given)))
    for b in range(len(given)):
        for many, one in zip(together, map(on_host, work(given[b : b + 1]))):
            np.testing.assert_array_equal(many[b], one[0], err_msg=names[b] if names else f"matrix {b}")


def transposed(A, flag):
    return A.swapaxes(-1, -2) if flag else A


def assert_svd(A, U, s, Vt):
    """U diag(s) Vt = A, UᵀU = VtVtᵀ = I, s descending and ≥ 0."""
    k = min(A.shape)
    assert U.shape == (A.shape[0], k) and s.shape == (k,) and Vt.shape == (k, A.shape[1])
    close(U * s @ Vt, A, max(A.shape))
    close(U.T @ U, np.eye(k, dtype=A.dtype), A.shape[0])
    close(Vt @ Vt.T, np.eye(k, dtype=A.dtype), A.shape[1])
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
