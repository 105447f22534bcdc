"""Entries of stacks along an axis: NumPy's take_along_axis."""

import numpy as np
import pytest

from h2gpu.arrays import to_host
from h2gpu.solvers.skeletonization.along import along


@pytest.mark.parametrize("shape", [(4, 7, 5), (4, 0, 5), (4, 7, 0), (0, 7, 5)])
def test_entries_are_those_at_the_indices(shape, xp):
    a, rng = np.random.default_rng(0).random(shape), np.random.default_rng(1)
    count, m, n = shape
    rows, columns = rng.integers(m, size=(count, 3 if m else 0)), rng.integers(n, size=(count, 9 if n else 0))
    turned = xp.asarray(np.ascontiguousarray(a.swapaxes(1, 2))).swapaxes(1, 2)  # not contiguous
    for stack in (xp.asarray(a), turned):
        found = to_host(along(stack, xp.asarray(rows)[:, :, None], 1))
        np.testing.assert_array_equal(found, np.take_along_axis(a, rows[:, :, None], 1))
        for height in (None, 2):
            found = to_host(along(stack, xp.asarray(columns)[:, None], 2, height))
            np.testing.assert_array_equal(found, np.take_along_axis(a[:, :height], columns[:, None], 2))
    if n:
        found = to_host(along(xp.asarray(a[..., 0]), xp.asarray(rows), 1))
        np.testing.assert_array_equal(found, np.take_along_axis(a[..., 0], rows, 1))
