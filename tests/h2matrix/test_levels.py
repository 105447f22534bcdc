"""Levels of different orders: each is worked at by its own ranks, whatever those of other levels are."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from reference import EPS, points_of

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.compression import weights
from h2gpu.h2matrix.compression.orthogonalization import triangular_factors
from h2gpu.h2matrix.compression.together import levels_together
from h2gpu.h2matrix.compression.weights import links_of, total_weights
from h2gpu.h2matrix.construction import EvaluatedCouplings, deferred
from h2gpu.h2matrix.interpolation import with_own_points

ORDERS = (9, 9, 9, 9, 4, *8 * [3])


def evaluated(points, cols=None, split="median"):
    """A matrix whose couplings are evaluated where they are used: ranks of 81 on coarse levels, 9 on the finest."""
    return deferred(Sites.of(points, Exponential(1.0, 0.2), cols), leaf_size=16, eta=1.5, order=ORDERS, split=split)


def links(A, transpose):
    basis, other = (A.row_basis, A.col_basis) if transpose else (A.col_basis, A.row_basis)
    return links_of(A.couplings, basis, triangular_factors(other), [transpose])[0], basis, other


def test_own_points_of_a_cluster_are_those_of_both_children():
    tree = evaluated(points_of("clustered", 3000, 2)).row_basis.tree
    some = np.random.default_rng(0).random(len(tree)) < 0.9
    right = some.copy()
    for t in reversed(range(len(tree))):
        child = tree.first_child[t]
        right[t] &= child < 0 or bool(right[child] and right[child + 1])
    assert 0 < right.sum() < some.sum()
    np.testing.assert_array_equal(with_own_points(tree, some), right)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("cols, split", [(None, "median"), (None, "mean"), (700, "median")])
def test_ranks_that_a_level_meets_are_the_largest_of_its_links(cols, split, transpose, monkeypatch):
    """Whether all couplings keep to a level, or some leave it where a tree is uneven; counts are those of couplings."""
    monkeypatch.setattr(weights, "CACHED", 100)  # links looked at together
    cols = None if cols is None else points_of("uniform", cols, 2, seed=1)
    kind, basis, other = links(evaluated(points_of("clustered", 3000, 2), cols, split), transpose)
    couplings = kind.couplings
    owners, others = (couplings.rows, couplings.columns)[:: 1 if transpose else -1]
    level = np.searchsorted(basis.tree.level_offsets, owners, side="right") - 1
    same = np.searchsorted(other.tree.level_offsets, others, side="right") - 1 == level
    assert weights._keeps_levels(couplings, other.tree) == same.all() == (split == "median") or cols is not None
    assert kind.counts.tolist() == [(owners == t).sum() for t in range(len(basis.tree))]
    met = [max([other.ranks[s] for s in others[level == l]], default=0) for l in range(basis.tree.levels)]
    assert kind.most.tolist() == met
    assert min(k for k in met if k) < max(met)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("cols", [None, 700])
def test_the_host_knows_where_products_begin_without_the_device(cols, stored, xp, monkeypatch):
    """And the rows of their first factors: as the numbers where the factors are."""
    cols = None if cols is None else xp.asarray(points_of("uniform", cols, 2, seed=1))
    A, met = evaluated(xp.asarray(points_of("clustered", 1000, 2)), cols), []
    couplings, multiply = A.couplings.stored() if stored else A.couplings, batched.triangles_of_products
    monkeypatch.setattr(batched, "triangles_of_products", lambda kinds, out: met.extend(kinds) or multiply(kinds, out))
    monkeypatch.setattr(weights, "piece_entries", lambda xp, on_host: 1 << 12)  # some pieces a level
    total_weights(A.row_basis, couplings, triangular_factors(A.col_basis))
    assert len(met) > 5
    for kind in met:
        assert kind.on_host is not None
        (first, before), (right, rows) = kind.known(), replace(kind, on_host=None).known()
        np.testing.assert_array_equal(first, right)
        np.testing.assert_array_equal(before - before[0], rows - rows[0])


def groups_of(A, limit, monkeypatch, xp="a GPU's"):
    kinds = [links(A, transpose)[0] for transpose in (False, True)]
    heights = np.where(A.row_basis.tree.parent >= 0, A.row_basis.ranks[A.row_basis.tree.parent], 0)
    monkeypatch.setattr(weights, "piece_entries", lambda xp, on_host: limit)
    return weights._steps(A.row_basis, kinds, heights, True, xp), kinds


@pytest.mark.parametrize("limit", [1, 1 << 15, 1 << 18, 1 << 40])
def test_groups_of_clusters_are_of_several_levels_where_room_admits_it(limit, monkeypatch):
    """Each cluster once, levels in their order; whole levels share a group if all their couplings have room."""
    A = evaluated(points_of("uniform", 3000, 2))
    (groups,), kinds = groups_of(A, limit, monkeypatch)
    tree, parts = A.row_basis.tree, [part for group in groups for part in group]
    clusters = np.concatenate([np.arange(t.start, t.stop) for _, t in parts])
    top = next(l for l, first in enumerate(tree.level_offsets[1:]) if any(kind.first[first] for kind in kinds))
    np.testing.assert_array_equal(clusters, np.arange(tree.level_offsets[top], len(tree)))
    assert [l for l, _ in parts] == sorted(l for l, _ in parts)
    for group in groups:
        t, ranks = slice(group[0][1].start, group[-1][1].stop), [ORDERS[l] ** 2 for l, _ in group]
        count = sum(kind.first[t.stop] - kind.first[t.start] for kind in kinds)
        assert all(part == tree.span(l) for l, part in group) or len(group) == 1
        assert len(group) == 1 or count * max(ranks) ** 2 <= limit
    assert len(groups) == 1 or limit < 1 << 40


def test_levels_go_together_where_that_wastes_little_room():
    """Or where they need little of what there is; one that needs more is alone."""
    counts = np.array([1, 4, 16, 64])
    for limit, ranks, slices in (
        (85 * 64, (8, 8, 8, 8), [(0, 4)]),
        (21 * 64, (8, 8, 8, 8), [(0, 3), (3, 4)]),
        (1 << 13, (16, 8, 8, 8), [(0, 1), (1, 4)]),  # 1 and 4 with room for 16² each: 2.5 times as much as apart
        (1 << 14, (16, 8, 8, 8), [(0, 2), (2, 4)]),  # which is less than an eighth of what there is
        (1 << 13, (8, 8, 8, 9), [(0, 4)]),
        (1 << 13, (8, 8, 8, 10), [(0, 3), (3, 4)]),
        (1, (8, 8, 8, 8), [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (1, (0, 0, 0, 0), [(0, 4)]),
    ):
        found = levels_together(counts, np.array([ranks, ranks]), limit)
        assert [(levels.start, levels.stop) for levels in found] == slices


@pytest.mark.gpu
def test_weights_of_levels_evaluated_together_are_those_of_one_by_one(monkeypatch):
    """To the last bit."""
    cupy = pytest.importorskip("cupy")
    A, made, select = evaluated(cupy.asarray(points_of("uniform", 3000, 2))), [], EvaluatedCouplings.select
    monkeypatch.setattr(EvaluatedCouplings, "select", lambda self, *a, **k: made.append(0) or select(self, *a, **k))
    R, found = triangular_factors(A.col_basis), []
    one_by_one = [slice(l, l + 1) for l in range(A.row_basis.tree.levels)]
    for rule in (levels_together, lambda *_: one_by_one):
        monkeypatch.setattr(weights, "levels_together", rule)
        found.append(total_weights(A.row_basis, A.couplings, R))
        found[-1].append(len(made))
    (*few, count), (*many, both) = found
    assert count < both - count
    for one, other in zip(few, many):
        np.testing.assert_array_equal(to_host(one.buffer), to_host(other.buffer))


def test_blocks_evaluated_within_narrower_bounds_are_the_same(xp):
    A = evaluated(xp.asarray(points_of("uniform", 600, 2)))
    last = slice(len(A.couplings) - 5, len(A.couplings))
    t, s = A.couplings.rows[last], A.couplings.columns[last]
    bounds = int(A.row_basis.ranks[t].max()), int(A.col_basis.ranks[s].max())
    narrow, wide = A.couplings.select(last, bounds=bounds), A.couplings.select(last)
    assert narrow.bounds == bounds
    for S, T in zip(narrow.on_host().matrices(), wide.on_host().matrices()):
        np.testing.assert_array_equal(to_host(S), to_host(T))


@pytest.mark.gpu
def test_levels_of_small_ranks_make_no_stacks_where_others_do(monkeypatch):
    """And their weights are the CPU's: Z_tᵀ Z_t of both agree."""
    cupy = pytest.importorskip("cupy")
    from h2gpu.batched.qr import product_triangles

    stacked, factor_stacks = [], product_triangles.factor_stacks
    monkeypatch.setattr(
        product_triangles,
        "factor_stacks",
        lambda kinds, out: stacked.append(out.bounds[1]) or factor_stacks(kinds, out),
    )
    points, made = points_of("uniform", 600, 2), []
    for xp in (np, cupy):
        A = evaluated(xp.asarray(points))
        made.append(total_weights(A.row_basis, A.couplings, triangular_factors(A.col_basis)))
    tree, edge = A.row_basis.tree, product_triangles.EDGE
    ranks = [int(A.row_basis.ranks[tree.span(l)].max()) for l in range(tree.levels)]
    small = {k for above, k in pairwise(ranks) if 0 < k <= edge and above <= edge}
    assert stacked and small and not set(stacked) & small
    for here, there in zip(*made):
        for Z, W in zip(here.matrices(), there.to(np).matrices()):
            np.testing.assert_allclose(W.T @ W, Z.T @ Z, atol=1e3 * EPS * max(1.0, np.linalg.norm(Z) ** 2))


def test_a_coupling_keeps_its_level_or_misses_it_by_a_cluster():
    tree = SimpleNamespace(level_offsets=np.array([0, 1, 3, 7]))
    for column, keeps in ((0, [0]), (1, [1, 2]), (2, [1, 2]), (3, [3, 4, 5, 6]), (6, [3, 4, 5, 6])):
        for row in range(7):
            couplings = SimpleNamespace(rows=np.array([row]), columns=np.array([column]))
            assert weights._keeps_levels(couplings, tree) == (row in keeps)
