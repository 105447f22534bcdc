"""What a few samples tell: sums by level, the farfields of clusters and their ranks."""

import numpy as np
import pytest
from reference import points_of

from h2gpu.clustering import ClusterTree
from h2gpu.covariance import Exponential
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.planning import estimation
from h2gpu.h2matrix.planning.cuts import Links, sums_by_level
from h2gpu.h2matrix.planning.planner import Planner


def sampler_of(name="uniform", n=5000, rtol=1e-5, eta=1.5):
    return Planner(Sites.of(points_of(name, n, 2), Exponential(1.0, 0.1)), rtol).samplers(eta)[0]


@pytest.mark.parametrize("level", [[], [2], [0, 0, 1, 1, 1, 3], [1, 1, 4]])
def test_sums_by_level_are_those_of_each_level(level):
    numbers, level = np.random.default_rng(0).random((3, len(level))), np.array(level, np.int64)
    expected = [[row[level == l].sum() for l in range(5)] for row in numbers]
    np.testing.assert_allclose(sums_by_level(numbers, level, 5), expected, rtol=1e-14)


@pytest.mark.parametrize("leaf_size", [16, 64, 10_000])
def test_a_cut_counts_the_clusters_that_remain(leaf_size):
    planner = Planner(Sites.of(points_of("clustered", 3000, 2), Exponential()), 1e-3)
    tree, (cut,) = planner.trees[0], planner.cuts(leaf_size)
    assert (cut.count, cut.levels) == (len(tree.cut(leaf_size)), tree.cut(leaf_size).levels)


@pytest.mark.parametrize("split", ["median", "mean"])
def test_work_of_one_rank_for_all_is_that_of_this_rank_on_every_level(split):
    """And that of blocks one by one, of clusters of any sizes or, by medians, of two sizes a level."""
    planner = Planner(Sites.of(points_of("clustered", 2900, 2), Exponential()), 1e-3, split=split)
    blocks = planner.blocks(32)
    far = blocks.far(1.5)
    t, s = blocks.t[far], blocks.s[far]
    assert split == "median" or (np.diff(t) < 0).any()  # leaves of higher levels come late
    links = Links.of(blocks.row_tree, blocks.col_tree, t, s, blocks.numbers(t), planner.kinds)
    assert (len(links.share) < len(t) / 10) == (split == "median")
    assert (np.diff(links.rows.levels) >= 0).all()
    levels, rank = blocks.row_tree.levels, np.array([9, 64])
    for row, most in zip(links.work(rank, levels), rank):
        assert row.sum() == pytest.approx(links.whole(np.full(levels, most))[1], rel=1e-12)
        size, other = (np.minimum(blocks.row_tree.sizes[side], most) for side in (t, s))
        assert row.sum() == pytest.approx(4 * (blocks.numbers(t) * size * other**2.0).sum(), rel=1e-12)


def test_entries_of_couplings_are_those_of_blocks_one_by_one():
    """Of two trees that differ, and ranks that differ by level."""
    points, cols = points_of("uniform", 3001, 2), points_of("uniform", 700, 2, seed=1)
    planner = Planner(Sites.of(points, Exponential(), cols), 1e-3)
    blocks = planner.blocks(20)
    far = blocks.far(1.5)
    t, s, expected = blocks.t[far], blocks.s[far], blocks.numbers(blocks.t[far])
    ranks = []
    for tree, clusters in ((blocks.row_tree, t), (blocks.col_tree, s)):
        ranks.append(5 + 7 * np.arange(tree.levels) % 11)
        level = np.searchsorted(tree.level_offsets, clusters, side="right") - 1
        expected = expected * np.minimum(ranks[-1][level], tree.sizes[clusters])
    for kinds in (planner.kinds, (None, None)):
        links = Links.of(blocks.row_tree, blocks.col_tree, t, s, blocks.numbers(t), kinds)
        assert links.entries(*ranks) == pytest.approx(expected.sum(), rel=1e-12)


def test_sampled_points_stand_for_the_farfield_that_a_cluster_meets():
    """The squares of √(points there / points drawn) sum to all of them, but for the rounding of thinned levels."""
    sampler = sampler_of(n=3000)
    blocks, (far, _) = sampler.blocks, sampler.far
    rows, last = np.array([0, 20, 63]), np.full(3, blocks.row_tree.levels - 1)
    columns = estimation._Columns(np.random.default_rng(0), sampler, rows)
    counts, points, scale = columns.down_to(np.arange(3), last)
    assert counts.sum() == len(points) == len(scale)
    for row, part in zip(rows, np.split(scale**2, np.cumsum(counts)[:-1])):
        there = blocks.col_tree.sizes[blocks.s[far[blocks.row[far] == row]]].sum()
        assert part.sum() == pytest.approx(there, rel=0.05)


def test_ranks_are_those_of_the_singular_values_of_the_samples():
    """A part of fewer points than rows too, and of none: by a dense SVD of each."""
    sampler, sizes = sampler_of(), np.array([30, 200, 50])
    rng = np.random.default_rng(0)
    matrices = [rng.random((m, n)) * 0.3 ** np.arange(n) for m, n in ((8, 30), (120, 40), (0, 20))]
    A = estimation.MatrixBatch.from_matrices(matrices)
    spectra = estimation._Spectra.of(A, sizes)
    for tolerance in (1e-1, 1e-3):
        for rank, M, size in zip(spectra.ranks(tolerance), matrices, sizes):
            sigma, k = np.linalg.svd(M, compute_uv=False) if M.size else np.zeros(0), np.arange(min(M.shape))
            (points, rows), tail = M.shape, np.sqrt(np.cumsum(sigma[::-1] ** 2))[::-1]
            seen = (1 - k / max(points, 1)) * np.where(rows < size, 1 - k / rows, 1)
            assert rank == np.count_nonzero(tail > tolerance * np.sqrt(seen * rows / size))
    assert sampler.ranks(1e300).max() == 0


@pytest.mark.parametrize("split", ["median", "mean"])
def test_clusters_below_some_are_those_of_the_paths_of_their_places(split):
    """Level by level, of clusters on any level: their last places, and the first ones of children."""
    tree = ClusterTree.build(points_of("clustered", 700, 2), 8, split)
    t = np.sort(np.random.default_rng(0).integers(0, len(tree), 300))
    level = np.searchsorted(tree.level_offsets, t, side="right") - 1
    second = np.where(tree.first_child[t] >= 0, tree.first_child[t] + 1, t)
    places = np.where(np.arange(300) % 2, tree.stop[t] - 1, tree.start[second])
    path = tree.path(places)
    below, block = np.nonzero((path >= 0) & (np.arange(tree.levels)[:, None] > level))
    found = estimation._descendants(tree, level, t, places)
    for part, expected in zip(found, (below, path[below, block], block), strict=True):
        np.testing.assert_array_equal(part, expected)
