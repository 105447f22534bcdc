"""A ragged batch is its matrices, in one buffer."""

import numpy as np
import pytest
from batches import SIZES, of_sizes, ragged, stack
from hypothesis import given
from hypothesis import strategies as st

from h2gpu.batched import MatrixBatch, join
from h2gpu.batched.core.offsets import offsets_of, ranges


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
        both = join([A, backwards])
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
    heights = np.stack([rows // 2, rows - rows // 2], axis=1).ravel()
    halves = A.halves(heights)
    assert A.halves(heights, halves.columns).columns is halves.columns
    for b, (upper, lower) in enumerate(zip(halves[::2].matrices(), halves[1::2].matrices())):
        assert len(upper) == rows[b] // 2
        np.testing.assert_array_equal(np.concatenate([upper, lower]), A[b])
    for pair, upper, lower in zip(halves.pairs().matrices(), halves[::2].matrices(), halves[1::2].matrices()):
        np.testing.assert_array_equal(pair, np.concatenate([upper, lower]))


@given(SIZES, st.slices(8))
def test_parts_of_a_packed_batch_are_packed_where_nothing_lies_between(sizes, part):
    """What is remembered of the whole is said of a part only where it is so."""
    whole = of_sizes(sizes)
    known, alone = MatrixBatch.empty(whole.rows, whole.columns, np.float64), (whole.offsets, whole.rows, whole.columns)
    assert known.is_packed == MatrixBatch(whole.buffer, *alone).is_packed
    apart = MatrixBatch(whole.buffer, *(side[part] for side in alone))
    assert known[part].is_packed == apart.is_packed
    assert known[part][::-1].is_packed == apart[::-1].is_packed
    np.testing.assert_array_equal(known[part].sizes, apart.rows * apart.columns)


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


@given(SIZES, st.data())
def test_a_buffer_is_covered_where_every_entry_is_of_a_matrix(sizes, data):
    A = of_sizes(sizes)
    chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=9)) if sizes else []
    part, met = A[np.array(chosen, np.int64)], np.zeros(A.buffer.size, bool)
    met[ranges(part.offsets, part.sizes)] = True
    assert A.covers_buffer and part.covers_buffer == met.all()


@pytest.mark.gpu
@pytest.mark.parametrize("limits", [(3, 4), (0, 4)])
def test_room_on_a_device_begins_at_multiples_that_are_kept(limits, monkeypatch):
    """Lists of few are the same array on the default stream; other streams, and lists of many, have their own."""
    cupy = pytest.importorskip("cupy")
    sides = cupy.ones(5, np.int64), cupy.ones(5, np.int64), np.float64, cupy, limits
    first, again = (MatrixBatch.empty(*sides).offsets for _ in range(2))
    assert first is again
    np.testing.assert_array_equal(first.get(), limits[0] * limits[1] * np.arange(5))
    monkeypatch.setattr("h2gpu.batched.core.matrix_batch.KEPT", 4)
    many = MatrixBatch.empty(*sides).offsets
    assert many is not first
    np.testing.assert_array_equal(many.get(), first.get())
    monkeypatch.undo()
    if cupy.cuda.Stream(non_blocking=True).ptr:  # the stand-in has one stream
        with cupy.cuda.Stream(non_blocking=True):
            assert MatrixBatch.empty(*sides).offsets is not first
