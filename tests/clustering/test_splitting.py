"""Splits of clusters: ties, signed zeros and the last bits of a coordinate decide nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import members, point_sets, points_of

from h2gpu.clustering import ClusterTree
from h2gpu.clustering.splitting import mean

SPLITS = ["median", "mean"]


@pytest.mark.parametrize("shape", [(9, 9), (27, 5), (7, 7, 7)])
def test_mean_splits_of_a_grid_keep_the_middle_line_left_whatever_its_rounding(shape):
    """A point at the mean goes left, also when the last bits of its coordinates say otherwise."""
    points = np.indices(shape).reshape(len(shape), -1).T / 7.3
    tree = ClusterTree.build(points, 4, "mean")
    assert tree.sizes[1] * max(shape) == (max(shape) // 2 + 1) * len(points)
    noise = np.random.default_rng(2).integers(-4, 5, points.shape) * np.finfo(float).eps
    middle = np.abs(points[:, 0] - points[:, 0].mean()) < 0.01
    noisy = ClusterTree.build(points + noise * middle[:, None] * np.eye(1, len(shape)), 4, "mean")
    assert noisy.sizes[1] == tree.sizes[1]


@pytest.mark.parametrize("split", SPLITS)
def test_duplicates_and_zeros_of_either_sign_stay_in_the_order_given(split):
    """In a leaf, points are sorted by their first coordinate, equals by index."""
    points = np.random.default_rng(0).choice([-1.0, -0.0, 0.0, 1.0], (300, 2))
    tree = ClusterTree.build(points, 5, split)
    for t in tree.leaves:
        own = members(tree, t)
        np.testing.assert_array_equal(own, own[np.lexsort((own, points[own, 0]))])


def test_the_permutation_stays_on_the_host_for_numpy():
    tree = ClusterTree.build(points_of("uniform", 50, 2), 8)
    assert tree.permutation.dtype == np.int64 and tree.permutation_on(np) is tree.permutation


@given(point_sets(largest=200, dims=(1,)), st.data())
def test_clusters_split_alike_alone_and_among_others(points, data):
    """The mean split's sums are integers: what other clusters hold never matters."""
    n = len(points)
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=4))) if n > 1 else []
    parts = [np.sort(part) for part in np.split(points[:, 0], cuts)]
    together = mean(np.concatenate(parts), np.array([len(part) for part in parts]))
    alone = [int(mean(part, np.array([len(part)]))[0]) for part in parts]
    assert together.tolist() == alone


def test_the_largest_and_the_smallest_numbers_are_split():
    tree = ClusterTree.build(np.array([[0.0], [5e-324], [1e-320], [1e-310]]), 1, "mean")
    assert len(tree.leaves) == 4
    assert mean(np.array([-1.7e308, -1.6e308, 0.0, 1.7e308]), np.array([4])).tolist() == [2]
