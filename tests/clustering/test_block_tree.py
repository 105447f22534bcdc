"""Block trees: every pair of points in exactly one block, far blocks admissible, near blocks of leaves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import POINT_SETS, members, points_of, times_covered, trees

from h2gpu.clustering import Admissibility, BlockTree, ClusterTree

ETAS = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 5.0])


def symmetric_blocks(points, leaf_size=8, eta=1.0, split="median"):
    tree = ClusterTree.build(points, leaf_size, split)
    return BlockTree.build(tree, tree, Admissibility(eta))


def near_entries(blocks):
    """The pairs of points in dense blocks, as a mask."""
    return times_covered(replace(blocks, far=blocks.far[:, :0])) > 0


@given(trees(largest=150), ETAS)
def test_a_symmetric_block_tree_covers_every_pair_of_points_once(case, eta):
    _, tree = case
    assert (times_covered(BlockTree.build(tree, tree, Admissibility(eta))) == 1).all()


@given(trees(largest=150, dims=(2,)), trees(largest=60, dims=(2,)), ETAS)
def test_a_rectangular_block_tree_covers_every_pair_of_points_once(rows, cols, eta):
    assert (times_covered(BlockTree.build(rows[1], cols[1], Admissibility(eta))) == 1).all()


@given(trees(largest=150), ETAS)
def test_far_blocks_are_admissible_and_near_blocks_are_leaves_that_are_not(case, eta):
    """max(diam t, diam s) ≤ η dist(t, s) for far (t, s), of no ancestors of theirs, and of no near ones."""
    _, tree = case
    blocks = BlockTree.build(tree, tree, Admissibility(eta))

    def admissible(t, s):
        diameter = np.maximum(tree.boxes.diameters[t], tree.boxes.diameters[s])
        return diameter <= eta * tree.boxes[t].distances(tree.boxes[s])

    t, s = blocks.far
    assert admissible(t, s).all() and (t != s).all()
    up = (tree.parent[t] >= 0) & (tree.parent[s] >= 0)
    t, s = tree.parent[t[up]], tree.parent[s[up]]
    level = np.repeat(np.arange(tree.levels), np.diff(tree.level_offsets))
    together = (level[t] == level[s]) & (t != s)
    assert not admissible(t[together], s[together]).any()
    t, s = blocks.near
    assert np.isin(blocks.near, tree.leaves).all()
    assert not admissible(t, s)[t != s].any()


@given(trees(largest=150), ETAS)
def test_blocks_are_sorted_by_column_then_row_the_lower_half_when_symmetric(case, eta):
    _, tree = case
    blocks = BlockTree.build(tree, tree, Admissibility(eta))
    for t, s in (blocks.far, blocks.near):
        assert (t >= s).all()
        assert (np.diff(s * len(tree) + t) > 0).all()


@given(trees(largest=150, names=("uniform", "grid", "clustered", "collinear", "on_an_axis", "outlier")), ETAS)
def test_the_symmetric_tree_is_the_lower_half_of_the_unsymmetric(case, eta):
    _, tree = case
    half, whole = (BlockTree.build(tree, other, Admissibility(eta)) for other in (tree, replace(tree)))
    assert half.symmetric and not whole.symmetric

    def pairs(part):
        return set(map(tuple, part.T.tolist()))

    same = {(t, t) for t in range(len(tree))}  # a cluster is not admissible with itself when symmetric
    mirrored = pairs(half.far) | {(s, t) for t, s in pairs(half.far)}
    assert mirrored == pairs(whole.far) - same
    assert pairs(whole.near) | same >= pairs(half.near)
    assert pairs(whole.near) <= pairs(half.near) | {(s, t) for t, s in pairs(half.near)}


@pytest.mark.parametrize("name", POINT_SETS)
def test_a_larger_eta_leaves_fewer_entries_dense(name):
    points = points_of(name, 200, 2)
    masks = [near_entries(symmetric_blocks(points, eta=eta)) for eta in (0.5, 1.0, 2.0)]
    assert not (masks[1] & ~masks[0]).any() and not (masks[2] & ~masks[1]).any()


def test_most_pairs_are_far_for_many_points():
    assert near_entries(symmetric_blocks(points_of("uniform", 1000, 1), leaf_size=8)).mean() < 0.1


def test_clusters_of_different_levels_may_be_coupled():
    blocks = symmetric_blocks(points_of("clustered", 2000, 2), 16, split="mean")
    level = np.repeat(np.arange(blocks.row_tree.levels), np.diff(blocks.row_tree.level_offsets))
    assert (level[blocks.far[0]] != level[blocks.far[1]]).any()


def test_any_condition_may_be_called():
    """None admissible: all pairs of leaves are near."""
    tree = ClusterTree.build(points_of("uniform", 50, 2), 8)
    blocks = BlockTree.build(tree, tree, lambda t, s: np.zeros(len(t), bool))
    assert blocks.far.shape == (2, 0)
    assert blocks.near.shape[1] == len(tree.leaves) * (len(tree.leaves) + 1) // 2
    assert (times_covered(blocks) == 1).all()


def test_a_heap_of_equal_points_needs_dense_blocks_only_on_the_diagonal():
    blocks = symmetric_blocks(points_of("all_equal", 100, 2))
    assert (blocks.near[0] == blocks.near[1]).all()
    assert len(members(blocks.row_tree, 0)) == 100


def test_repr_counts_the_blocks():
    assert repr(symmetric_blocks(np.zeros((1, 2)))) == "BlockTree(0 far, 1 near blocks, symmetric True)"


@pytest.mark.parametrize("eta", [-1, 0, np.nan, np.inf, "1", None, 1j])
def test_bad_eta_gives_one_clear_error(eta):
    with pytest.raises(ValueError, match="eta: expected a positive number, got"):
        Admissibility(eta)
