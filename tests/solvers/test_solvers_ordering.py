"""Orders of sites, farthest first, and the nearest of the earlier ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import point_sets, points_of
from scipy.spatial import cKDTree

from h2gpu.batched.device import threads as threads_module
from h2gpu.solvers import neighbours, ordering
from h2gpu.solvers.neighbours import nearest, nearest_earlier
from h2gpu.solvers.ordering import farthest_first, maximin_order

# Orders


@pytest.mark.parametrize("count, k", [(0, 3), (1, 1), (1000, 1), (1000, 7)])
def test_the_nearest_are_those_of_the_tree_whatever_the_threads(count, k, monkeypatch):
    monkeypatch.setattr(neighbours, "QUERIES", 100)
    rng = np.random.default_rng(0)
    tree, x = cKDTree(rng.random((500, 2))), rng.random((count, 2))
    distances, indices = nearest(tree, x, k)
    assert np.array_equal(distances, tree.query(x, [*range(1, k + 1)])[0]) and indices.shape == (count, k)
    assert np.array_equal(indices, tree.query(x, [*range(1, k + 1)])[1])


@pytest.mark.parametrize("name", ["uniform", "grid", "clustered", "collinear", "outlier"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_slabs_find_what_one_tree_finds(name, dim, monkeypatch):
    """Distances to the last bit, and pairs nearer than h, also where many lie at h, by any number of threads."""
    x = np.unique(points_of(name, 900, dim), axis=0)
    order, distances = maximin_order(x, 3)[0], cKDTree(x).query(x, 2)[0][:, 1]
    h = 2**0.5 * float(np.quantile(distances, 0.3))
    apart = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=-1))
    expected = np.argwhere(np.triu(apart < (1 - 1e-6) * h, 1))
    monkeypatch.setattr(ordering, "SLAB", 40)
    for threads in (1, 3, 8):
        monkeypatch.setattr(threads_module, "thread_count", lambda threads=threads: threads)
        found = np.concatenate([ordering.nearest_distances(x, part, 2) for part in range(2)])
        np.testing.assert_array_equal(np.sort(found), np.sort(distances))
        pairs = np.sort(ordering._close_pairs(x, h), axis=1)
        np.testing.assert_array_equal(pairs[np.lexsort(pairs.T[::-1])], expected)
        np.testing.assert_array_equal(maximin_order(x, 3)[0], order)


def separations(x):
    """min_{j < i} |x_i − x_j| of every i > 0."""
    D = np.linalg.norm(x[:, None] - x[None], axis=2)
    return np.array([D[i, :i].min() for i in range(1, len(x))])


@settings(max_examples=60)
@given(point_sets(largest=200))
def test_an_order_holds_every_site_once_and_each_place_before_its_copies(points):
    order, places = maximin_order(points)
    assert np.array_equal(np.sort(order), np.arange(len(points)))
    first = {tuple(points[i]) for i in order[:places]}
    assert len(first) == places == len(np.unique(points, axis=0))


@given(point_sets(largest=120, names=("uniform", "clustered", "collinear", "outlier")))
def test_the_exact_order_takes_the_farthest_site_each_time(points):
    x = np.unique(points, axis=0)
    ordered = x[farthest_first(x)]
    for i in range(1, len(x)):
        distance = np.linalg.norm(ordered[i:, None] - ordered[None, :i], axis=2).min(axis=1)
        assert distance[0] >= distance.max() * (1 - 1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("far", [9.0, 1e18])  # the second is too far for one number
def test_of_each_cell_the_site_of_least_priority(dim, far):
    rng = np.random.default_rng(0)
    cells, priority = np.floor(rng.random((5000, dim)) * 12), rng.permutation(5000)
    cells[17] = far
    first = {}
    for i in np.argsort(priority):
        first.setdefault(tuple(cells[i][::-1]), i)
    assert ordering._first_of_cells(cells, priority).tolist() == [first[cell] for cell in sorted(first)]


@pytest.mark.parametrize("name", ["uniform", "grid", "clustered", "collinear", "outlier"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_order_by_levels_is_nearly_as_spread_as_the_exact_one(name, dim, monkeypatch):
    x = np.unique(points_of(name, 700, dim), axis=0)
    exact = separations(x[farthest_first(x)])
    monkeypatch.setattr(ordering, "EXACT", 8)
    order, places = maximin_order(x)
    assert places == len(x) and np.array_equal(np.sort(order), np.arange(len(x)))
    spread = np.minimum.accumulate(separations(x[order]))
    early = slice(None, int(0.7 * len(x)))
    if name != "clustered":  # there a level may remove a whole heap
        assert (spread[early] >= exact[early] / 4).all()
    again, _ = maximin_order(x)
    np.testing.assert_array_equal(order, again)


# Neighbours


@settings(max_examples=60)
@given(point_sets(largest=150), st.integers(0, 12))
def test_neighbours_are_the_nearest_of_the_earlier_sites(points, m):
    order, places = maximin_order(points)
    x, n = points[order], len(points)
    m = min(m, n - 1)
    found = nearest_earlier(x, places, m)
    assert found.shape == (n - m, m)
    for i, sites in zip(range(m, n), found):
        assert len(set(sites)) == m and (sites < i).all() and (sites >= 0).all()
        if i < places:
            distances = np.linalg.norm(x[:i] - x[i], axis=1)
            np.testing.assert_allclose(np.linalg.norm(x[sites] - x[i], axis=1), np.sort(distances)[:m])
        elif m:
            assert np.array_equal(x[sites[0]], x[i])  # a copy
