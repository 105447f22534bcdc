"""Sampled rows of block trees: the blocks of every row, and sums over all blocks from some."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import points_of, trees

from h2gpu.clustering import Admissibility, BlockTree, ClusterTree, SampledBlocks

ETAS = (0.5, 1.0, 2.0)
LEAF_SIZES = st.sampled_from([1, 5, 20, 100])


def pairs_of(t, s):
    return set(zip(t.tolist(), s.tolist()))


def assert_same_pairs(one, other):
    for name in ("row", "t", "s", "least", "reached", "first"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def assert_same_blocks(rows, cols, leaf_size):
    """Every row sampled: far and near blocks of each η are those of the block tree, in units of row points."""
    sampled = SampledBlocks.build(rows, cols, leaf_size, min(ETAS), np.arange(rows.n))
    assert_same_pairs(SampledBlocks.build(rows, cols, 1, min(ETAS), np.arange(rows.n)).coarser(leaf_size), sampled)
    cut = rows.cut(leaf_size), cols.cut(leaf_size)
    if rows is cols:
        cut = cut[0], cut[0]
    number = [np.flatnonzero(tree.kept(leaf_size)) for tree in (rows, cols)]
    for eta in ETAS:
        blocks = BlockTree.build(*cut, Admissibility(eta))
        for index, (t, s) in ((sampled.far(eta), blocks.far), (sampled.near(eta), blocks.near)):
            expected = pairs_of(number[0][t], number[1][s])
            if rows is cols:
                expected |= pairs_of(number[0][s], number[1][t])
            assert pairs_of(sampled.t[index], sampled.s[index]) == expected
            assert sampled.numbers(sampled.t[index]).sum() == pytest.approx(len(expected))


@given(trees(largest=150), LEAF_SIZES)
def test_all_rows_meet_the_blocks_of_a_symmetric_block_tree(case, leaf_size):
    _, tree = case
    assert_same_blocks(tree, tree, leaf_size)


@given(trees(largest=100, dims=(2,)), trees(largest=60, dims=(2,)), LEAF_SIZES)
def test_all_rows_meet_the_blocks_of_a_rectangular_block_tree(rows, cols, leaf_size):
    assert_same_blocks(rows[1], cols[1], leaf_size)


@pytest.mark.parametrize("name", ["uniform", "clustered"])
def test_some_rows_tell_the_number_of_entries(name):
    """Each row has n entries, in far and near blocks; dense ones are estimated."""
    tree = ClusterTree.build(points_of(name, 5000, 2), 16)
    places = np.arange(40, tree.n, 79)
    sampled = SampledBlocks.build(tree, tree, 32, 1.0, places)
    near, far = sampled.near(1.0), sampled.far(1.0)
    np.testing.assert_array_equal(
        np.bincount(sampled.row[near], tree.sizes[sampled.s[near]])
        + np.bincount(sampled.row[far], tree.sizes[sampled.s[far]]),
        tree.n,
    )
    cut = tree.cut(32)
    t, s = BlockTree.build(cut, cut, Admissibility(1.0)).near
    exact = (cut.sizes[t] * cut.sizes[s] * np.where(t == s, 1, 2)).sum()
    assert tree.sizes[sampled.s[near]].sum() * tree.n / len(places) == pytest.approx(exact, rel=0.15)


def test_pairs_visited_grow_with_the_levels_and_not_with_the_points():
    visited = []
    for n in (4000, 64000):
        tree = ClusterTree.build(points_of("uniform", n, 2), 16)
        visited.append(len(SampledBlocks.build(tree, tree, 16, 1.0, np.arange(0, n, n // 50)).t))
    assert visited[1] < 2.5 * visited[0]
