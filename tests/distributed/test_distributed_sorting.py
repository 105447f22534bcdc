"""The tree that ranks sort together is that of one process, to the last bit."""

import numpy as np
import pytest
from threads import all_of, on_ranks

from h2gpu.clustering import ClusterTree
from h2gpu.distributed.sorting import cluster_tree

ARRAYS = "permutation", "start", "stop", "parent", "first_child", "level_offsets"
RNG = np.random.default_rng(0)
POINTS = {
    "uniform": RNG.random((2000, 2)),
    "rounded": np.round(10 * RNG.random((1500, 2))) / 10,  # many at equal coordinates
    "at one place": np.zeros((300, 3)),
    "signed zeros": np.where(RNG.random((300, 2)) < 0.5, -0.0, 0.0),
    "heaps": np.concatenate([1e-3 * RNG.random((300, 2)), RNG.random((40, 2))]),
    "float32": RNG.random((1000, 3)).astype(np.float32),
    "few": RNG.random((7, 2)),
}


@pytest.mark.parametrize("split", ["median", "mean", lambda x, sizes: np.maximum(sizes // 3, 1)])
@pytest.mark.parametrize("name", POINTS)
def test_the_tree_of_all_ranks_is_that_of_one(name, split):
    points = POINTS[name]
    one = ClusterTree.build(points, 16, split)
    for ranks in (1, 2, 3, 4, 7):
        for tree in all_of(ranks, lambda comm: cluster_tree(comm, points, 16, split)):
            for array in ARRAYS:
                ours, theirs = getattr(tree, array), getattr(one, array)
                assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), array
            assert tree.boxes.lower.tobytes() == one.boxes.lower.tobytes()
            assert tree.boxes.upper.tobytes() == one.boxes.upper.tobytes()


def test_points_that_are_not_finite_are_refused():
    for error in on_ranks(2, lambda comm: cluster_tree(comm, np.array([[0.0], [np.inf]]), 8)):
        assert isinstance(error, ValueError) and str(error).startswith("points:")
