"""Boxes against their points: diameters and distances bound those of all points within."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import EPS, point_sets

from h2gpu.clustering.boxes import Boxes


def box_of(points):
    return Boxes(points.min(axis=0)[None], points.max(axis=0)[None])


@given(point_sets(largest=40), st.integers(0, 2**31))
def test_distances_of_points_lie_between_those_of_their_boxes(points, seed):
    """dist(t, s) ≤ ‖x − y‖ ≤ diam(t ∪ s)"""
    left = np.random.default_rng(seed).random(len(points)) < 0.5
    if left.all() or not left.any():
        return
    r = np.linalg.norm(points[left][:, None] - points[~left], axis=-1)
    t, s = box_of(points[left]), box_of(points[~left])
    slack = 1e-12 * box_of(points).diameters[0]
    assert t.distances(s)[0] <= r.min() + slack
    assert r.max() <= box_of(points).diameters[0] + slack
    assert t.distances(s) == s.distances(t)


@given(point_sets(largest=40))
def test_a_box_has_distance_zero_to_itself_and_the_diameter_of_its_diagonal(points):
    box = box_of(points)
    assert box.distances(box)[0] == 0
    assert abs(box.diameters[0] - np.linalg.norm(box.upper - box.lower)) <= 4 * EPS * box.diameters[0]


def test_boxes_apart_by_a_right_triangle():
    t, s = Boxes(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])), Boxes(np.array([[4.0, 5.0]]), np.array([[5.0, 6.0]]))
    assert t.distances(s)[0] == 5.0
    assert len(t) == 1 and np.array_equal(t.sides, [[1.0, 1.0]])


def test_indexing_selects_boxes():
    lower = np.arange(6.0).reshape(3, 2)
    boxes = Boxes(lower, lower + np.array([[1.0], [2.0], [3.0]]))
    assert np.array_equal(boxes[[2, 0]].sides, [[3.0, 3.0], [1.0, 1.0]])
