"""The order of whole numbers, 16 bits at a time; runs of equal ones."""

import numpy as np
import pytest

from h2gpu.batched.core.offsets import runs_of, stable_order, sums_of_runs


@pytest.mark.parametrize("largest", [0, 1, 2**16 - 1, 2**16, 2**20, 2**33, 2**62])
def test_equals_stay_in_order_whatever_the_numbers(largest):
    rng = np.random.default_rng(0)
    numbers = rng.choice(rng.integers(0, largest, 300, endpoint=True), 2000)
    np.testing.assert_array_equal(stable_order(numbers), np.argsort(numbers, kind="stable"))


def test_no_numbers_have_no_order():
    assert stable_order(np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("counts", [[], [1], [3, 0, 2, 5], [1, 1, 1], [0, 0, 4]])
def test_runs_of_sorted_numbers_are_their_counts(counts):
    numbers = np.repeat(np.arange(len(counts)), counts)
    values, runs = np.random.default_rng(0).integers(0, 100, len(numbers)), runs_of(numbers)
    assert np.diff(runs).tolist() == [count for count in counts if count] and runs[-1] == len(numbers)
    sums = np.bincount(numbers, values, minlength=len(counts))[np.array(counts, int) > 0]
    np.testing.assert_array_equal(sums_of_runs(values, runs), sums)
