"""Blocks of one buffer by their addresses: D_ab added to panels, Y Yᵀ subtracted from blocks; what is packed."""

import numpy as np
import pytest

from h2gpu.arrays import to_host
from h2gpu.solvers.skeletonization.flat_changes import twin

CELLS, ROWS, NEIGHBOURS = 5, 37, 4


@pytest.fixture(params=[np.int32, np.int64])
def addresses(request):
    """Rows of different blocks whose entries do not meet, some of them padded: base, step, slot, real."""
    rng, most = np.random.default_rng(0), 60
    slot = np.argsort(rng.random((CELLS, most)), axis=1)[:, :ROWS]
    step = rng.integers(1, 3, (CELLS, ROWS, NEIGHBOURS))
    base = 1 + 2 * most * np.arange(step.size).reshape(step.shape)
    base[rng.random(base.shape) < 0.2] = 0
    return *(part.astype(request.param) for part in (base, step, slot)), rng.random((CELLS, ROWS)) < 0.8


@pytest.mark.parametrize("columns", [1, 20, 37])
@pytest.mark.parametrize("padded", [0.0, 0.3])
def test_panels_are_weighted_by_rows_and_zero_where_rows_or_columns_are_padded(columns, padded, xp):
    rng = np.random.default_rng(3)
    K, weights = rng.random((CELLS, ROWS, columns)), rng.random((CELLS, ROWS))
    weights[rng.random(weights.shape) < padded] = 0
    expected = K * weights[:, :, None] * (weights[:, None, :columns] != 0)
    K = xp.asarray(K)
    twin(K).mask_panels(K, xp.asarray(weights))
    np.testing.assert_array_equal(to_host(K), expected)


@pytest.mark.parametrize("columns", [1, 20, 37])
def test_blocks_are_added_where_rows_and_columns_are_real(columns, addresses, xp):
    base, step, slot, real = addresses
    base, step, rng = base[..., 0], step[..., 0], np.random.default_rng(1)
    K, buffer = rng.random((CELLS, ROWS + 6, columns)), rng.random(int(base.max()) + 200)
    expected = K.copy()
    for b, i, j in np.ndindex(CELLS, ROWS, columns):
        if base[b, i] and real[b, j]:
            expected[b, i, j] += buffer[base[b, i] + step[b, i] * slot[b, j]]
    K = xp.asarray(K)
    twin(K).add_blocks(K, *map(xp.asarray, (buffer, base, step, slot, real)))
    np.testing.assert_array_equal(to_host(K), expected)


def test_updates_are_subtracted_once(addresses, xp):
    base, step, slot, _ = addresses
    rng = np.random.default_rng(2)
    which = rng.integers(NEIGHBOURS, size=(CELLS, ROWS)).astype(np.int32)
    U, buffer = rng.random((CELLS, ROWS, ROWS)), rng.random(int(base.max()) + 200)
    expected = buffer.copy()
    for b, i, j in np.ndindex(U.shape):
        first = base[b, i, which[b, j]]
        if first:
            expected[first + step[b, i, which[b, j]] * slot[b, j]] -= U[b, i, j]
    buffer = xp.asarray(buffer)
    twin(buffer).subtract_updates(buffer, *map(xp.asarray, (U, base, step, which, slot)))
    np.testing.assert_array_equal(to_host(buffer), expected)


def test_triangles_are_packed_where_they_belong_and_come_back_beside_the_identity(xp):
    n, orders, first = 37, np.array([5, 37, 0, 20]), np.array([913, 210, 7, 0])
    L, packed = np.random.default_rng(4).random((len(orders), n, n)), np.zeros(2000)
    stack, table = xp.asarray(L), xp.asarray(np.stack([first, orders]))
    again, found = xp.asarray(np.full_like(L, np.nan)), xp.asarray(packed)
    for A, start, r in zip(L, first, orders):
        triangle = np.concatenate([row[: i + 1] for i, row in enumerate(A[:r])] or [np.zeros(0)])
        packed[start : start + len(triangle)] = triangle
        A[...] = np.eye(n) + np.pad(np.tril(A[:r, :r]) - np.eye(r), (0, n - r))
    twin(stack).pack_triangles(stack, *table, found)
    np.testing.assert_array_equal(to_host(found), packed)
    twin(stack).unpack_triangles(found, *table, None, again)
    np.testing.assert_allclose(to_host(again), L, rtol=1e-15)
    which = np.array([1, 3, 1, 0, 2])
    again = xp.asarray(np.full((len(which), n, n), np.nan))
    twin(stack).unpack_triangles(found, *table, xp.asarray(which), again)
    np.testing.assert_allclose(to_host(again), L[which], rtol=1e-15)


@pytest.mark.parametrize("which", [None, np.array([2, 0, 2, 3])])
def test_parts_of_matrices_come_back_where_they_were_and_zeros_around_them(which, xp):
    m, n, rng = 50, 37, np.random.default_rng(5)
    first, rows, columns = np.array([[0, 13, 50, 7], [50, 20, 0, 40], [37, 5, 30, 0]])
    offset, packed = np.array([0, 1900, 3, 5]), rng.random(2100)
    A = np.zeros((len(first), m, n))
    for matrix, start, i, height, width in zip(A, offset, first, rows, columns):
        matrix[i : i + height, :width] = packed[start : start + height * width].reshape(height, width)
    A = A if which is None else A[which]
    out = xp.asarray(np.full(A.shape, np.nan))
    places = map(xp.asarray, (packed, offset, first, rows, columns))
    twin(out).unpack_parts(*places, None if which is None else xp.asarray(which), out)
    np.testing.assert_array_equal(to_host(out), A)
