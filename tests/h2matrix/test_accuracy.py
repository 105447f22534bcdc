"""The account of rtol: no part and no sum of parts exceeds it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import points_of

from h2gpu.clustering import ClusterTree
from h2gpu.h2matrix.accuracy import Account, Accuracy

RTOLS = st.floats(1e-12, 0.9)


@given(rtol=RTOLS)
def test_the_parts_of_the_whole_add_up_to_less_though_the_estimate_of_interpolation_falls_short(rtol):
    whole, short = Accuracy.of(rtol, np.float64), 1.7
    assert (short * whole.interpolation) ** 2 + whole.compression.rtol**2 < rtol**2


@given(rtol=RTOLS, levels=st.integers(1, 30), dtype=st.sampled_from([np.float32, np.float64]))
def test_a_compression_discards_no_more_than_it_may_and_storage_gets_the_rest(rtol, levels, dtype):
    accuracy = Accuracy.of(max(rtol, 2e-6), dtype)
    part, _ = accuracy.discarded(levels)
    assert 0.49 * accuracy.rtol**2 < part < accuracy.rtol**2
    assert accuracy.unrounded.rtol**2 + accuracy.storage == pytest.approx(accuracy.rtol**2, rel=1e-12)


def test_float32_is_decomposed_in_float64_where_rotations_would_take_too_much():
    tight, loose = Accuracy.of(5e-6, np.float32), Accuracy.of(1e-2, np.float32)
    assert tight.discarded(16)[1] and not loose.discarded(16)[1]
    assert not Accuracy.of(1e-14, np.float64).discarded(16)[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_a_precision_cannot_hold_is_refused(dtype):
    least = 8 * float(np.finfo(dtype).eps)
    assert Accuracy.of(least, dtype).compression.rtol == least
    assert not Accuracy.of(least, dtype).rounds("auto") and not Accuracy.of(0.1, dtype).rounds("full")
    assert Accuracy.of(0.1, dtype).rounds("auto") == (dtype == np.float64)
    for rtol in (0.99 * least, 0, 1, -1, np.nan, "1e-6", None):
        with pytest.raises(ValueError, match="rtol: expected a number from"):
            Accuracy.of(rtol, dtype)


@given(n=st.integers(2, 300), fraction=st.floats(0, 1), skip=st.integers(0, 3))
def test_levels_that_spend_their_shares_spend_what_is_allowed(n, fraction, skip):
    """All of it where each spends its share; what one level leaves goes to those above."""
    tree = ClusterTree.build(points_of("uniform", n, 2), 4)
    used = np.arange(len(tree)) >= tree.level_offsets[min(skip, tree.levels - 1)]
    whole, sparing = Account(2.0, tree.by_level(used)), Account(2.0, tree.by_level(used))
    for l in reversed(range(tree.levels)):
        assert sparing.share(l) >= whole.share(l) - 1e-12
        whole.spend(whole.share(l))
        sparing.spend(fraction * sparing.share(l))
    assert whole.left == pytest.approx(0.0, abs=1e-12)
    assert -1e-12 <= sparing.left <= 2.0 * (1 - fraction) + 1e-12
