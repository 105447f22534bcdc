"""The order of whole numbers, 16 bits at a time."""

import numpy as np
import pytest

from h2gpu.batched.core.offsets import stable_order


@pytest.mark.parametrize("largest", [0, 1, 2**16 - 1, 2**16, 2**20, 2**33, 2**62])
def test_equals_stay_in_order_whatever_the_numbers(largest):
    rng = np.random.default_rng(0)
    numbers = rng.choice(rng.integers(0, largest, 300, endpoint=True), 2000)
    np.testing.assert_array_equal(stable_order(numbers), np.argsort(numbers, kind="stable"))


def test_no_numbers_have_no_order():
    assert stable_order(np.zeros(0, np.int64)).tolist() == []
