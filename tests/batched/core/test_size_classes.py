"""Classes of sizes: what they agree in, and that every matrix with entries is in one."""

import numpy as np
import pytest

from h2gpu.batched.core.size_classes import classes


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_classes_are_those_of_equal_keys_in_their_order(count):
    """Matrices without entries are in none; keys are worked out for the sizes that occur."""
    rng = np.random.default_rng(count)
    m, n = rng.integers(0, 9, (2, count))

    def keys(rows, columns):
        return np.stack([-(rows // 3), columns % 2, np.maximum(rows, columns) // 4])

    found = list(classes(m, n, keys))
    some = np.flatnonzero(m * n)
    expected = sorted({tuple(column) for column in keys(m[some], n[some]).T.tolist()})
    assert [tuple(part.keys.tolist()) for part in found] == expected
    for part in found:
        members = np.arange(count)[part.members]
        assert part.count == len(members)
        assert (keys(m[members], n[members]) == part.keys[:, None]).all() and (m[members] * n[members]).all()
        sizes = set(zip(m[members].tolist(), n[members].tolist()))
        assert sizes == set(zip(part.rows.tolist(), part.columns.tolist()))
    assert sum(part.count for part in found) == len(some)
