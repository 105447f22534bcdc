"""Cluster trees: partitions of the points into tight boxes, whatever the points."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import POINT_SETS, members, point_sets, points_of, trees

from h2gpu.clustering import ClusterTree

SPLITS = ["median", "mean"]


def shape_of(tree):
    """All that a tree is, boxes aside."""
    return tree.permutation, tree.start, tree.stop, tree.parent, tree.first_child, tree.level_offsets


def assert_same_tree(a, b):
    for x, y in zip(shape_of(a), shape_of(b)):
        np.testing.assert_array_equal(x, y)


def axis_of(tree, t):
    """The direction in which cluster t is split: the longest side of its box."""
    return int(np.argmax(tree.boxes.sides[t]))


@given(trees())
def test_the_permutation_is_one_and_the_root_holds_all(case):
    points, tree = case
    np.testing.assert_array_equal(np.sort(tree.permutation), np.arange(len(points)))
    assert (tree.start[0], tree.stop[0], tree.parent[0], tree.n) == (0, len(points), -1, len(points))


@given(trees())
def test_children_partition_their_parents(case):
    _, tree = case
    t = np.flatnonzero(tree.first_child >= 0)
    left, right = tree.first_child[t], tree.first_child[t] + 1
    np.testing.assert_array_equal(tree.start[left], tree.start[t])
    np.testing.assert_array_equal(tree.stop[left], tree.start[right])
    np.testing.assert_array_equal(tree.stop[right], tree.stop[t])
    assert (tree.sizes >= 1).all()


@given(point_sets(), st.integers(1, 40), st.sampled_from(SPLITS))
def test_leaves_are_exactly_the_clusters_of_at_most_leaf_size_points(points, leaf_size, split):
    tree = ClusterTree.build(points, leaf_size, split)
    np.testing.assert_array_equal(tree.first_child < 0, tree.sizes <= leaf_size)
    np.testing.assert_array_equal(tree.leaves, np.flatnonzero(tree.sizes <= leaf_size))
    assert tree.sizes[tree.leaves].sum() == len(points)


@given(trees())
def test_boxes_are_tight(case):
    points, tree = case
    for t in range(len(tree)):
        own = points[members(tree, t)]
        np.testing.assert_array_equal(tree.boxes.lower[t], own.min(axis=0))
        np.testing.assert_array_equal(tree.boxes.upper[t], own.max(axis=0))


@given(trees())
def test_levels_children_and_parents_agree(case):
    _, tree = case
    assert tree.level_offsets[0] == 0 and tree.level_offsets[-1] == len(tree)
    level_of = np.repeat(np.arange(tree.levels), np.diff(tree.level_offsets))
    inner = np.flatnonzero(tree.first_child >= 0)
    children = (tree.first_child[inner, None] + [0, 1]).ravel()
    np.testing.assert_array_equal(children, np.arange(1, len(tree)))  # in level order, each once
    np.testing.assert_array_equal(tree.parent[children], np.repeat(inner, 2))
    np.testing.assert_array_equal(level_of[children], np.repeat(level_of[inner], 2) + 1)
    for l in range(tree.levels):
        np.testing.assert_array_equal(tree.level(l), np.flatnonzero(level_of == l))
        np.testing.assert_array_equal(tree.parents(l), inner[level_of[inner] == l])


@given(trees())
def test_siblings_are_divided_by_a_plane_across_the_longest_side(case):
    points, tree = case
    for t in np.flatnonzero(tree.first_child >= 0):
        j = axis_of(tree, t)
        left, right = (points[members(tree, tree.first_child[t] + i), j] for i in (0, 1))
        assert left.max() <= right.min()


@given(point_sets(), st.integers(1, 40))
def test_median_splits_halve_and_so_bound_the_depth(points, leaf_size):
    """levels = 1 + ⌈log₂(n / leaf_size)⌉"""
    tree = ClusterTree.build(points, leaf_size, "median")
    left = tree.first_child[tree.first_child >= 0]
    assert np.isin(tree.sizes[left] - tree.sizes[left + 1], [0, 1]).all()
    assert tree.levels == 1 + max(0, int(np.ceil(np.log2(len(points) / leaf_size))))


@given(point_sets(names=("uniform", "grid", "clustered", "outlier")), st.integers(1, 40))
def test_mean_splits_put_the_points_up_to_the_mean_left(points, leaf_size):
    tree = ClusterTree.build(points, leaf_size, "mean")
    for t in np.flatnonzero(tree.first_child >= 0):
        j = axis_of(tree, t)
        left, right = (points[members(tree, tree.first_child[t] + i), j] for i in (0, 1))
        mean = points[members(tree, t), j].mean()
        slack = 1e-12 * np.abs(points[:, j]).max()
        assert left.max() <= mean + slack and mean <= right.min() + slack


def test_mean_splits_of_clustered_points_leave_leaves_on_many_levels():
    tree = ClusterTree.build(points_of("clustered", 2000, 2), 16, "mean")
    assert len({int(np.searchsorted(tree.level_offsets, t, "right")) for t in tree.leaves}) > 2


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_scaling_and_translation_by_powers_of_two_leave_the_tree_as_it_is(split, dim):
    """tree(2^k x + c) = tree(x), exactly: no step depends on the unit or the origin."""
    points = np.random.default_rng(1).integers(0, 1 << 12, (500, dim)) / 1024.0
    tree = ClusterTree.build(points, 8, split)
    for scale, shift in ((2.0**40, 0.0), (2.0**-40, 0.0), (1.0, 4096.0), (8.0, -1024.0)):
        moved = ClusterTree.build(scale * points + shift, 8, split)
        assert_same_tree(tree, moved)
        np.testing.assert_array_equal(moved.boxes.lower, scale * tree.boxes.lower + shift)


@pytest.mark.parametrize("split", SPLITS)
def test_the_clusters_do_not_depend_on_the_order_of_the_points(split):
    points = points_of("uniform", 400, 2)
    order = np.random.default_rng(1).permutation(400)
    tree, shuffled = ClusterTree.build(points, 8, split), ClusterTree.build(points[order], 8, split)
    np.testing.assert_array_equal(order[shuffled.permutation], tree.permutation)
    np.testing.assert_array_equal(shuffled.start, tree.start)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", POINT_SETS)
def test_a_constant_coordinate_changes_nothing(name, split):
    points = points_of(name, 200, 2)
    tree = ClusterTree.build(points, 8, split)
    assert_same_tree(tree, ClusterTree.build(np.insert(points, 1, 7.0, axis=1), 8, split))


@given(point_sets(), st.integers(1, 60), st.sampled_from(SPLITS))
def test_a_tree_cut_to_larger_leaves_is_the_tree_built_with_them(points, leaf_size, split):
    """Down to leaf_size points the splits are the same, whatever is beneath."""
    cut = ClusterTree.build(points, min(leaf_size, 5), split).cut(leaf_size)
    coarse = ClusterTree.build(points, leaf_size, split)
    for a, b in zip(shape_of(cut)[1:], shape_of(coarse)[1:]):  # within a leaf the order of the points may differ
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(cut.boxes.lower, coarse.boxes.lower)
    for t in coarse.leaves:
        assert set(members(cut, t)) == set(members(coarse, t))


@given(trees())
def test_paths_hold_their_places_from_root_to_leaf(case):
    _, tree = case
    places = np.arange(tree.n)
    path = tree.path(places)
    on = path >= 0
    assert (tree.start[path] <= places)[on].all() and (places < tree.stop[path])[on].all()
    assert (path[0] == 0).all() and (tree.parent[path[1:]] == path[:-1])[on[1:]].all()
    np.testing.assert_array_equal(np.unique(path[on]), np.arange(len(tree)))


def test_points_that_grow_geometrically_end_the_recursion():
    points = 2.0 ** np.arange(-500, 500)[:, None]
    tree = ClusterTree.build(points, 1, "mean")
    assert len(tree.leaves) == 1000


@pytest.mark.parametrize("split", SPLITS)
def test_heaps_of_equal_points_are_halved(split):
    """levels = 1 + ⌈log₂(n / leaf_size)⌉ whatever the split: no coordinate can divide them."""
    assert ClusterTree.build(points_of("all_equal", 1024, 2), 4, split).levels == 9


def test_a_mean_that_rounds_to_the_largest_coordinate_still_splits():
    """(a + b) / 2 = b for neighbouring floats a < b with b even: one point stays right."""
    a = np.float64(1)
    points = np.array([a := np.nextafter(a, 2) for _ in range(16)])[:, None]
    for pair in pairwise(points):
        assert ClusterTree.build(np.array(pair), 1, "mean").sizes.tolist() == [2, 1, 1]


def test_a_split_may_be_a_function():
    """Left quarters: of n points (n + 3) // 4 go left."""
    tree = ClusterTree.build(points_of("uniform", 200, 2), 8, lambda coordinates, sizes: (sizes + 3) // 4)
    t = np.flatnonzero(tree.first_child >= 0)
    np.testing.assert_array_equal(tree.sizes[tree.first_child[t]], (tree.sizes[t] + 3) // 4)


def test_float32_points_give_float32_boxes():
    tree = ClusterTree.build(points_of("uniform", 100, 2, dtype=np.float32), 8)
    assert tree.boxes.lower.dtype == np.float32


def test_one_point_is_one_leaf():
    tree = ClusterTree.build(np.array([[1.0, 2.0]]), 1, "mean")
    assert len(tree) == tree.levels == len(tree.leaves) == 1
    assert repr(tree) == "ClusterTree(1 points, 1 clusters, 1 levels, 1 leaves)"


GOOD = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3),), r"points: expected shape \(n, dim\).*got \(3,\)"),
        ((np.zeros((0, 2)),), "n ≥ 1"),
        ((np.zeros((3, 0)),), "dim ≥ 1"),
        (([[0.0, 1.0]],), "points: expected shape"),
        ((np.zeros((3, 2), int),), "floating-point"),
        ((np.zeros((3, 2), complex),), "floating-point coordinates, got complex128"),
        ((np.zeros((3, 2), object),), "floating-point coordinates, got object"),
        ((np.array([[0.0, 1.0], [np.nan, 0.0]]),), "NaN or infinity in 1 rows, first in row 1"),
        ((np.array([[0.0, -np.inf], [np.inf, 0.0]]),), "NaN or infinity in 2 rows, first in row 0"),
        ((GOOD, 0), "leaf_size: expected a positive integer, got 0"),
        ((GOOD, -3), "leaf_size"),
        ((GOOD, 2.5), "leaf_size"),
        ((GOOD, "64"), "leaf_size"),
        ((GOOD, 8, "x"), 'split: expected "median" or "mean", got \'x\''),
        ((GOOD, 8, None), "split"),
    ],
)
def test_bad_arguments_give_one_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClusterTree.build(*arguments)
