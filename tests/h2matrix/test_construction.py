"""Building: exact near, interpolated far, and the interpolation error as the theory has it."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import EPS, POINT_SETS, blocks_of, dense_of, difference, members, point_sets, points_of, streamed

import h2gpu
from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, from_function, on_sphere

ONE = from_function(lambda x, y: 1.0 + 0 * (x - y).sum(axis=-1))


# Covariance ≡ 1: every pair is there once, and bases are partitions of unity.


@settings(max_examples=50)
@given(
    point_sets(largest=300),
    st.integers(1, 40),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(1, 4),
    st.sampled_from(["median", "mean"]),
)
def test_covariance_one_makes_every_row_sum_to_n(points, leaf_size, eta, order, split):
    """C ≡ 1 ⇒ A 1 = n"""
    A = h2gpu.build(points, ONE, leaf_size=leaf_size, eta=eta, order=order, split=split)
    n = len(points)
    np.testing.assert_allclose(A @ np.ones(n), n, rtol=500 * order * EPS)
    np.testing.assert_allclose(dense_of(A), 1, rtol=500 * order * EPS)


@pytest.mark.parametrize("name", POINT_SETS)
def test_a_gaussian_of_huge_length_makes_every_row_sum_to_n(name, xp):
    """ℓ → ∞: C → 1. Rectangular, so that A 1 = m."""
    points, cols = points_of(name, 500, 2), points_of(name, 333, 2, seed=1)
    A = h2gpu.build(xp.asarray(points), Gaussian(1.0, 1e15), col_points=xp.asarray(cols), leaf_size=8, order=3)
    np.testing.assert_allclose(to_host(A @ xp.ones(333)), 333, rtol=1e-12)
    np.testing.assert_allclose(to_host(A.T @ xp.ones(500)), 500, rtol=1e-12)


# Near and far


@pytest.mark.parametrize("split", ["median", "mean"])
@pytest.mark.parametrize("name", POINT_SETS)
def test_nearfield_blocks_are_the_covariance_itself(name, split):
    """D_ts = C(points of t, points of s), the nugget on the diagonal of the matrix alone."""
    points, cov = points_of(name, 200, 2), Exponential(2.0, 0.3) + Nugget(0.5)
    A, C = h2gpu.build(points, cov, leaf_size=8, order=3, split=split), cov(points)
    tree = A.row_basis.tree
    for b, (t, s) in enumerate(zip(A.nearfield.rows, A.nearfield.columns)):
        np.testing.assert_allclose(A.nearfield.blocks[b], C[np.ix_(members(tree, t), members(tree, s))], rtol=1e-15)


def test_one_leaf_is_the_dense_matrix(xp):
    points, cov = points_of("uniform", 60, 3), Matern(2.0, 0.4, 2.5) + Nugget(0.1)
    A = h2gpu.build(xp.asarray(points), cov, leaf_size=64)
    np.testing.assert_allclose(to_host(A.to_dense()), cov(points), rtol=1e-13)
    assert A.ranks[0].tolist() == [0] and A.couplings.nbytes == 0


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_clusters_of_fewer_points_than_nodes_are_exact(dim):
    """order^dim > n ⇒ own points carry the bases, U = I, and A = C to rounding."""
    points, cov = points_of("uniform", 60, dim), Exponential(1.0, 0.3)
    A = h2gpu.build(points, cov, leaf_size=4, order=61 if dim == 1 else 8)
    assert len(A.couplings) > 0
    assert np.abs(dense_of(A) - cov(points)).max() <= 8 * EPS
    used = A.row_basis.ranks > 0
    np.testing.assert_array_equal(A.row_basis.ranks[used], A.row_basis.tree.sizes[used])


@pytest.mark.parametrize("name", ["uniform", "clustered", "duplicates", "outlier", "on_an_axis"])
def test_ranks_are_the_number_of_nodes_or_of_points(name):
    A = h2gpu.build(points_of(name, 1000, 2), Exponential(1.0, 0.3), leaf_size=16, order=4)
    ranks, sizes = A.row_basis.ranks, A.row_basis.tree.sizes
    np.testing.assert_array_equal(ranks[ranks > 0], np.minimum(sizes, 16)[ranks > 0])
    assert (ranks[np.unique([A.couplings.rows, A.couplings.columns])] > 0).all()


# The interpolation error


def largest_error(points, cov, exact=None, **parameters):
    exact = cov(points) if exact is None else exact
    return np.abs(h2gpu.build(points, cov, **parameters).to_dense() - exact).max()


def errors_of(orders, points, cov, **parameters):
    """Largest error of each order."""
    exact = cov(points)
    return np.array([largest_error(points, cov, exact, order=int(k), **parameters) for k in orders])


def measured_rate(orders, errors):
    """ρ of errors ≈ c ρ^(−order), fitted to those above rounding."""
    above = errors > 1e-12
    assert above.sum() >= 4
    return np.exp(-np.polyfit(orders[above], np.log(errors[above]), 1)[0])


@pytest.mark.parametrize("eta", [0.5, 1.0, 2.0])
def test_in_1d_the_error_falls_as_the_nearest_singularity_demands(eta):
    """error ~ ρ^(−order) · order^(−2ν−1),  ρ = z + √(z² − 1),  z = 1 + 2/η

    r^2ν is singular at distance ≥ (2/η) half-lengths from the end of the interval: the Bernstein ellipse through that
    point sets the rate, the power the algebraic factor (Trefethen, Approximation Theory and Approximation Practice,
    theorem 8.2 and chapter 7).
    """
    z, nu, orders = 1 + 2 / eta, 0.3, np.arange(3, 12)
    points = points_of("uniform", 600, 1)
    cov = Matern(1.0, 0.3, nu)
    errors = errors_of(orders, points, cov, leaf_size=16, eta=eta)
    rate = measured_rate(orders, errors * orders ** (2 * nu + 1))
    assert rate == pytest.approx(z + np.sqrt(z**2 - 1), rel=0.2)


@pytest.mark.parametrize("cov", [Exponential(1.0, 0.3), Matern(1.0, 0.5, 1.5), Matern(1.0, 0.5, 0.8)], ids=repr)
@pytest.mark.parametrize("eta", [0.5, 1.0, 2.0])
def test_in_2d_the_error_falls_at_least_as_admissibility_guarantees(cov, eta):
    """error ≤ c ρ^(−order),  ρ = 2/η + √(4/η² + 1)

    Singularities lie ≥ diam/η away from the box in every direction, also into the complex plane: the smallest Bernstein
    ellipse that meets them has the short half-axis 2/η (Börm & Grasedyck, Numer. Math. 101 (2005), 221–249).
    """
    orders = np.arange(2, 7)
    points = points_of("uniform", 500, 2)
    errors = errors_of(orders, points, cov, leaf_size=36, eta=eta)
    assert measured_rate(orders, errors) >= 2 / eta + np.sqrt(4 / eta**2 + 1)


@pytest.mark.parametrize("name", ["clustered", "collinear", "duplicates", "outlier", "on_an_axis", "grid"])
@pytest.mark.parametrize("split", ["median", "mean"])
def test_the_error_is_small_whatever_the_points(name, split):
    """Order 7 at η = 1 gives 5 digits or more."""
    points = points_of(name, 600, 2)
    assert largest_error(points, Exponential(1.0, 0.5), leaf_size=49, order=7, split=split) < 1e-5


def test_the_error_does_not_depend_on_where_the_points_lie_or_on_their_unit():
    """C(λx + c; λℓ) = C(x; ℓ), so A is the same to the rounding of λx + c."""
    points = points_of("uniform", 600, 2)
    A = h2gpu.build(points, Matern(1.0, 0.3, 1.5), leaf_size=32, order=5)
    B = h2gpu.build(1e-3 * points + 5e3, Matern(1.0, 0.3e-3, 1.5), leaf_size=32, order=5)
    assert np.array_equal(A.row_basis.tree.permutation, B.row_basis.tree.permutation)
    assert difference(A.to_dense(), B.to_dense()) < 100 * EPS * 5e3 / 1e-3


# Variants


def test_anisotropic_covariances_and_the_sphere_are_interpolated_too():
    points = points_of("uniform", 600, 2)
    assert largest_error(points, Exponential(1.0, (0.3, 0.9)), leaf_size=64, order=9) < 1e-6
    lonlat = np.random.default_rng(0).uniform([-180, -80], [180, 80], (800, 2))
    assert largest_error(lonlat, on_sphere(Exponential(1.0, 5000.0)), leaf_size=16, order=6) < 1e-4


def test_rows_follow_the_points_when_these_are_reordered():
    """A(Px) = P A(x) Pᵀ for a permutation P."""
    points, cov = points_of("clustered", 400, 2), Exponential(1.0, 0.3) + Nugget(0.1)
    order = np.random.default_rng(3).permutation(400)
    A, B = (h2gpu.build(p, cov, leaf_size=8, order=4).to_dense() for p in (points, points[order]))
    np.testing.assert_allclose(B, A[np.ix_(order, order)], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rectangular", [False, True])
def test_deferred_couplings_are_the_stored_ones(rectangular, xp):
    """The same numbers, evaluated where they are used; any selection, transposed or not."""
    points, cols = (xp.asarray(points_of("uniform", n, 2, seed=n)) for n in (700, 500))
    arguments = {"leaf_size": 16, "order": 4, "col_points": cols if rectangular else None}
    A = h2gpu.build(points, Matern(1.0, 0.3, 1.5), **arguments)
    B = streamed(points, Matern(1.0, 0.3, 1.5), **arguments)
    assert B.couplings.nbytes == A.couplings.nbytes and len(B.couplings) == len(A.couplings) > 0
    np.testing.assert_array_equal(to_host(B.couplings.stored().blocks.entries), to_host(A.couplings.blocks.entries))
    rng = np.random.default_rng(0)
    index = rng.integers(0, len(A.couplings), 50)
    a, b, c = A.couplings.select(index), B.couplings.select(index), B.couplings.select(index, transpose=True)
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_allclose(to_host(a.entries), to_host(b.entries), rtol=0, atol=4 * EPS)
    np.testing.assert_array_equal(to_host(batched.transpose(c).entries), to_host(b.entries))


def test_rectangular_matrices_of_one_point_set_are_the_symmetric_ones():
    points, cov = points_of("uniform", 500, 2), Matern(1.0, 0.3, 1.5)
    A = h2gpu.build(points, cov, leaf_size=16, order=4)
    B = h2gpu.build(points, cov, col_points=points.copy(), leaf_size=16, order=4)
    assert A.symmetric and not B.symmetric
    assert difference(A.to_dense(), B.to_dense()) < 10 * EPS


def test_float32_points_give_a_float32_matrix_of_float32_accuracy(xp):
    points, cov = points_of("uniform", 600, 2), Exponential(1.0, 0.3) + Nugget(0.25)
    A = h2gpu.build(xp.asarray(points, dtype=xp.float32), cov, leaf_size=64, order=8)
    assert A.dtype == A.to_dense().dtype == np.float32
    assert np.abs(to_host(A.to_dense()) - cov(points)).max() < 100 * np.finfo(np.float32).eps


def test_lists_and_integers_are_converted_to_float64():
    A = h2gpu.build([[0, 0], [1, 2], [3, 1]], Exponential())
    np.testing.assert_allclose(A.to_dense(), Exponential()(np.array([[0.0, 0], [1, 2], [3, 1]])), rtol=1e-15)
    assert A.dtype == np.float64
    assert h2gpu.build(np.arange(10, dtype=np.uint8)[:, None], Exponential()).dtype == np.float64


def test_the_points_are_left_as_they_are_whatever_their_layout():
    points = np.asfortranarray(points_of("uniform", 300, 2))
    before, strided = points.copy(), np.repeat(points, 2, axis=0)[::2]
    points.flags.writeable = False
    A, B = (h2gpu.build(p, Exponential(1.0, 0.3), leaf_size=16, order=4) for p in (points, strided))
    np.testing.assert_array_equal(points, before)
    np.testing.assert_array_equal(A.to_dense(), B.to_dense())


def test_matrices_far_apart_may_be_zero():
    """exp(−r²/2) underflows for r > 39: a matrix of zeros, not an error."""
    points = points_of("uniform", 100, 2)
    A = h2gpu.build(points, Gaussian(), col_points=points + 100, leaf_size=8, order=3)
    assert not A.to_dense().any()


def test_every_block_is_far_for_points_far_apart():
    """One block U S Vᵀ of the two roots; no nearfield at all."""
    points = points_of("uniform", 100, 2)
    A = h2gpu.build(points, Exponential(1.0, 100.0), col_points=points + 100, leaf_size=8, order=4)
    assert len(list(blocks_of(A))) == len(A.couplings) == 1 and len(A.nearfield) == 0
    assert difference(Exponential(1.0, 100.0)(points, points + 100), A.to_dense()) < 1e-10


def test_the_order_of_bytes_does_not_matter():
    points = points_of("uniform", 200, 2)
    A, B = (h2gpu.build(X, Exponential(), leaf_size=8, order=4) for X in (points, points.astype(">f8")))
    np.testing.assert_array_equal(A.to_dense(), B.to_dense())


# Bad arguments

POINTS, COV = points_of("uniform", 20, 2), Exponential()


@pytest.mark.parametrize(
    ("points", "arguments", "message"),
    [
        (np.array([[0.0, np.nan], [1, 1]]), {}, "points: expected finite coordinates, got NaN .* first in row 0"),
        (
            np.array([[0.0, 1e160], [0, 1]]),
            {},
            r"points: expected coordinates of float64 from 1e-135 to 1e\+153, got 1e\+160",
        ),
        (np.array([[0.0, 1], [np.inf, 1]]), {}, "points: expected finite coordinates, got NaN or infinity in 1 rows"),
        (np.zeros(3), {}, r"points: expected shape \(n, dim\) .* got \(3,\)"),
        (np.zeros((0, 2)), {}, "points: expected shape"),
        (np.zeros((2, 0)), {}, "points: expected shape"),
        (np.zeros((2, 2, 2)), {}, "points: expected shape"),
        (3.0, {}, "points: expected shape"),
        (np.array([["a", "b"]]), {}, "points: expected floating-point"),
        (np.array([[1.0, None]], object), {}, "points: expected floating-point coordinates, got object"),
        (np.ones((3, 2), complex), {}, "points: expected floating-point coordinates, got complex128"),
        (np.ones((3, 2), np.float16), {}, "points: expected float32 or float64 coordinates, got float16"),
        (np.ones((3, 2), np.longdouble), {}, "points: expected float32 or float64"),
        (POINTS, {"leaf_size": 0}, "leaf_size: expected a positive integer, got 0"),
        (POINTS, {"leaf_size": 1.5}, "leaf_size: expected a positive integer, got 1.5"),
        (POINTS, {"eta": -1}, "eta: expected a positive number, got -1"),
        (POINTS, {"eta": "1"}, "eta: expected a positive number, got '1'"),
        (POINTS, {"order": 0}, "order: expected an integer from 1 to 1000, got 0"),
        (POINTS, {"order": 2.0}, "order: expected an integer from 1 to 1000, got 2.0"),
        (POINTS, {"split": "x"}, 'split: expected "median" or "mean", got \'x\''),
        (POINTS, {"col_points": np.zeros((5, 3))}, "col_points: expected 2 coordinates of float64 .* got 3"),
        (POINTS, {"col_points": POINTS.astype(np.float32)}, "col_points: expected .* float64 .* got 2 of float32"),
        (POINTS, {"col_points": np.zeros(4)}, "col_points: expected shape"),
        (POINTS, {"col_points": np.full((4, 2), np.nan)}, "col_points: expected finite"),
        (POINTS, {"cov": Exponential(1.0, (1.0, 1.0, 1.0))}, "points: expected 3 coordinates"),
        (POINTS, {"cov": "exponential"}, "cov: expected a covariance"),
        (POINTS, {"cov": None}, "cov: expected a covariance"),
    ],
)
@pytest.mark.parametrize("make", [h2gpu.build, streamed])
def test_bad_arguments_give_one_clear_error(make, points, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(points, **{"cov": COV, **arguments})


@pytest.mark.parametrize(("dim", "order"), [(5, 8), (8, 12), (3, 1000)])
def test_grids_that_no_cluster_uses_take_no_memory(dim, order):
    """order^dim is far above the number of points: every cluster interpolates at its own points."""
    points = np.random.default_rng(0).random((64, dim))
    tracemalloc.start()
    A = h2gpu.build(points, Exponential(), order=order, leaf_size=16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(A.to_dense(), Exponential()(points), rtol=1e-12)
    assert peak < 20e6


@pytest.mark.parametrize("order", [0, 1001, 10**400, -(10**400), 2.5])
def test_orders_beyond_reason_are_refused(order):
    with pytest.raises(ValueError, match="order: expected an integer from 1 to 1000"):
        h2gpu.build(np.random.default_rng(0).random((64, 2)), Exponential(), order=order)
