"""Matrices told by their addresses are those that lie there, and no address outside their owners is believed."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

MATRICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 5), st.integers(0, 5)), max_size=8)


def address(A, entry=0):
    start = A.ctypes.data if isinstance(A, np.ndarray) else A.data.ptr
    return start + entry * A.dtype.itemsize


def three(xp, dtype=np.float64):
    """Owners of 65 entries each, allocated apart, and their entries on the host.

    One of them begins a large array, which on a CPU lies so far from the others that offsets take more than 32 bits.
    """
    entries = np.random.default_rng(0).standard_normal((3, 65)).astype(dtype)
    large = xp.asarray(np.concatenate([entries[0], np.zeros(1 << 17, dtype)]))
    return [large[:65], *(xp.asarray(row.copy()) for row in entries[1:])], entries


@given(MATRICES, st.sampled_from([np.float32, np.float64, np.complex64, np.complex128]))
def test_what_lies_at_the_addresses(found, dtype):
    """A_b = owner[entry : entry + m n] for any order, overlap and owner; its pointers are those given."""
    owners, entries = three(np, dtype)
    pointers = np.array([address(owners[k], entry) for k, entry, _, _ in found], np.uint64)
    rows, columns = (np.array([sizes[i] for sizes in found], np.int64) for i in (2, 3))
    A = MatrixBatch.from_pointers(pointers, rows, columns, owners)
    expected = [entries[k, entry : entry + m * n].reshape(m, n) for k, entry, m, n in found]
    assert A.dtype == dtype and len(A) == len(found)
    for b, M in enumerate(expected):
        np.testing.assert_array_equal(A[b], M)
    some = rows * columns > 0
    assert (A.pointers[some] == pointers[some]).all()
    packed = A.packed()
    assert packed.buffer.size == sum(M.size for M in expected)
    np.testing.assert_array_equal(packed.buffer, np.concatenate([np.zeros(0, dtype), *[M.ravel() for M in expected]]))


def test_routines_work_on_scattered_matrices(xp):
    """Q R = A, products into them, and moving them: each as of matrices that are copied together first."""
    owners, entries = three(xp)
    places, rows, columns = [(2, 1), (0, 10), (1, 0), (2, 40)], [6, 5, 8, 3], [5, 5, 8, 4]
    pointers = np.array([address(owners[k], entry) for k, entry in places], np.uint64)
    A = MatrixBatch.from_pointers(xp.asarray(pointers), rows, columns, owners)
    copied = [entries[k, e : e + m * n].reshape(m, n) for (k, e), m, n in zip(places, rows, columns)]
    Q, R = batched.qr(A)
    U, s, Vt = batched.svd(A[1:])
    for b, M in enumerate(copied):
        np.testing.assert_allclose(to_host(Q[b] @ R[b]), M, rtol=0, atol=1e-13)
        if b:
            np.testing.assert_allclose(to_host(U[b - 1] * s[b - 1][:, 0] @ Vt[b - 1]), M, rtol=0, atol=1e-13)
    norms = [np.linalg.norm(M) for M in copied]
    np.testing.assert_allclose(to_host(batched.frobenius_norms(A)), norms, rtol=1e-13)
    for M, here in zip(copied, A.to(np).matrices()):
        np.testing.assert_array_equal(here, M)
    np.testing.assert_array_equal(to_host(A.pointers), pointers)


def test_results_are_written_where_the_pointers_say(xp):
    """C_b = A_bᵀ A_b in memory of its own, entries beside it as they were."""
    owners, entries = three(xp)
    A = MatrixBatch.from_matrices([xp.asarray(entries[k, :6].reshape(3, 2)) for k in range(2)])
    C = MatrixBatch.from_pointers([address(owners[2], 7), address(owners[0], 30)], 2, 2, owners)
    batched.gemm(A, A, transa=True, out=C)
    for k, owner, first in ((0, 2, 7), (1, 0, 30)):
        M, found = entries[k, :6].reshape(3, 2), to_host(owners[owner])
        np.testing.assert_allclose(found[first : first + 4].reshape(2, 2), M.T @ M, rtol=1e-14)
        beside = np.r_[:first, first + 4 : 65]
        np.testing.assert_array_equal(found[beside], entries[owner, beside])


def test_the_owners_live_as_long_as_a_matrix():
    owner = np.arange(6.0)
    gone = weakref.ref(owner)
    A = MatrixBatch.from_pointers([address(owner, 2)], 2, 2, owner)[0]
    del owner
    gc.collect()
    assert A.tolist() == [[2, 3], [4, 5]] and gone() is not None
    del A
    gc.collect()
    assert gone() is None


def test_bytes_are_an_owner_where_the_type_is_told():
    held = np.zeros(8 * 5 + 4, np.uint8)
    first = -(-held.ctypes.data // 8) * 8
    A = MatrixBatch.from_pointers([first], 2, 2, held, np.float64)
    A[0][...] = 1
    assert held.view()[first - held.ctypes.data :][:32].view(np.float64).tolist() == [1] * 4
    held.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        MatrixBatch.from_pointers([first], 2, 2, held, np.float64)[0][...] = 1


X, Y = np.zeros((4, 4)), np.zeros(9)


@pytest.mark.parametrize(
    ("pointers", "rows", "columns", "owners", "words"),
    [
        ([address(X), address(X, 13)], 2, 2, X, "in one of the owners, got matrix 1, 2 × 2 at 0x"),
        ([address(X, -1)], 1, 1, X, "in one of the owners, got matrix 0"),
        ([0], 1, 1, [X, Y], "in one of the owners"),
        (np.array([2**64 - 8], np.uint64), 1, 1, X, "in one of the owners"),
        ([address(X)], 2**40, 2**40, X, "in one of the owners"),
        ([address(X) + 4], 1, 1, X, "at a multiple of 8 bytes, got matrix 0"),
        ([[address(X)]], 1, 1, X, r"pointers: expected shape \(batch,\)"),
        ([1.5], 1, 1, X, "pointers: expected integers"),
        ([address(X)], [1, 2], 1, X, "rows: expected an integer ≥ 0 or 1 of them"),
        ([address(X)], 1, -1, X, "columns: expected an integer ≥ 0"),
        ([address(X)], 1, 1, [], "owners: expected the arrays that hold the matrices, got none"),
        ([address(X)], 1, 1, X[:, :2], "owners: expected contiguous arrays, got one of strides"),
        ([address(X)], 1, 1, [X, Y.astype(np.float32)], "dtype: expected one of float32, .* got float32, float64"),
        ([address(X)], 1, 1, X.view(np.int64), "dtype: expected one of .* got int64"),
        ([address(X)], 1, 1, X.view(">f8"), "dtype: expected one of .* got >f8"),
    ],
)
def test_what_cannot_be_believed_is_refused(pointers, rows, columns, owners, words):
    with pytest.raises(ValueError, match=words):
        MatrixBatch.from_pointers(pointers, rows, columns, owners)


@pytest.mark.gpu
def test_owners_of_host_and_gpu_are_refused():
    cupy = pytest.importorskip("cupy")
    with pytest.raises(ValueError, match="owners: expected arrays of one device"):
        MatrixBatch.from_pointers([address(X)], 1, 1, [X, cupy.zeros(3)])
