"""The blocks of a file hold every entry once."""

import numpy as np
import pytest

import h2gpu
from h2gpu.storage.invariants import check
from h2gpu.storage.layout import arrays_of

POINTS = np.random.default_rng(5).random((256, 2))
ARRAYS = {
    symmetric: arrays_of(
        h2gpu.compress(
            h2gpu.build(
                POINTS,
                h2gpu.covariance.Exponential(),
                col_points=None if symmetric else POINTS.copy(),
                leaf_size=16,
                order=3,
            ),
            1e-3,
        )
    )
    for symmetric in (True, False)
}


def moved(arrays, source, target):
    """The same number of entries, one dense block elsewhere: a hole where it was, an overlap where it is."""
    t, s = arrays["nearfield/rows"].copy(), arrays["nearfield/columns"].copy()
    t[source], s[source] = target
    order = np.lexsort((t, s))
    return arrays | {"nearfield/rows": t[order], "nearfield/columns": s[order]}


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_dense_block_on_top_of_others_is_refused_wherever_it_lies(symmetric):
    arrays = ARRAYS[symmetric]
    check(arrays, symmetric)
    t, s = arrays["nearfield/rows"], arrays["nearfield/columns"]
    leaves = np.flatnonzero(arrays["row_tree/first_child"] < 0)
    assert len({*(arrays["row_tree/stop"] - arrays["row_tree/start"])[leaves]}) == 1  # all areas are equal
    dense, refused = set(zip(t.tolist(), s.tolist())), 0
    source = int(np.flatnonzero(t != s)[3])
    for a in leaves[::3].tolist():
        for b in leaves[::2].tolist():
            if (a, b) not in dense and (a > b or not symmetric):
                with pytest.raises(ValueError, match="nearfield/rows: expected blocks that hold every entry once"):
                    check(moved(arrays, source, (a, b)), symmetric)
                refused += 1
    assert refused >= 10


@pytest.mark.parametrize("storage", ["full", "auto"])
def test_a_diagonal_block_that_is_not_symmetric_is_refused(storage):
    cov = h2gpu.covariance.Exponential()
    A = h2gpu.compress(h2gpu.build(POINTS, cov, leaf_size=16, order=3), 1e-3, storage=storage)
    arrays = {name: array.copy() for name, array in arrays_of(A).items()}
    check(arrays, True)
    t, s = arrays["nearfield/rows"], arrays["nearfield/columns"]
    sizes = arrays["row_tree/stop"] - arrays["row_tree/start"]
    narrowed = arrays.get("nearfield/narrowed", np.zeros(len(t), np.int64))
    last = int(np.flatnonzero(t == s)[-1])
    name = "nearfield/entries32" if narrowed[last] else "nearfield/entries"
    before = (narrowed == narrowed[last]) & (np.arange(len(t)) < last)
    arrays[name][int((sizes[t] * sizes[s])[before].sum()) + 1] += 1e-2
    with pytest.raises(ValueError, match=f"{name}: expected diagonal blocks that are symmetric"):
        check(arrays, True)
