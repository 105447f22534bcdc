"""Chebyshev interpolation on boxes: exact for polynomials of degree < order in each coordinate, stable at nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import EPS

from h2gpu.arrays import to_host
from h2gpu.clustering.boxes import Boxes
from h2gpu.covariance import Exponential, Gaussian, Matern, Modulated
from h2gpu.h2matrix import interpolation
from h2gpu.h2matrix.interpolation import chebyshev
from h2gpu.h2matrix.interpolation.samples import Samples

ORDERS = st.integers(1, 12)
COVARIANCES = Exponential(), Matern(length_scale=2.0, smoothness=1.2), Modulated(Gaussian(), (0.1, 0.2))
INTERVALS = st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (3.0, 3.5), (-1e6, 1e6), (1e5, 1e5 + 1), (0.0, 1e-30)])


def within(lower, upper, count=50, seed=0):
    """Points of a box, both ends among them: (count, dim), and the box repeated for each."""
    lower, upper = np.atleast_1d(lower), np.atleast_1d(upper)
    z = np.random.default_rng(seed).random((count, len(lower)))
    z[0], z[-1] = 0, 1
    x = np.clip(lower + z * (upper - lower), lower, upper)
    return x, np.broadcast_to(lower, x.shape), np.broadcast_to(upper, x.shape)


def monomials(x, centre, half, powers):
    """Π_j ((x_j − c_j) / h_j)^p_j, at most 1 on the box."""
    return np.prod(((x - centre) / half) ** powers, axis=-1)


@given(ORDERS)
def test_nodes_are_the_zeros_of_the_chebyshev_polynomial(order):
    """T_order(ξ) = cos(order · arccos ξ) = 0"""
    xi = chebyshev.nodes(order)
    assert (np.abs(np.cos(order * np.arccos(xi))) <= 8 * order * EPS).all()
    assert (np.diff(xi) < 0).all() and (np.abs(xi) < 1).all()


@given(ORDERS, INTERVALS)
def test_polynomials_of_degree_below_the_order_are_reproduced(order, interval):
    """Σ_ν ℓ_ν(x) p(ξ_ν) = p(x), to what rounding of x leaves; degree 0 is the partition of unity."""
    lower, upper = interval
    x, a, b = within(lower, upper)
    L = chebyshev.lagrange(x[:, 0], a[:, 0], b[:, 0], order)
    centre, half = (lower + upper) / 2, (upper - lower) / 2
    xi = chebyshev.axis_nodes(Boxes(np.array([[lower]]), np.array([[upper]])), order)[0, 0]
    rounding = EPS * (order + max(abs(lower), abs(upper)) / half)
    for degree in range(order):
        exact = ((x[:, 0] - centre) / half) ** degree
        np.testing.assert_allclose(L @ ((xi - centre) / half) ** degree, exact, rtol=0, atol=40 * order**2 * rounding)
    np.testing.assert_allclose(L.sum(axis=1), 1, rtol=0, atol=8 * order * EPS)


@given(ORDERS)
def test_interpolation_does_not_amplify(order):
    """Lebesgue constant ≤ (2/π) log order + 1: Rivlin (1974); Trefethen, Approximation Theory and Practice, ch. 15."""
    x, a, b = within(-1.0, 1.0, 2000)
    L = chebyshev.lagrange(x[:, 0], a[:, 0], b[:, 0], order)
    assert np.abs(L).sum(axis=1).max() <= 2 / np.pi * np.log(order) + 1 + 1e-12


@given(ORDERS)
def test_polynomials_are_cardinal_at_the_nodes(order):
    """ℓ_ν(ξ_μ) = [ν = μ], exactly: no division by zero."""
    xi = chebyshev.nodes(order)
    L = chebyshev.lagrange(xi, np.full(order, -1.0), np.ones(order), order)
    np.testing.assert_array_equal(L, np.eye(order))


@pytest.mark.parametrize("order", [2, 5, 10])
def test_points_a_rounding_away_from_a_node_are_as_good_as_others(order):
    """|Σ_ν ℓ_ν(x) − 1| and |x − Σ_ν ℓ_ν(x) ξ_ν| stay at rounding level however near x is to a node."""
    xi = chebyshev.nodes(order)
    x = np.concatenate([np.nextafter(xi, 2), np.nextafter(xi, -2), xi + 1e-15, xi + 1e-310])
    L = chebyshev.lagrange(x, np.full_like(x, -1), np.full_like(x, 1), order)
    np.testing.assert_allclose(L.sum(axis=1), 1, rtol=0, atol=20 * EPS)
    np.testing.assert_allclose(L @ xi, x, rtol=0, atol=20 * EPS)


@given(ORDERS, st.floats(-1e6, 1e6))
def test_a_flat_side_takes_the_first_polynomial_as_one(order, place):
    x = np.full(4, place)
    L = chebyshev.lagrange(x, x, x, order)
    np.testing.assert_array_equal(L, np.eye(order)[np.zeros(4, int)])


@given(st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_tensor_polynomials_are_reproduced_on_boxes_flat_ones_too(dim, order, seed):
    """Σ_ν L_ν(x) p(ξ_ν) = p(x) for p = Π_j x_j^{p_j}, p_j < order"""
    rng = np.random.default_rng(seed)
    lower, side = rng.uniform(-1, 1, dim), rng.uniform(0.1, 2, dim) * (rng.random(dim) < 0.7)
    x, a, b = within(lower, lower + side, seed=seed)
    xi = chebyshev.grids(Boxes(a[:1], b[:1]), order)[0]
    U = chebyshev.leaf_values(x, a, b, order)
    assert U.shape == (50, order**dim) and xi.shape == (order**dim, dim)
    powers, half = rng.integers(0, order, dim), np.where(side > 0, side / 2, 1)
    values = monomials(xi, lower + side / 2, half, powers)
    exact = monomials(x, lower + side / 2, half, powers)
    np.testing.assert_allclose(U @ values, exact, rtol=0, atol=100 * order**dim * EPS)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_transfer_matrices_nest_the_bases(dim, order, seed):
    """U_parent at the child's points = U_child E, since both are the same polynomials."""
    rng = np.random.default_rng(seed)
    lower = rng.uniform(-1, 1, (1, dim))
    upper = lower + rng.uniform(0.5, 2, (1, dim))
    child = Boxes(lower + 0.1 * (upper - lower), lower + rng.uniform(0.1, 0.9, (1, dim)) * (upper - lower))
    child.lower[:, 0], child.upper[:, 0] = (lower[:, 0], upper[:, 0]) if dim > 1 else (lower[:, 0], lower[:, 0])
    E = chebyshev.transfer_values(child, Boxes(lower, upper), order, order, lower)[0]
    x, a, b = within(child.lower[0], child.upper[0])
    whole = chebyshev.leaf_values(x, *(np.broadcast_to(side, x.shape) for side in (lower, upper)), order)
    np.testing.assert_allclose(chebyshev.leaf_values(x, a, b, order) @ E, whole, rtol=0, atol=100 * order**dim * EPS)
    np.testing.assert_allclose(E.sum(axis=1), 1, rtol=0, atol=100 * order**dim * EPS)


def test_grids_run_over_the_last_direction_fastest():
    """Node (ν_1, …, ν_d) of the grid stands at Σ_j ν_j order^(d−j), as in the columns of U."""
    box = Boxes(np.array([[-1.0, 0.0]]), np.array([[1.0, 4.0]]))
    grid = chebyshev.grids(box, 3)[0].reshape(3, 3, 2)
    np.testing.assert_allclose(grid[:, 0, 0], chebyshev.nodes(3))
    np.testing.assert_allclose(grid[0, :, 1], 2 + 2 * chebyshev.nodes(3))
    first, second = np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 2.0, 3.0]])
    np.testing.assert_array_equal(chebyshev.tensor_product([first, second])[0], [0, 2, 3, 0, 0, 0, 0, 0, 0])


def test_both_array_modules_agree(xp):
    x, a, b = within([0.0, 1.0], [1.0, 1.0])
    on_device = chebyshev.leaf_values(*(xp.asarray(v.copy()) for v in (x, a, b)), 6)
    assert isinstance(on_device, xp.ndarray)
    np.testing.assert_allclose(to_host(on_device), chebyshev.leaf_values(x, a, b, 6), rtol=0, atol=50 * EPS)


def test_float32_points_give_float32_polynomials():
    x, a, b = (v.astype(np.float32) for v in within([0.0, 1.0], [1.0, 3.0]))
    U = chebyshev.leaf_values(x, a, b, 5)
    assert U.dtype == np.float32
    np.testing.assert_allclose(U.sum(axis=1), 1, rtol=0, atol=200 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_all_boxes_at_once_are_boxes_one_by_one(dim, dtype, xp):
    """Values at ragged numbers of points, transfers between orders and grids, sides without length among the boxes."""
    rng, sizes, order, above = np.random.default_rng(dim), np.array([3, 1, 40, 7]), 5, 4
    lower, sides = rng.uniform(-1, 1, (4, dim)), rng.uniform(0.1, 1, (4, dim))
    sides[1] = 0
    boxes, parents = Boxes(lower, lower + sides), Boxes(lower - 0.1, lower + sides + 0.2)
    owner = np.repeat(np.arange(4), sizes)
    x = (lower[owner] + sides[owner] * rng.random((len(owner), dim))).astype(dtype)
    x[:3] = chebyshev.axis_nodes(boxes, order)[0, :, :3].T  # on nodes
    there, tolerance = xp.asarray(x), 2000 * np.finfo(dtype).eps
    doors = interpolation.twin(there)
    values = doors.values_in_boxes(there, sizes, boxes, order)
    alone = chebyshev.leaf_values(x, *(side[owner].astype(dtype) for side in (boxes.lower, boxes.upper)), order)
    assert isinstance(values, xp.ndarray) and values.dtype == dtype
    np.testing.assert_allclose(to_host(values), alone, rtol=0, atol=tolerance * np.abs(alone).max())
    E = to_host(doors.transfer_values(boxes, parents, order, above, there))
    assert E.shape == (4, order**dim, above**dim) and E.dtype == dtype
    for b in range(4):
        grid = chebyshev.grids(boxes[[b]], order)[0].astype(dtype)
        corners = (np.broadcast_to(side[b].astype(dtype), grid.shape) for side in (parents.lower, parents.upper))
        np.testing.assert_allclose(E[b], chebyshev.leaf_values(grid, *corners, above), rtol=0, atol=tolerance)
    grids = to_host(doors.grids_like(there, boxes, order))
    np.testing.assert_array_equal(grids, chebyshev.grids(boxes, order).astype(dtype))


@pytest.mark.parametrize("cov", COVARIANCES, ids=lambda cov: type(cov).__name__)
@pytest.mark.parametrize(("dim", "rows", "columns"), [(1, 6, 3), (2, 6, 3), (2, 1, 1), (3, 2, 3)])
def test_errors_at_samples_are_those_of_interpolation(cov, dim, rows, columns, xp):
    """Many orders at once, by a kernel where points are on a GPU; small clusters use their own points. Some entries are
    tried again, from smaller boxes around their rows."""
    if cov.coordinates not in (None, dim):
        pytest.skip("a covariance of other dimensions")
    rng, blocks, again = np.random.default_rng(dim), 7, np.array([0, 3, 3, 5, 6])
    lower = rng.uniform(-1, 1, (blocks, dim))
    own = Boxes(lower, lower + rng.uniform(0, 1, (blocks, dim)) * (np.arange(dim) > 0) + 0.3 * (np.arange(dim) == 0))
    x = own.lower[:, None] + rng.random((blocks, rows, dim)) * own.sides[:, None]
    y = 2.5 + rng.random((blocks, columns, dim))
    entry = x[again, again % rows]
    boxes = Boxes(*(np.concatenate(part) for part in ((own.lower, entry - 0.1), (own.upper, entry + 0.2))))
    points = np.array([1, 5, 9, 30, 1000, 10**6, 10**9, 3, 10**6, 20, 50, 700])
    orders, doors, function = range(2, 9), interpolation.twin(xp.zeros(0)), cov.pair_function
    found = to_host(doors.mean_squares(Samples(function, boxes, points, x, y, again), orders))
    assert found.shape == (len(orders), len(points))
    entries = [(x[b], y[b]) for b in range(blocks)]
    entries += [(x[b, [b % rows]], y[b, [b % columns]]) for b in again]
    for row, order in zip(found, orders):
        for b, (x_b, y_b) in enumerate(entries):
            grid = chebyshev.grids(boxes[[b]], order)[0]
            corners = (np.broadcast_to(side[b], x_b.shape) for side in (boxes.lower, boxes.upper))
            U = chebyshev.leaf_values(x_b, *corners, order)
            error = function(x_b[:, None], y_b[None]) - U @ function(grid[:, None], y_b[None])
            expected = (error**2).mean() if points[b] > order**dim else 0
            np.testing.assert_allclose(row[b], expected, rtol=1e-4, atol=1e-26)
    assert found[-1].sum() < 1e-3 * found[0].sum()
