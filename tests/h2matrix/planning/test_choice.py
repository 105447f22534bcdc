"""Which plan is chosen: the fastest of those that memory admits, unless it is too large for that."""

from dataclasses import replace

import numpy as np
import pytest
from reference import points_of

from h2gpu.covariance import Exponential
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.planning.candidates import Family, Plan
from h2gpu.h2matrix.planning.costs import PACES, best
from h2gpu.h2matrix.planning.planner import ETAS, LEAF_SIZES, Planner

GB = 10**9
MEASURED = {  # blocks, multiplications, MB foretold, CPU seconds; exponential, rtol 1e-7
    "uniform": [
        (8670, 6.06e9, 90.8, 2.44),
        (20300, 7.29e9, 68.4, 3.37),
        (4320, 4.03e9, 122.6, 2.07),
        (7280, 1.24e10, 80.9, 3.87),
        (3980, 1.11e10, 101.1, 3.15),
        (1520, 2.4e9, 250.7, 3.81),
        (15100, 7.29e9, 132.2, 2.78),
    ],
    "in clusters": [
        (11600, 1.5e10, 107.3, 3.83),
        (27500, 1.62e10, 77.1, 4.62),
        (4940, 1.13e10, 168.3, 3.70),
        (9780, 2.01e10, 92.2, 4.57),
        (4170, 1.68e10, 144.6, 4.40),
    ],
}


def plan_of(leaf_size, seconds, size, peak):
    return Plan(leaf_size, 1.5, 8, "median", 1e-6, 1e-7, 0, int(size), int(peak), (8,), seconds)


def test_at_2_25_sites_large_leaves_are_chosen_where_memory_admits_them():
    """Blocks a point, gigabytes and peaks as the planner foretells them on a perturbed grid at rtol 1e-6."""
    pace, points = PACES["cupy"], 2**25
    plans = []
    for leaf_size, blocks, size, peak in ((64, 0.24, 74.4, 104), (32, 0.6, 29.5, 52.8), (16, 1.03, 26.1, 59.4)):
        clusters, multiplications = 2 * points // leaf_size, 6e4 * points
        seconds = pace.seconds(20, clusters, blocks * points, multiplications, size * GB)
        plans.append(plan_of(leaf_size, seconds, size * GB, peak * GB))
    assert best(plans, pace, 141 * GB).leaf_size == 64
    assert best(plans, pace, 79 * GB).leaf_size == 32
    assert best(plans, pace, 40 * GB).leaf_size == 32  # none fits: the one that lacks least


def test_the_first_of_equal_plans_is_kept():
    plan = plan_of(64, 1.0, 2 * GB, 3 * GB)
    nearly = replace(plan, leaf_size=128, seconds=0.95)
    assert best([plan, nearly], PACES["cupy"], np.inf) is plan
    assert best([plan, replace(nearly, seconds=0.8)], PACES["cupy"], np.inf) is not plan


def test_main_memory_is_given_for_time_up_to_a_limit():
    small, large = plan_of(16, 4.0, GB, GB), plan_of(64, 1.0, 1.3 * GB, GB)
    assert best([small, large], PACES["numpy"], np.inf) is large
    assert best([small, replace(large, bytes_after=2 * GB)], PACES["numpy"], np.inf) is small


def test_larger_leaves_are_tried_where_memory_may_be_given_for_their_time():
    """Whether or not leaves of 64 are the smallest; with blocks so dear, leaves get better the larger they are."""
    planner = Planner(Sites.of(points_of("uniform", 6000, 2), Exponential(1.0, 0.1)), 1e-5)
    planner.pace = replace(PACES["numpy"], block=1.0, nearly=100.0)
    assert planner.plan().leaf_size == max(LEAF_SIZES)
    planner.pace = replace(planner.pace, nearly=1.1)
    assert planner.plan().leaf_size < 64


def test_how_much_longer_than_another_a_plan_takes_is_foretold():
    """By a quarter, of jobs on two cores that were measured, of 2^15 points and leaves of 32 to 256."""
    for jobs in MEASURED.values():
        foretold = [PACES["numpy"].seconds(1, 1, *job[:2], 1e6 * job[2]) for job in jobs]
        np.testing.assert_allclose(np.divide(foretold, foretold[0]), [job[3] / jobs[0][3] for job in jobs], rtol=0.25)


@pytest.mark.parametrize("n", [2000, 6000])
def test_a_planner_short_of_memory_takes_the_smaller_plan(n):
    sites = Sites.of(points_of("uniform", n, 2), Exponential(1.0, 0.1))
    planner = Planner(sites, 1e-5)
    planner.pace = PACES["cupy"]  # whose first choice is a fast one
    rich = planner.plan()
    planner.memory = rich.bytes_peak - 1
    poor = planner.plan()
    assert poor.bytes_peak < rich.bytes_peak


def test_orders_foretold_for_other_admissibilities_are_near_those_sampled():
    planner = Planner(Sites.of(points_of("uniform", 6000, 2), Exponential(1.0, 0.1)), 1e-6)
    families = {eta: Family(planner, eta) for eta in ETAS}
    sampled = {eta: family.plans((32,), None)[0] for eta, family in families.items()}
    for eta, family in families.items():
        foretold = family.foretold(sampled[1.5], families[1.5])
        assert abs(max(foretold.orders) - sampled[eta].order) <= 2
        assert foretold.bytes_after == pytest.approx(sampled[eta].bytes_after, rel=0.25)
    assert families[1.5].foretold(sampled[1.5], families[1.5]).orders == sampled[1.5].orders


def test_after_a_miss_orders_are_those_for_the_estimate_that_the_error_corrects():
    """Whatever the estimate lacks: twenty times as much is more than a point a direction mends."""
    planner = Planner(Sites.of(points_of("uniform", 6000, 2), Exponential(1.0, 0.1)), 1e-5)
    first, wanted = planner.plan(), planner.accuracy.interpolation
    for short in (2.0, 20.0):
        error = np.hypot(first.rtol, short * first.interpolation_error)
        second = planner.after(first, 1, error)
        assert short * second.interpolation_error <= wanted * (1 + 1e-9)
        assert min(np.subtract(second.orders, first.orders)) >= 0
        assert (second.leaf_size, second.eta) == (first.leaf_size, first.eta)
    unknown = planner.after(first, 1)
    assert np.subtract(unknown.orders, first.orders).tolist() == [1] * len(first.orders)
