"""Covariances of all pairs of points by one kernel: its values against those of the CPU."""

import numpy as np
import pytest
from reference import name_of

from h2gpu.batched import MatrixBatch
from h2gpu.covariance import (
    Constant,
    Cubic,
    Exponential,
    Gaussian,
    Gneiting,
    Matern,
    Modulated,
    Nugget,
    PoweredExponential,
    RationalQuadratic,
    SpaceTime,
    Spherical,
    VaryingLength,
    Wendland,
    from_distance,
    from_function,
    on_sphere,
    pairwise,
)

DTYPES = [np.float64, np.float32]
TOLERANCE = 8  # ε times the variance
WITHOUT_CLOSED_FORM = 60  # the same: a dozen operations more, numbers of order ν; in float64 1.3e-14
LENGTHS = (0.3, 0.1, 0.7)


def covariances(dim):
    anisotropic = LENGTHS[:dim]
    return [
        Exponential(2.0, 0.3),
        Exponential(1.0, anisotropic),
        *[Matern(1.5, 0.4, smoothness) for smoothness in (0.5, 1.5, 2.5, 3.5, 4.5)],
        Matern(0.7, anisotropic, 2.5),
        Gaussian(0.5, 0.2),
        Gaussian(3.0, anisotropic),
        Constant(0.3),
        Nugget(2.0),
        Exponential() + Nugget(0.1),
        Exponential(0.5, 2.0) + Gaussian(1.0, 0.1) + Constant(0.2),
        2 * Gaussian(1.0, 0.5) * Matern(1.0, anisotropic, 1.5) + Constant(0.3) + Nugget(0.2),
        (Exponential() + Matern()) * (Gaussian() + Constant(2.0)),
        Matern() * Nugget(1.0),
        Spherical(2.0, 0.7),
        Cubic(1.0, anisotropic),
        *[Wendland(1.5, 0.8, order) for order in range(4)],
        PoweredExponential(2.0, 0.3, 0.7) + RationalQuadratic(0.5, anisotropic, 0.8),
        *rotated(dim),
        *in_time(dim),
    ]


def in_time(dim):
    """Of the last coordinate as time."""
    if dim == 1:
        return []
    space = {"space_dimension": dim - 1}
    return [
        SpaceTime(Matern(2.0, 0.4, 1.2), Exponential(length_scale=0.3) + Constant(0.5), **space),
        Gneiting(Matern(1.0, 0.4, 1.5), 0.3, 0.7, 0.6, **space) + Gneiting(Gaussian(0.5, 0.3), 2.0, 1.0, 0.0, **space),
        Gneiting(Exponential(1.0, LENGTHS[: dim - 1]), 0.5, 0.4, 1.0),
        Modulated(Matern(1.0, LENGTHS[:dim], 1.5), (0.4, -0.3, 0.2)[:dim], (0.5,) * dim) + Exponential(0.1, 0.2),
        VaryingLength(Matern(1.0, LENGTHS[:dim], 1.5), (0.4, -0.3, 0.2)[:dim], (0.5,) * dim) + Exponential(0.1, 0.2),
        Modulated(Exponential(), (0.4, -0.3, 0.2)[:dim], columns=1)
        + VaryingLength(Gaussian(0.5, 0.3), (0.4, -0.3, 0.2)[:dim], columns=1),
    ]


def rotated(dim):
    """Anisotropic ones along other axes than the coordinates."""
    if dim not in (2, 3):
        return []
    rotation = 0.6 if dim == 2 else (0.3, 0.5, 0.7)
    return [Matern(1.0, LENGTHS[:dim], 1.5, rotation=rotation) + Spherical(0.5, LENGTHS[:dim], rotation=rotation)]


def smoothnesses(dim):
    """Without closed form: from the table, by Debye's expansion, and two tables in one kernel."""
    anisotropic = LENGTHS[:dim]
    return [
        *[Matern(1.5, 0.4, smoothness) for smoothness in (0.05, 0.3, 0.9, 1.0, 1.7, 5.5, 7.3, 19.9, 20.0, 25.0, 1e4)],
        Matern(0.7, anisotropic, 30.0) + Matern(1.0, 0.1, 1.2) * Matern(1.0, anisotropic, 0.2),
    ]


SPHERES = [
    on_sphere(Exponential(1.0, 2000.0)),
    on_sphere(Matern(2.0, 3000.0, 2.5) + Nugget(0.1), distance="chordal"),
    on_sphere(Exponential(1.0, 0.5) * Exponential(1.0, 0.7) + Matern(1.0, 0.3, 0.3), radius=1.0),
    on_sphere(Matern(2.0, 900.0, 0.4)),
]


def ragged(points, count=60, largest=150, seed=1):
    """Row starts, column starts, rows and columns of random blocks; some empty, some of one entry."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, largest, (2, count))
    rows[:3], columns[2:5], rows[5], columns[5] = 0, 0, 1, 1
    return rng.integers(0, points - largest, count), rng.integers(0, points - largest, count), rows, columns


def point_sets(X, Y, blocks):
    """The points of the blocks' rows and columns."""
    x, y, rows, columns = blocks
    return MatrixBatch.from_rows(X, x, rows), MatrixBatch.from_rows(Y, y, columns)


def on_device(cov, X, blocks, Y=None, out=None):
    """The blocks by the kernel, on the host; fails where no kernel knows the covariance."""
    cp = pytest.importorskip("cupy")
    assert cov.pair_function.on_device(X.shape[1], X.dtype) is not None
    X = cp.asarray(X)
    out = pairwise(cov.pair_function, *point_sets(X, X if Y is None else cp.asarray(Y), blocks), out=out)
    return MatrixBatch(out.buffer.get(), out.offsets, out.rows, out.columns)


def kernel_of(cov, X):
    """What the kernel is called that evaluates the covariance."""
    return cov.pair_function.on_device(X.shape[1], X.dtype).type


def exact(cov, X, blocks):
    """The blocks in double precision on the CPU, from the same points."""
    X = X.astype(np.float64)
    return pairwise(cov.values, *point_sets(X, X, blocks))


def assert_values(cov, X, blocks, found):
    """Within TOLERANCE ε of the largest value, entry by entry."""
    wanted = exact(cov, X, blocks)
    largest = max(abs(wanted.buffer).max(initial=0), cov.variance_at_zero)
    tolerance = WITHOUT_CLOSED_FORM if any(name in kernel_of(cov, X) for name in ("Table", "Debye")) else TOLERANCE
    assert abs(found.entries - wanted.buffer).max(initial=0) <= tolerance * np.finfo(X.dtype).eps * largest


# types and parameters


def test_types_compose_as_the_covariances_do():
    def spelled(cov, dim=2):
        return cov.pair_function.on_device(dim, np.float64).type

    assert spelled(Exponential()) == spelled(Matern(smoothness=0.5)) == "Matern<0, Isotropic<2>>"
    assert spelled(Matern(length_scale=(1.0, 2.0), smoothness=2.5)) == "Matern<2, Stretched<2>>"
    assert spelled(Gaussian(length_scale=(1.0,)), 1) == "Gaussian<Isotropic<1>>"
    assert spelled(Exponential() + Nugget(1.0), 3) == "Matern<0, Isotropic<3>>"
    assert spelled(Spherical()) == "Compact<2, 1, Isotropic<2>>"
    assert spelled(Wendland(), 3) == "Compact<4, 1, Isotropic<3>>"
    assert spelled(Spherical(1.0, (1, 2), rotation=0.3)) == "Compact<2, 1, Rotated<2>>"
    assert spelled(Nugget(1.0)) == "Constant<Isotropic<2>>"
    three = "Sum<Sum<Matern<0, Isotropic<2>>, Constant<Isotropic<2>>>, Gaussian<Isotropic<2>>>"
    assert spelled(Exponential() + Constant() + Gaussian()) == three
    assert spelled(Exponential() * Constant()) == "Product<Matern<0, Isotropic<2>>, Constant<Isotropic<2>>>"
    assert spelled(on_sphere(Exponential()), 3) == "Matern<0, GreatCircle>"
    assert spelled(on_sphere(Gaussian(), distance="chordal"), 3) == "Gaussian<Isotropic<3>>"
    assert spelled(Matern(smoothness=1.7)) == "MaternTable<Pieces<4, 9, -27, 37>, Isotropic<2>>"
    assert spelled(Matern(smoothness=30.0)) == "MaternDebye<32, Isotropic<2>>"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", range(5))
def test_parameters_of_matern_evaluate_to_it(p, dtype):
    cov, r = Matern(1.7, 0.3, p + 0.5), np.linspace(0, 3, 50)
    rate, largest, *a = cov.pair_function.on_device(2, dtype).parameters.astype(np.float64)
    values = np.polyval(a[::-1], r) * 2.0 ** (-rate * r)
    assert abs(values - cov.at_distance(r)).max() <= 10 * np.finfo(dtype).eps
    assert largest > 3**2


@pytest.mark.parametrize(
    "cov, dim",
    [
        (from_function(lambda x, y: (x * y).sum(-1)), 2),
        (Exponential() + from_distance(np.exp), 2),
        (Exponential() * from_distance(np.exp), 2),
        (Matern(length_scale=1e-200, smoothness=1.7), 2),
        (Matern(length_scale=1e-200, smoothness=30.0), 2),
        (Exponential(length_scale=(1.0, 2.0)), 3),
        (on_sphere(Exponential()), 2),
        (Exponential(length_scale=1e-200), 2),
        (Matern(length_scale=1e100, smoothness=4.5), 2),
    ],
    ids=name_of,
)
def test_what_no_kernel_knows(cov, dim):
    assert cov.pair_function.on_device(dim, np.float64) is None


def test_pair_function_is_the_covariance():
    x = np.random.default_rng(0).random((40, 2))
    cov = Matern(2.0, 0.3, 2.5) + Nugget(1.0)
    assert np.array_equal(cov.pair_function(x[:, None], x[None]), cov.values(x[:, None], x[None]))
    assert cov.pair_function == cov.pair_function


# values


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_covariance(dim, dtype):
    X, blocks = np.random.default_rng(0).random((1000, dim)).astype(dtype), ragged(1000)
    for cov in covariances(dim):
        assert_values(cov, X, blocks, on_device(cov, X, blocks))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_smoothness(dim, dtype):
    X, blocks = np.random.default_rng(0).random((1000, dim)).astype(dtype), ragged(1000)
    X[100:110] = X[90:100] * (1 + dtype(1e-9))  # equal points, and distances below the table
    for cov in smoothnesses(dim):
        assert_values(cov, X, blocks, on_device(cov, X, blocks))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cov", SPHERES, ids=repr)
def test_spheres(cov, dtype):
    rng = np.random.default_rng(3)
    lonlat = np.stack([rng.uniform(-180, 180, 600), rng.uniform(-90, 90, 600)], axis=1)
    lonlat[300:] = -lonlat[:300]  # on the other side of the equator
    X, blocks = cov.embed(lonlat).astype(dtype), ragged(600)
    assert_values(cov, X, blocks, on_device(cov, X, blocks))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 1000), (1000, 1), (257, 256), (256, 257), (300, 343), (7, 650), (650, 7)]
)
def test_shapes(shape):
    X, cov = np.random.default_rng(4).random((1100, 2)), Exponential(1.0, 0.2)
    blocks = [3, 0, 50], [5, 7, 99], [shape[0]] * 3, [shape[1]] * 3
    assert_values(cov, X, blocks, on_device(cov, X, blocks))


@pytest.mark.gpu
def test_empty_blocks_beside_others():
    """Of many rows too: thread blocks find their tile by dividing by how many of them stand side by side."""
    X, cov = np.random.default_rng(4).random((400, 2)), Exponential(1.0, 0.2)
    blocks = range(8), range(8), [150, 150, 0, 150, 150, 150, 150, 150], [100, 0, 100, 100, 100, 100, 100, 100]
    assert_values(cov, X, blocks, on_device(cov, X, blocks))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_duplicates_have_the_variance_exactly(dtype):
    X = np.repeat(np.random.default_rng(5).random((20, 3)).astype(dtype), 10, axis=0)
    others = Matern(3.0, 0.1, 0.3), Matern(3.0, 0.1, 2.0), Matern(2.0, 0.1, 1e4)
    for cov in (Exponential(2.0, 1e-3), Matern(3.0, 0.1, 2.5), Gaussian(0.5, (1.0, 2.0, 3.0)), *others):
        C = on_device(cov, X, ([0], [0], [200], [200]))[0]
        same = np.repeat(np.repeat(np.eye(20, dtype=bool), 10, axis=0), 10, axis=1)
        assert (C[same] == dtype(cov.variance)).all()
        assert (C[~same] < cov.variance).all()


@pytest.mark.gpu
def test_a_far_origin_costs_no_digits():
    near = np.random.default_rng(6).integers(0, 1 << 20, (300, 2)) / 2.0**20
    X, blocks = near + 2.0**32, ([0], [100], [150], [200])
    assert np.array_equal(X - 2.0**32, near)
    for cov in (Exponential(1.0, 0.1), Matern(1.0, (0.1, 0.2), 1.5), Gaussian(1.0, 0.1), Matern(1.0, 0.1, 1.2)):
        assert np.array_equal(on_device(cov, X, blocks).buffer, on_device(cov, near, blocks).buffer)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_distances_vanish(dtype):
    limit = np.finfo(dtype).max
    X = np.array([[0], [1e-30], [1], [1e5], [1e18], [limit / 2], [-limit / 2]], dtype)
    for cov in (Exponential(), Matern(smoothness=4.5), Gaussian(), Matern(smoothness=2.0), Matern(smoothness=25.0)):
        C = on_device(cov, X, ([0], [0], [7], [7]))[0]
        assert np.isfinite(C).all() and (C >= 0).all()
        assert (np.diag(C) == 1).all() and C[0, 1] == 1
        assert (C[3:, :3] < 1e-30).all() and (C[np.triu_indices(7, 3)] < 1e-30).all()


@pytest.mark.gpu
def test_writes_into_a_part_of_a_batch_and_nothing_else():
    cp = pytest.importorskip("cupy")
    X, cov = np.random.default_rng(7).random((400, 2)), Exponential(1.0, 0.2)
    whole = MatrixBatch.empty(np.arange(1, 40), np.arange(40, 1, -1), np.float64, cp)
    whole.buffer[:] = -1
    chosen = np.arange(0, 39, 3)
    out, blocks = whole[chosen], (np.arange(13), np.arange(13) * 2, whole.rows[chosen], whole.columns[chosen])
    found = on_device(cov, X, blocks, out=out)
    assert_values(cov, X, blocks, found)
    rest = np.setdiff1d(np.arange(39), chosen)
    assert (MatrixBatch(found.buffer, whole.offsets, whole.rows, whole.columns)[rest].entries == -1).all()


@pytest.mark.gpu
def test_more_blocks_than_a_grid_dimension_and_two_sets_of_points():
    rng = np.random.default_rng(8)
    X, Y, count = rng.random((500, 2)), rng.random((300, 2)), 70_000
    starts, cov = (rng.integers(0, 490, count), rng.integers(0, 290, count)), Matern(1.0, 0.3, 1.5)
    found = on_device(cov, X, (*starts, np.full(count, 3), np.full(count, 5)), Y)
    wanted = cov.values(
        X[starts[0][:, None] + np.arange(3)][:, :, None], Y[starts[1][:, None] + np.arange(5)][:, None, :]
    )
    assert abs(found.buffer - wanted.ravel()).max() <= TOLERANCE * np.finfo(np.float64).eps


@pytest.mark.gpu
def test_no_blocks():
    assert on_device(Exponential(), np.zeros((3, 2)), ([], [], [], [])).buffer.size == 0
    assert on_device(Exponential(), np.zeros((3, 2)), ([0, 1], [0, 0], [0, 2], [2, 0])).buffer.size == 0
