"""Norms, selections, joins and leading parts of batches."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from batches import DTYPES, SIZES, of_sizes, stack, transposed
from hypothesis import given
from hypothesis import strategies as st

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies import add_to_diagonals, all_finite


@pytest.mark.parametrize("shape", [(3, 40, 30), (3, 71, 63)])  # of the larger more warps read
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e160, 1e300])
def test_norms_whose_squares_leave_the_range(scale, shape, xp):
    A = np.random.default_rng(0).standard_normal(shape)
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


@pytest.mark.parametrize("sizes", [[(70, 80), (1, 90), (0, 5), (200, 130)], 3 * [(70, 80)], [(3, 4), (0, 2)], []])
def test_norms_of_large_matrices_and_of_small_ones_alike_or_not(sizes):
    matrices = [np.random.default_rng(len(sizes)).standard_normal(size) for size in sizes]
    A = batched.MatrixBatch.empty(*np.array(sizes, np.int64).reshape(-1, 2).T, np.float64)
    for b, M in enumerate(matrices):
        A[b][...] = M
    np.testing.assert_allclose(batched.frobenius_norms(A), [np.linalg.norm(M) for M in matrices], rtol=1e-12)
    lost = [np.linalg.norm(M - M.astype(np.float32)) for M in matrices]
    np.testing.assert_allclose(batched.rounding_errors(A), lost, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (257,), (70, 3, 5), (4099, 2)])
def test_one_number_that_is_none_is_found_wherever_it_stands(shape, dtype, xp):
    A = np.full(shape, np.finfo(dtype).max, dtype)
    assert all_finite(xp.asarray(A)) and all_finite(xp.asarray(A)[::2]) and all_finite(xp.asarray(A)[:0])
    for place, value in itertools.product({0, A.size // 2, A.size - 1}, (np.nan, np.inf, -np.inf)):
        B = A.copy()
        B.flat[place] = value
        assert not all_finite(xp.asarray(B)), (place, value)
        assert all_finite(xp.asarray(B)[1::2]) == np.isfinite(B[1::2]).all()


@pytest.mark.parametrize("out_lies", ["packed", "apart"])
@pytest.mark.parametrize("A_lies", ["packed", "apart", "turned round"])
@pytest.mark.parametrize("index", [[0, 1, 2], [2, 1, 0], [0, 1, 1], [0, 2]])
@pytest.mark.parametrize("rows", [[3, 3, 3], [2, 2, 2]])
def test_gather_of_all_in_their_order_and_of_others(rows, index, A_lies, out_lies, xp):
    """Packed matrices of the same shapes are copied by their entries alone, and no others are."""

    def lying(how, rows):
        if how == "packed":
            return MatrixBatch.from_stack(xp.arange(4.0 * sum(rows)).reshape(len(rows), rows[0], 4))
        every = MatrixBatch.from_stack(xp.arange(120.0).reshape(10, 3, 4))
        return replace(every[np.array([1, 4, 6] if how == "apart" else [5, 4, 3])[: len(rows)]], rows=np.array(rows))

    A, out = lying(A_lies, [3, 3, 3]), lying(out_lies, rows[: len(index)])
    batched.gather(A, index, out=out)
    for found, i, m in zip(out.matrices(), index, rows):
        np.testing.assert_array_equal(to_host(found), to_host(A[i])[:m])


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


@pytest.mark.parametrize("side", [1, 3, 9, 10, 11, 40])
def test_matrices_of_any_size_that_lie_apart_are_packed_in_order(side):
    A = MatrixBatch.from_stack(stack((20, side, side)))
    order = np.random.default_rng(side).permutation(20)[:15]
    expected = np.concatenate([A[b].ravel() for b in order])
    for found in (A[order].packed(), batched.join([A[order[:7]], A[order[7:]]]), batched.gather(A, order)):
        np.testing.assert_array_equal(found.buffer, expected)
    assert batched.join([A[:0], A, A[:0]]) is A and batched.join([A[:0]]).buffer.size == 0


@given(SIZES, st.floats(0, 1))
def test_leading_parts_and_transposes(sizes, fraction):
    A = of_sizes(sizes)
    rows, columns = (A.rows * fraction).astype(int), (A.columns * fraction).astype(int)
    part, T = batched.leading(A, rows, columns), batched.transpose(A)
    for b in range(len(A)):
        np.testing.assert_array_equal(part[b], A[b][: rows[b], : columns[b]])
        np.testing.assert_array_equal(T[b], A[b].T)


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_what_is_added_to_diagonals_of_any_size_and_place(dtype, xp):
    sizes = np.array([3, 0, 40, 1, 7])
    A = MatrixBatch.from_matrices([np.random.default_rng(0).random((m, m)).astype(dtype) for m in sizes]).to(xp)
    before = [to_host(M) for M in A.copied(A).matrices()]
    add_to_diagonals(A[[4, 1, 2]], 0.5)
    for M, old, changed in zip(A.matrices(), before, (False, True, True, False, True)):
        np.testing.assert_array_equal(to_host(M), old + 0.5 * changed * np.eye(len(old), dtype=dtype))


@pytest.mark.parametrize("shape", [(4, 5, 5), (3, 40, 7), (1, 1, 1)])
@pytest.mark.parametrize("kind", ["number", "row", "all"])
def test_what_is_added_to_diagonals_of_a_stack(shape, kind, xp):
    rng = np.random.default_rng(0)
    A, n = rng.random(shape), shape[2]
    d = {"number": 2.0, "row": rng.random(n), "all": rng.random((shape[0], n))}[kind]
    found = xp.array(A)
    add_to_diagonals(found, d if kind == "number" else xp.asarray(d))
    expected = A.copy()
    expected[:, np.arange(n), np.arange(n)] += d
    np.testing.assert_array_equal(to_host(found), expected)
