"""Interpolation orders by level: sufficient, cheap, and what the matrix is built with."""

from itertools import product

import numpy as np
import pytest
from reference import EPS, dense_of, difference, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, from_function
from h2gpu.h2matrix.planning.orders import LEAST_ORDER, cheapest_orders, least_orders
from h2gpu.h2matrix.planning.planner import plan

LEVELS, ORDERS, DIM = 4, 5, 2


def tables(seed):
    """Squared errors that fall with the order, and work that rises with it and with the level."""
    rng, order = np.random.default_rng(seed), np.arange(ORDERS)[:, None] + LEAST_ORDER
    rate = rng.uniform(3, 30, LEVELS)
    errors = 10.0 ** rng.uniform(-2, 1, LEVELS) * rate ** (-2.0 * order)
    return errors, 4.0 ** np.arange(LEVELS) * order ** (3.0 * DIM)


def sufficient(errors, wanted):
    """All orders that fall by one a level at most, whose error is at most wanted."""
    every = np.array(list(product(range(ORDERS), repeat=LEVELS)))
    every = every[np.diff(every, axis=1).min(axis=1) >= -1]
    return every[errors[every, np.arange(LEVELS)].sum(axis=1) <= wanted**2]


def brute_force(errors, work, wanted):
    """Least work of them."""
    return work[sufficient(errors, wanted), np.arange(LEVELS)].sum(axis=1).min()


@pytest.mark.parametrize("seed", range(8))
def test_no_sufficient_orders_lie_below_where_the_search_begins(seed):
    errors, _ = tables(seed)
    wanted = np.sqrt(errors[-1].sum()) * 10.0 ** np.random.default_rng(seed).uniform(0, 3)
    least = least_orders(errors, wanted**2)
    assert (sufficient(errors, wanted) >= least).all() and least.any() and np.diff(least).min() >= -1


@pytest.mark.parametrize("seed", range(40))
def test_orders_are_sufficient_and_nearly_the_cheapest(seed):
    errors, work = tables(seed)
    wanted, level = np.sqrt(errors[-1].sum()) * 10.0 ** np.random.default_rng(seed).uniform(0, 3), np.arange(LEVELS)
    chosen = np.array(cheapest_orders(errors, work, wanted)) - LEAST_ORDER
    assert errors[chosen, level].sum() <= wanted**2 and np.diff(chosen).min() >= -1
    assert work[chosen, level].sum() <= 1.6 * brute_force(errors, work, wanted)


def test_they_are_on_average_within_a_few_percent_of_the_cheapest():
    ratios = []
    for seed in range(40):
        errors, work = tables(seed)
        wanted = np.sqrt(errors[-1].sum()) * 10.0 ** np.random.default_rng(seed).uniform(0, 3)
        chosen = np.array(cheapest_orders(errors, work, wanted)) - LEAST_ORDER
        ratios.append(work[chosen, np.arange(LEVELS)].sum() / brute_force(errors, work, wanted))
    assert np.mean(ratios) < 1.05


def test_what_the_largest_orders_miss_has_none():
    errors, work = tables(0)
    assert cheapest_orders(errors, work, 0.99 * np.sqrt(errors[-1].sum())) is None
    assert cheapest_orders(errors, work, np.sqrt(errors[-1].sum()) * (1 + 1e-9)) is not None


@pytest.mark.parametrize("kept", [0, 1])
def test_levels_without_samples_take_the_order_below_them(kept):
    """Also where blocks make work there, as those between leaves of a level and clusters of the next."""
    errors, work = tables(1)
    errors[:, 0], work[:, 0] = 0, kept * work[:, 0]
    chosen = cheapest_orders(errors, work, 10 * np.sqrt(errors[-1].sum()))
    assert chosen[0] == chosen[1] > LEAST_ORDER


def test_one_order_a_level_is_one_order_for_all(xp):
    points, cov = xp.asarray(points_of("uniform", 700, 2)), Exponential(1.0, 0.2)
    A = h2gpu.build(points, cov, leaf_size=16, order=4)
    B = h2gpu.build(points, cov, leaf_size=16, order=(4,) * A.row_basis.tree.levels)
    np.testing.assert_array_equal(to_host(A.to_dense()), to_host(B.to_dense()))


@pytest.mark.parametrize("orders", [(4, 4, 3, 3, 2, 2, 2, 2), (2, 3, 2, 4, 3, 5, 4, 3)])
@pytest.mark.parametrize("name", ["uniform", "clustered", "duplicates"])
def test_polynomials_of_lower_degree_are_exact_whatever_the_orders(name, orders, xp):
    """C(x, y) = 1 + xᵀy is linear in each coordinate: two points a direction hold it, on every level."""
    points, cov = points_of(name, 800, 2), from_function(lambda x, y: 1 + (x * y).sum(axis=-1))
    A = h2gpu.build(xp.asarray(points), cov, leaf_size=8, order=orders)
    np.testing.assert_allclose(dense_of(A), cov(points), rtol=2000 * EPS)


def test_the_error_is_that_of_the_levels():
    """Between those of the smallest and of the largest order on all levels, and nearer to the latter."""
    points, cov = points_of("uniform", 1500, 2), Exponential(1.0, 0.5)
    parameters = {"leaf_size": 16, "eta": 1.5}
    errors = [
        difference(cov(points), dense_of(h2gpu.build(points, cov, order=order, **parameters)))
        for order in (5, (7, 7, 7, 7, 7, 6, 5, 5), 7)
    ]
    assert errors[2] < errors[1] < errors[0] / 3


@pytest.mark.parametrize("cov", [Exponential(1.0, 0.2), Gaussian(1.0, 0.3)], ids=str)
@pytest.mark.parametrize("name", ["uniform", "clustered"])
def test_the_error_foretold_of_planned_orders_is_the_measured_one_within_a_factor(name, cov):
    points = points_of(name, 1500, 2)
    chosen = plan(points, cov, 1e-4)
    A = h2gpu.build(points, cov, leaf_size=chosen.leaf_size, eta=chosen.eta, order=chosen.orders)
    measured = difference(cov(points), dense_of(A))
    assert measured / 3 < chosen.interpolation_error < 3 * measured


def test_planned_orders_differ_and_make_a_smaller_matrix_before_compression():
    points, cov = points_of("uniform", 8000, 2), Exponential(1.0, 0.1)
    chosen = plan(points, cov, 1e-6)
    alike = plan(points, cov, 1e-6, leaf_size=chosen.leaf_size, eta=chosen.eta, order=chosen.order)
    assert min(chosen.orders) < chosen.order
    assert chosen.bytes_before < alike.bytes_before


def test_rectangular_matrices_take_the_orders_of_the_deeper_tree():
    points, cols, cov = points_of("uniform", 1500, 2), points_of("uniform", 200, 2, seed=1), Exponential(1.0, 0.5)
    chosen = plan(points, cov, 1e-5, col_points=cols)
    A = h2gpu.build(points, cov, col_points=cols, leaf_size=chosen.leaf_size, eta=chosen.eta, order=chosen.orders)
    assert len(chosen.orders) == A.row_basis.tree.levels > A.col_basis.tree.levels
    assert difference(cov(points, cols), dense_of(A)) <= 1e-5


@pytest.mark.parametrize("order", [(3, 3), (), (3, 0, 3, 3, 3, 3, 3, 3), (3.5,) * 12, ((3,) * 8,)])
def test_bad_orders_are_refused(order):
    with pytest.raises(ValueError, match=r"order: expected an integer from 1 to 1000, got .* levels of the tree"):
        h2gpu.build(points_of("uniform", 500, 2), Exponential(), leaf_size=8, order=order)


def test_a_tree_with_fewer_levels_than_the_other_interpolates_as_well():
    """Row leaves of level 2 meet column clusters of level 3: nothing of level 2 was sampled."""
    rng, cov = np.random.default_rng(4), Matern(1.3, 0.15, 1.5)
    points, cols = rng.random((140, 2)), rng.random((300, 2))
    A = h2gpu.covariance_matrix(points, cov, 2e-7, col_points=cols)
    assert np.linalg.norm(A.to_dense() - cov(points, cols)) < 2e-7 * np.linalg.norm(cov(points, cols))
