"""The rank that a tail allows: the smallest whose rest is within the tolerance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.tails import padded, rank_within, tails

VALUES = st.lists(st.floats(0, 1e3, allow_subnormal=False), min_size=1, max_size=12)


@given(values=VALUES, tolerance=st.floats(0, 2e3))
def test_the_rank_is_the_smallest_whose_tail_is_within(values, tolerance):
    sigma = np.sort(values)[::-1]
    k = int(rank_within(sigma, tolerance))
    rest = [math.hypot(*sigma[i:]) for i in range(len(sigma) + 1)]
    slack = 1e-12 * rest[0]
    assert rest[k] <= tolerance + slack and (k == 0 or rest[k - 1] > tolerance - slack)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_squares_out_of_range_do_no_harm(scale, xp):
    sigma = xp.asarray([[4.0, 3.0, 0.0], [0.0, 0.0, 0.0]]) * scale
    np.testing.assert_allclose(to_host(tails(sigma)) / scale, [[5, 3, 0], [0, 0, 0]], rtol=1e-15)
    assert to_host(rank_within(sigma, 3.5 * scale)).tolist() == [1, 0]


def test_tolerances_by_row_and_by_place():
    sigma = np.array([[4.0, 3.0], [4.0, 3.0]])
    assert rank_within(sigma, np.array([[3.0], [6.0]])).tolist() == [1, 0]
    assert rank_within(sigma[0], np.array([5.0, 2.9])) == 1  # of the tail from 1 on


def test_no_values_have_rank_zero():
    assert rank_within(np.empty((3, 0)), 1.0).tolist() == [0, 0, 0] and tails(np.empty((3, 0))).shape == (3, 0)


def test_columns_of_differing_length_are_padded_with_zeros():
    columns = MatrixBatch.from_matrices([np.arange(1.0, n + 1)[:, None] for n in (2, 0, 3)])
    np.testing.assert_array_equal(padded(columns), [[1, 2, 0], [0, 0, 0], [1, 2, 3]])
