"""Batched dense linear algebra on the CPU against its definitions: ragged and uniform, of any size from zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import block_sparse_dense
from threadpoolctl import threadpool_info

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.batched.device.threads import one_blas_thread, parallel, pieces
from h2gpu.blocksparse import BlockSparse, block_multiply
from h2gpu.covariance import pairwise

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


def transposed(A, flag):
    return A.swapaxes(-1, -2) if flag else A


def assert_qr(A, Q, R):
    """Q R = A, QᵀQ = I, R upper triangular."""
    m, n = A.shape
    k = min(m, n)
    assert Q.shape == (m, k) and R.shape == (k, n)
    close(Q @ R, A, m)
    close(Q.T @ Q, np.eye(k, dtype=A.dtype), m)
    assert not np.tril(R, -1).any()


def assert_svd(A, U, s, Vt):
    """U diag(s) Vt = A, UᵀU = VtVtᵀ = I, s descending and ≥ 0."""
    k = min(A.shape)
    assert U.shape == (A.shape[0], k) and s.shape == (k,) and Vt.shape == (k, A.shape[1])
    close(U * s @ Vt, A, max(A.shape))
    close(U.T @ U, np.eye(k, dtype=A.dtype), A.shape[0])
    close(Vt @ Vt.T, np.eye(k, dtype=A.dtype), A.shape[1])
    assert (np.diff(s) <= 0).all() and (s >= 0).all()


# QR


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


# SVD


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


# Randomized SVD


@pytest.mark.parametrize("dtype", DTYPES)
def test_rsvd_is_exact_for_matrices_of_that_rank(dtype):
    A = stack((6, 40, 5), dtype) @ stack((6, 5, 30), dtype, seed=1)
    U, s, Vt = batched.rsvd(A, 5, random_state=0)
    assert U.shape == (6, 40, 5) and s.shape == (6, 5) and Vt.shape == (6, 5, 30) and U.dtype == dtype
    for b in range(6):
        close(U[b] * s[b] @ Vt[b], A[b], 40)
        close(U[b].T @ U[b], np.eye(5, dtype=dtype), 40)
    close(s, batched.svd(A, vectors="none")[:, :5], 100)


@pytest.mark.parametrize("power", [0, 2])
def test_rsvd_errs_little_more_than_the_discarded_singular_values(power):
    """E ‖A − U s Vt‖_F² ≤ (1 + k / (oversample − 1)) Σ_{i>k} σ_i²: Halko, Martinsson & Tropp (2011), theorem 10.5."""
    Q, P = batched.qr(stack((20, 50, 30)))[0], batched.qr(stack((20, 30, 30), seed=1))[0]
    sigma = 0.7 ** np.arange(30)
    A = Q * sigma @ P
    U, s, Vt = batched.rsvd(A, 8, oversample=8, power=power, random_state=3)
    errors = np.linalg.norm(A - U * s[:, None] @ Vt, axis=(1, 2))
    bound = np.sqrt((1 + 8 / 7) * np.sum(sigma[8:] ** 2))
    assert (errors >= np.linalg.norm(sigma[8:]) * (1 - 1e-12)).all()
    assert errors.mean() <= (bound if power == 0 else 1.001 * np.linalg.norm(sigma[8:]))


def test_rsvd_does_not_depend_on_neighbours_and_repeats_with_its_seed():
    A = of_sizes([(30, 20), (7, 9), (40, 33)])
    whole, alone = batched.rsvd(A, 4, random_state=5), batched.rsvd(A[1:2].packed(), 4, random_state=5)
    for together, single in zip(whole, alone):
        close(together[1], single[0], 30)
    again, other = batched.rsvd(A, 4, random_state=5), batched.rsvd(A, 4, random_state=6)
    np.testing.assert_array_equal(again[0].buffer, whole[0].buffer)
    assert (other[0].buffer != whole[0].buffer).any()


@pytest.mark.parametrize("shape", [(0, 4, 3), (3, 0, 5), (3, 5, 0), (4, 2), (2, 3, 4, 5)])
def test_rsvd_has_the_shapes_of_numpy(shape):
    k = min(2, *shape[-2:])
    U, s, Vt = batched.rsvd(stack(shape), 2)
    lead = shape[:-2]
    assert (U.shape, s.shape, Vt.shape) == ((*lead, shape[-2], k), (*lead, k), (*lead, k, shape[-1]))


# Products


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


def test_leading_dimensions_are_numpys():
    A, B = stack((2, 3, 5, 4)), stack((4, 6))
    close(batched.gemm(A, B), A @ B, 4)
    assert batched.gemm(A[0, 0], B).shape == (5, 6)
    Q, R = batched.qr(A)
    close(Q @ R, A, 5)
    U, s, Vt = batched.svd(A[0, 0])
    assert_svd(A[0, 0], U, s, Vt)
    assert batched.svd(A, vectors="none").shape == (2, 3, 4)


def test_integers_are_converted():
    A = np.arange(12).reshape(2, 3, 2)
    assert batched.qr(A)[0].dtype == np.float64
    close(batched.gemm(A, A, transa=True), (A.swapaxes(1, 2) @ A).astype(float), 3)


def test_the_order_of_bytes_does_not_matter():
    A = stack((2, 5, 3))
    np.testing.assert_array_equal(batched.qr(A.astype(">f8"))[1], batched.qr(A)[1])
    np.testing.assert_array_equal(
        batched.solve(A[:, :3].astype(">f8"), A[:, 4].astype(">f8")), batched.solve(A[:, :3], A[:, 4])
    )


def test_ragged_integers_are_converted_and_other_kinds_refused():
    A = np.array([[4, 2], [3, 5]])
    whole = MatrixBatch.from_matrices([A])
    for function in (batched.inv, batched.cholesky, lambda B: batched.qr(B)[1], lambda B: batched.svd(B)[1]):
        np.testing.assert_array_equal(function(whole)[0], function(whole.astype(np.float64))[0])
    assert abs(batched.det(whole)[0] - 14) < 1e-13
    half, imaginary = whole.astype(np.float16), whole.astype(complex)
    functions = batched.qr, batched.svd, batched.cholesky, batched.pivoted_qr, batched.frobenius_norms
    for function in (*functions, lambda B: batched.rsvd(B, 1), lambda B: batched.truncated_svd(B, 0.1)):
        for other in (half, imaginary):
            with pytest.raises(ValueError, match=f"expected float32 or float64 matrices.*{other.dtype}"):
                function(other)
    with pytest.raises(ValueError, match="expected float32 or float64 or complex64 or complex128"):
        batched.lu_factor(half)
    with pytest.raises(ValueError, match="gemm: expected A a MatrixBatch of floating-point numbers"):
        batched.gemm(whole, whole)


def test_numbers_that_a_product_cannot_hold(xp):
    A = xp.ones((2, 3, 3))
    single, vector = A.astype(np.float32), xp.ones((2, 3))
    for call, words in (
        (lambda: batched.gemm(A, A, A * 1j, beta=1), "gemm: expected C of the precision of A, float64, got complex128"),
        (lambda: batched.gemm(single, single, A, beta=1), "gemm: expected C of the precision of A, float32"),
        (lambda: batched.gemm(A, A, alpha=1 + 2j), "gemm: alpha: expected a number for matrices of float64"),
        (lambda: batched.gemm(A, A, alpha=[1, 2]), "gemm: alpha: expected a number"),
        (lambda: batched.gemv(A, vector, beta="2"), "gemv: beta: expected a number"),
        (lambda: batched.syrk(A, alpha=1j), "syrk: alpha: expected a number"),
        (lambda: batched.trsm(A, A, alpha=None), "trsm: alpha: expected a number"),
        (lambda: batched.axpy(A, A, [1j, 2]), "axpy: expected alpha real numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    np.testing.assert_array_equal(to_host(batched.axpy(A, A, [1.0, 3.0]))[:, 0, 0], [2, 4])
    C = xp.ones((3, 3), int)
    assert (to_host(batched.gemm(A, A, C, beta=1)) == 4).all()


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e160, 1e300])
def test_norms_whose_squares_leave_the_range(scale, xp):
    A = np.random.default_rng(0).standard_normal((3, 40, 30))
    A[1] = 0
    norms = to_host(batched.frobenius_norms(xp.asarray(A * scale)))
    np.testing.assert_allclose(norms / scale, np.linalg.norm(A, axis=(1, 2)), rtol=1e-12)
    assert to_host(batched.frobenius_norms(xp.asarray([[[np.inf, 1.0]], [[np.nan, 1.0]]]))).tolist()[0] == np.inf
    assert batched.frobenius_norms(xp.asarray(A[0])).shape == ()
    assert batched.rounding_errors(xp.asarray(A[None])).shape == (1, 3)
    single = xp.asarray((A * 1e30).astype(np.float32))
    assert single.dtype == np.float32 and float(batched.frobenius_norms(single)[0]) > 1e31


@given(SIZES, st.sampled_from(DTYPES))
def test_frobenius_norms(sizes, dtype):
    A = of_sizes(sizes, dtype)
    norms = batched.frobenius_norms(A)
    assert norms.dtype == np.float64 and norms.shape == (len(A),)
    np.testing.assert_allclose(norms, [np.linalg.norm(A[b].astype(float)) for b in range(len(A))], rtol=1e-12)
    uniform = stack((4, 3, 5))
    np.testing.assert_allclose(batched.frobenius_norms(uniform) ** 2, (uniform**2).sum(axis=(1, 2)), rtol=1e-13)


# Copies


@given(SIZES.filter(len), st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=10))
def test_gather_selects_and_transposes(sizes, choice):
    A = of_sizes(sizes)
    index, flags = [i % len(A) for i, _ in choice], [flag for _, flag in choice]
    out = batched.gather(A, index, flags)
    assert len(out) == len(index) and out.is_packed
    for b, (i, flag) in enumerate(zip(index, flags)):
        np.testing.assert_array_equal(out[b], transposed(A[i], flag))


@given(st.lists(SIZES, max_size=4), st.floats(0, 1))
def test_batches_are_joined_by_their_leading_parts(lists, fraction):
    batches = [of_sizes(sizes) for sizes in lists if sizes]
    matrices = [A for batch in batches for A in batch.matrices()]
    rows, columns = np.array([np.multiply(A.shape, fraction) for A in matrices]).astype(int).reshape(-1, 2).T
    out = batched.join(batches, MatrixBatch.empty(rows, columns, np.float64))
    for part, A in zip(out.matrices(), matrices):
        np.testing.assert_array_equal(part, A[: part.shape[0], : part.shape[1]])


@given(SIZES, st.floats(0, 1))
def test_leading_parts_and_transposes(sizes, fraction):
    A = of_sizes(sizes)
    rows, columns = (A.rows * fraction).astype(int), (A.columns * fraction).astype(int)
    part, T = batched.leading(A, rows, columns), batched.transpose(A)
    for b in range(len(A)):
        np.testing.assert_array_equal(part[b], A[b][: rows[b], : columns[b]])
        np.testing.assert_array_equal(T[b], A[b].T)


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


# Block-sparse matrices


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


# MatrixBatch


@given(SIZES)
def test_a_batch_is_its_matrices(sizes):
    A = of_sizes(sizes)
    assert len(A) == len(sizes) and A.nbytes == A.buffer.nbytes == 8 * sum(m * n for m, n in sizes)
    assert [A[b].shape for b in range(len(A))] == sizes
    assert A.is_packed and A.packed() is A and A.astype(np.float64) is A
    np.testing.assert_array_equal(A.entries, np.concatenate([np.zeros(0), *[A[b].ravel() for b in range(len(A))]]))
    backwards = A[::-1]
    np.testing.assert_array_equal(backwards.buffer, A.buffer)
    for b, single in enumerate(A.astype(np.float32)[i] for i in range(len(A))):
        assert single.dtype == np.float32
        np.testing.assert_array_equal(single, A[b].astype(np.float32))
    for b in range(len(A)):
        np.testing.assert_array_equal(backwards.packed()[b], A[len(A) - 1 - b])
    if sizes:
        both = MatrixBatch.concatenated([A, backwards])
        copied = MatrixBatch.from_matrices([A[b] for b in range(len(A))])
        np.testing.assert_array_equal(both.entries, np.concatenate([A.entries, backwards.entries]))
        np.testing.assert_array_equal(copied.entries, A.entries)
        assert both.sizes.tolist() == [m * n for m, n in sizes + sizes[::-1]]


@given(st.lists(st.integers(0, 5), max_size=8), st.integers(0, 4))
def test_stacking_and_halving_change_sizes_only(counts, columns):
    rows = np.random.default_rng(0).integers(0, 5, sum(counts))
    A = ragged(rows, columns)
    stacks = A.stacked(counts)
    first = offsets_of(counts)
    assert stacks.buffer is A.buffer and len(stacks) == len(counts)
    for g, count in enumerate(counts):
        parts = [A[b] for b in range(first[g], first[g + 1])]
        np.testing.assert_array_equal(stacks[g], np.concatenate(parts) if count else np.zeros((0, 0)))
    halves = A.halves(np.stack([rows // 2, rows - rows // 2], axis=1).ravel())
    for b, (upper, lower) in enumerate(zip(halves[::2].matrices(), halves[1::2].matrices())):
        assert len(upper) == rows[b] // 2
        np.testing.assert_array_equal(np.concatenate([upper, lower]), A[b])
    for pair, upper, lower in zip(halves.pairs().matrices(), halves[::2].matrices(), halves[1::2].matrices()):
        np.testing.assert_array_equal(pair, np.concatenate([upper, lower]))


def test_views_share_memory():
    A = stack((4, 3, 2))
    B = MatrixBatch.from_stack(A)
    B[1:3][0][...] = 7
    assert (A[1] == 7).all() and B.as_stack().base is not None
    np.testing.assert_array_equal(B.as_stack(), A)
    rows = MatrixBatch.from_rows(A.reshape(12, 2), [3, 0], [2, 4])
    rows[0][...] = 5
    assert (A.reshape(12, 2)[3:5] == 5).all() and rows[1].shape == (4, 2)
    assert not MatrixBatch.zeros([2, 0], 3, np.float32).buffer.any()
    assert ragged([2, 3], [2, 2]).as_stack() is None
    assert ragged([], []).as_stack() is None


def test_repr_tells_sizes_and_precision():
    assert repr(ragged([2, 3], [4, 4])) == "MatrixBatch(2 matrices, rows 2…3, columns 4…4, float64, 0.00016 MB)"
    assert "empty" in repr(ragged([], []))


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=9))
def test_ranges_concatenate_aranges(pairs):
    starts, counts = np.array(pairs, int).reshape(-1, 2).T
    expected = [i for start, count in pairs for i in range(start, start + count)]
    assert ranges(starts, counts).tolist() == expected


# Threads


@given(st.lists(st.integers(0, 50)), st.integers(0, 100))
def test_pieces_are_consecutive_and_no_heavier_than_one_item_beyond_the_target(weights, target):
    slices = pieces(weights, target)
    assert [i for piece in slices for i in range(piece.start, piece.stop)] == list(range(len(weights)))
    for piece in slices:
        own = weights[piece]
        assert own and (len(own) == 1 or sum(own[:-1]) < target)


def test_parallel_keeps_the_order_and_raises_the_first_error():
    assert parallel(lambda i: i * i, range(100)) == [i * i for i in range(100)]
    assert parallel(abs, []) == []

    def fail(i):
        if i % 10 == 7:
            raise KeyError(i)

    with pytest.raises(KeyError, match="7"):
        parallel(fail, range(50))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_runs_on_one_thread_inside_and_as_before_outside():
    before = blas_threads()
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


# Bad arguments


A34, A43, A32_SINGLE = np.zeros((2, 3, 4)), np.zeros((2, 4, 3)), np.zeros((2, 4, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batched.qr(np.zeros(3)), r"A: expected float32 or float64 .* got shape \(3,\)"),
        (lambda: batched.qr(A34.astype(complex)), "complex128"),
        (lambda: batched.qr(A34.astype(object)), "object"),
        (lambda: batched.qr(A34.astype(np.float16)), "float16"),
        (lambda: batched.qr(A34, mode="full"), 'qr: expected mode "reduced" or "r", got \'full\''),
        (lambda: batched.svd(A34, vectors="right"), "svd: expected vectors"),
        (lambda: batched.svd(A34, method="jacobi"), "svd: expected method one of auto, register"),
        (lambda: batched.svd(np.zeros(3)), "A: expected float32 or float64"),
        (lambda: batched.rsvd(A34, 0), "rsvd: expected an integer rank ≥ 1, got 0"),
        (lambda: batched.rsvd(A34, 2.0), "integer rank"),
        (lambda: batched.rsvd(A34, 2, oversample=-1), "integer oversample ≥ 0"),
        (lambda: batched.rsvd(A34, 2, power=-1), "integer power ≥ 0"),
        (lambda: batched.rsvd(np.zeros(3), 2), "A: expected float32 or float64"),
        (lambda: batched.gemm(A34, A34), "gemm: expected matching inner dimensions"),
        (lambda: batched.gemm(A34, A43, transa=True), "check transa and transb"),
        (lambda: batched.gemm(A34, A43, out=np.empty((3, 3, 4))), "gemm: expected out contiguous"),
        (lambda: batched.gemm(A34, A32_SINGLE), "precisions, got .* float64 and .* float32"),
        (lambda: batched.gemm(A34, np.zeros(4)), "B: expected float32 or float64"),
        (lambda: batched.gemm(A34, np.zeros((3, 4, 3))), "shape"),
        (lambda: batched.gemm(ragged([2], [3]), ragged([2], [3])), "gemm: matrices 0 do not match: .* 3 and 2"),
        (lambda: batched.gemm(ragged([2], [3]), ragged([3, 3], [2, 2])), "gemm: expected B a MatrixBatch of 1"),
        (lambda: batched.gemm(ragged([2], [3]), np.zeros((1, 3, 2))), "gemm: expected B a MatrixBatch"),
        (lambda: batched.gemm(ragged([2], [3]), ragged([3], [2], np.float32)), "of float64"),
        (
            lambda: batched.gemm(ragged([2], [3]), ragged([3], [2]), ragged([1], [2]), beta=1),
            "rows of C 1 and 2",
        ),
        (
            lambda: batched.gemm(ragged([2], [3]), ragged([3], [2]), out=ragged([2], [1])),
            "columns of out 1 and 2",
        ),
        (lambda: batched.gather(ragged([2], [3]), [1]), "gather: expected indices of 1 matrices, got 1"),
        (lambda: batched.leading(ragged([2], [3]), [3], [3]), "gather: expected out of 1 matrices no larger"),
        (lambda: batched.join([ragged([2], [3])], ragged([2, 2], [3, 3])), "join: expected out of 1 matrices"),
    ],
)
def test_bad_arguments_give_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
