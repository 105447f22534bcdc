"""Trees of CuPy points: the same bits in every array as those of NumPy points."""

import numpy as np
import pytest
from reference import POINT_SETS, points_of

cp = pytest.importorskip("cupy")
from h2gpu.clustering import ClusterTree, cuda  # noqa: E402

pytestmark = pytest.mark.gpu
SPLITS = ["median", "mean"]


def arrays_of(tree):
    fields = tree.permutation, tree.start, tree.stop, tree.parent, tree.first_child, tree.level_offsets
    return *fields, tree.boxes.lower, tree.boxes.upper


def check(points, leaf_size, split):
    """Build on both; returns the tree of the GPU."""
    expected, tree = (
        ClusterTree.build(points, leaf_size, split),
        ClusterTree.build(cp.asarray(points), leaf_size, split),
    )
    for a, b in zip(arrays_of(expected), arrays_of(tree)):
        assert isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()
    on_device = tree.permutation_on(cp)
    assert on_device.dtype == np.int64
    np.testing.assert_array_equal(on_device.get(), expected.permutation)
    assert expected.permutation_on(cp).tobytes() == on_device.tobytes()
    assert expected.permutation_on(cp) is expected.permutation_on(cp) and tree.permutation_on(np) is tree.permutation
    return tree


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", POINT_SETS)
def test_trees_of_all_point_sets_are_those_of_the_cpu(name, dim, split):
    for n, leaf_size in ((1, 1), (2, 1), (3, 64), (333, 7), (3000, 16)):
        check(points_of(name, n, dim), leaf_size, split)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("split", SPLITS)
def test_many_points(split, dtype):
    check(points_of("uniform", 100_000, 2, dtype=dtype), 64, split)
    check(points_of("clustered", 100_000, 3, dtype=dtype), 32, split)


def test_counts_of_tiles_are_added_up_in_many_rounds(monkeypatch):
    monkeypatch.setattr(cuda, "SCANNING", 16)
    check(points_of("clustered", 100_000, 2), 3000, "median")


@pytest.mark.parametrize("split", SPLITS)
def test_zeros_of_either_sign_are_equal(split):
    points = np.random.default_rng(0).choice([-1.0, -0.0, 0.0, 0.5, 1.0], (500, 2))
    check(points, 4, split)


def test_long_chains_of_clusters():
    tree = check(2.0 ** np.arange(-500, 500)[:, None], 1, "mean")
    assert tree.levels > 100


def test_means_that_fall_on_points_and_between_nearly_equal_ones():
    rng = np.random.default_rng(3)
    for n in (5, 50, 5000):
        steps = rng.integers(-3, 4, (n, 2)) * np.finfo(float).eps
        check(rng.integers(0, 5, (n, 2)) / 7 + steps, 2, "mean")


def test_points_that_are_not_contiguous():
    points = points_of("uniform", 1000, 3)
    tree = ClusterTree.build(cp.asarray(points)[:, ::-2], 8)
    np.testing.assert_array_equal(tree.permutation, ClusterTree.build(points[:, ::-2], 8).permutation)


def test_a_split_of_ones_own_sees_the_coordinates_where_they_are():
    def quarters(coordinates, sizes):
        assert isinstance(coordinates, cp.ndarray)
        return (sizes + 3) // 4

    points = points_of("uniform", 500, 2)
    tree = ClusterTree.build(cp.asarray(points), 8, quarters)
    expected = ClusterTree.build(points, 8, lambda coordinates, sizes: (sizes + 3) // 4)
    np.testing.assert_array_equal(tree.permutation, expected.permutation)


def test_bad_points_on_the_device_are_refused():
    points = cp.asarray(points_of("uniform", 50, 2))
    points[7, 1] = cp.nan
    with pytest.raises(ValueError, match="NaN or infinity in 1 rows, first in row 7"):
        ClusterTree.build(points)
