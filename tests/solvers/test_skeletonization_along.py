"""Entries of stacks picked along an axis: NumPy's take_along_axis, and zeros where an index is none of the axis."""

import numpy as np
import pytest

from h2gpu.arrays import to_host
from h2gpu.solvers.skeletonization.flat_changes import twin

KINDS = np.float64, np.int32, np.int64, bool


def picked(a, which, axis):
    """The same by np.take_along_axis of a stack with one entry more, zero, along the axis."""
    padded = np.pad(a, [(0, 1 if k == axis else 0) for k in range(a.ndim)])
    which = np.where((which < 0) | (which >= a.shape[axis]), a.shape[axis], which)
    shape = (*which.shape, *[1] * (a.ndim - 2)) if axis == 1 else (len(which), 1, which.shape[1])
    return np.take_along_axis(padded, which.reshape(shape), axis)


@pytest.mark.parametrize("integer", [np.int32, np.int64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 7, 5), (3, 70, 41), (4, 0, 5), (4, 7, 0), (0, 7, 5)])
def test_entries_are_those_at_the_indices_and_zeros_beyond(shape, kind, integer, xp):
    rng, (count, m, n) = np.random.default_rng(1), shape
    a = (rng.random(shape) * 100).astype(kind)
    rows, columns = (rng.integers(-2, size + 3, (count, k)).astype(integer) for size, k in ((m, 33), (n, 9)))
    turned = xp.asarray(np.ascontiguousarray(a.swapaxes(1, 2))).swapaxes(1, 2)  # not contiguous
    beside = xp.asarray(np.concatenate([a, a[:, :2]], axis=1))[:, :m]  # the first rows of larger matrices
    for stack in (xp.asarray(a), turned, beside):
        along = twin(stack).along
        np.testing.assert_array_equal(to_host(along(stack, xp.asarray(rows), 1)), picked(a, rows, 1))
        for height in (None, 2):
            found = to_host(along(stack, xp.asarray(columns), 2, height))
            np.testing.assert_array_equal(found, picked(a[:, :height], columns, 2))
    if n:
        lines = xp.asarray(a)[..., 0]  # every n-th entry
        np.testing.assert_array_equal(
            to_host(twin(lines).along(lines, xp.asarray(rows), 1)), picked(a[..., 0], rows, 1)
        )
