"""The tree that ranks sort together is that of one process, to the last bit; each knows the blocks it has a part in."""

import importlib

import numpy as np
import pytest
from threads import all_of

from h2gpu.batched.core.offsets import ranges
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
from h2gpu.distributed import Alone
from h2gpu.distributed.assembly import blocks_of
from h2gpu.distributed.construction import _union
from h2gpu.distributed.gathering import whole_tree
from h2gpu.distributed.partition import Partition
from h2gpu.distributed.trees.exchange import fetched
from h2gpu.distributed.trees.shares import shared
from h2gpu.distributed.trees.sorting import sorted_points

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
SIDES = {
    "uniform": [POINTS["uniform"]],
    "heaps": [POINTS["heaps"]],
    "on a line": [RNG.random((700, 1))],
    "fewer than ranks": [RNG.random((5, 2))],
    "rectangular": [RNG.random((600, 2)), RNG.random((200, 2)) ** 3],
}


@pytest.mark.parametrize("split", ["median", "mean", lambda x, sizes: np.maximum(sizes // 3, 1)])
@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("where", ["numpy", pytest.param("cupy", marks=pytest.mark.gpu)])
def test_the_tree_of_all_ranks_is_that_of_one(name, split, where):
    """Of unequal and empty shares, sorted down to smaller leaves, each with the rank that Partition.of gives it."""
    points, xp = POINTS[name], importlib.import_module(where)
    one = ClusterTree.build(points, 4, split).cut(16)

    def work(comm):
        ends = np.sort(np.random.default_rng(comm.size).integers(0, len(points), comm.size - 1))
        part = shared(comm, sorted_points(comm, np.split(points, ends)[comm.rank], 4, split), 16).partition
        assert np.array_equal(part.bounds, Partition.of(one, comm.size).bounds)
        return whole_tree(comm, part)

    for ranks in (1, 2, 3, 7):
        for tree in all_of(ranks, work, xp=xp, limit=120.0)[:1]:
            for array in ARRAYS:
                ours, theirs = getattr(tree, array), getattr(one, array)
                assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), array
            assert tree.boxes.lower.tobytes() == one.boxes.lower.tobytes()
            assert tree.boxes.upper.tobytes() == one.boxes.upper.tobytes()


@pytest.mark.parametrize("name", SIDES)
def test_a_rank_finds_all_blocks_with_points_of_its_own_and_no_others(name):
    admissible = Admissibility(1.5)
    sides = SIDES[name]
    trees = [ClusterTree.build(x, 16) for x in sides]
    whole = BlockTree.build(trees[0], trees[-1], admissible)

    def work(comm):
        parts = [np.array_split(x, comm.size)[comm.rank] for x in sides]
        found, points = blocks_of(comm, parts, 16, admissible)
        for x, tree, own in zip(sides, (found.row_tree, found.col_tree), points):
            assert np.array_equal(x[tree.permutation], own)
        return found

    for ranks in (1, 2, 3, 4, 7):
        partitions = [Partition.of(tree, ranks) for tree in (trees[0], trees[-1])]
        for rank, found in enumerate(all_of(ranks, work)):
            for kind in ("far", "near"):
                t, s = getattr(whole, kind)
                spans = [(p.first[c], p.last[c]) for p, c in zip(partitions, (t, s))]
                ours = np.logical_or(*((first <= rank) & (rank <= last) for first, last in spans))
                row, col = getattr(found, kind)
                assert np.array_equal(found.row_tree.numbers[row], t[ours])
                assert np.array_equal(found.col_tree.numbers[col], s[ours])
            for tree, one in ((found.row_tree, trees[0]), (found.col_tree, trees[-1])):
                for array in ("start", "stop"):
                    assert np.array_equal(getattr(tree, array), getattr(one, array)[tree.numbers])
                inner = tree.first_child >= 0
                assert np.array_equal(tree.numbers[tree.first_child[inner]], one.first_child[tree.numbers[inner]])
                assert np.array_equal(tree.numbers[tree.parent[1:]], one.parent[tree.numbers[1:]])
                assert ranks < 4 or name != "uniform" or len(tree) < 0.8 * len(one)


def test_the_points_of_another_rank_are_there_alone():
    def work(comm):
        return blocks_of(comm, [np.split(POINTS["few"], [3])[comm.rank]], 2, Admissibility())[0].row_tree

    tree = all_of(2, work)[0]
    with pytest.raises(ValueError, match="rank: the points of rank 1 are known there alone"):
        Partition(tree, tree.bounds).points(1)


def test_places_of_ranges_come_once_and_a_run_of_own_rows_is_a_view():
    """Of ranges of a tree, any two of which are apart or nested, with and without gaps."""
    rng, x = np.random.default_rng(0), np.arange(64.0).reshape(32, 2)
    for count in range(40):
        level = rng.integers(0, 6, count)
        width = 32 >> level
        start = (rng.random(count) * 2**level).astype(np.int64) * width
        runs = _union(start, width)
        places = ranges(*runs)
        assert places.tolist() == sorted({p for a, w in zip(start, width) for p in range(a, a + w)})
        assert (runs[0][1:] > runs[0][:-1] + runs[1][:-1]).all()
        found = fetched(Alone(), np.array([0, 32]), x, *runs, "rows")
        np.testing.assert_array_equal(found, x[places])
        assert np.shares_memory(found, x) == (len(runs[0]) == 1)
