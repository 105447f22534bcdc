"""One accuracy knob: the compressed matrix is within rtol of the exact covariance, or is refused."""

import logging
import re
import weakref
from dataclasses import replace

import numpy as np
import pytest
from reference import dense_of, difference, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.batched.device import threads
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, from_function, on_sphere
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix import assembly
from h2gpu.h2matrix.assembly import assemble, plans
from h2gpu.h2matrix.planning import candidates
from h2gpu.h2matrix.planning.planner import LEAF_SIZES, plan
from h2gpu.progress import watched_by

COVARIANCES = [
    Exponential(1.0, 0.1),
    Matern(1.0, 0.3, 1.5) + Nugget(0.2),
    Exponential(2.0, (0.2, 0.1)),
    Gaussian(1.0, 0.2),
]
RTOLS = {1: [1e-2, 1e-5, 1e-8], 2: [1e-3, 1e-8], 3: [1e-3, 1e-5]}
CASES = [
    (dim, rtol, cov, ("uniform", "clustered")[i % 2])
    for dim, rtols in RTOLS.items()
    for rtol in rtols
    for i, cov in enumerate(COVARIANCES)
    if cov.dimension in (None, dim)
]


def assert_accurate(B, exact, rtol):
    """The promise ‖B − exact‖_F ≤ rtol ‖exact‖_F, against the dense covariance."""
    assert difference(exact, to_host(B.to_dense())) <= rtol


@pytest.mark.parametrize(("dim", "rtol", "cov", "name"), CASES, ids=str)
def test_the_error_against_the_exact_covariance_is_at_most_rtol(dim, rtol, cov, name):
    points = points_of(name, 600, dim)
    B, exact = h2gpu.covariance_matrix(points, cov, rtol), cov(points)
    assert_accurate(B, exact, rtol)


@pytest.mark.parametrize(
    ("dim", "rtol", "cov"), [(1, 1e-2, COVARIANCES[3]), (2, 1e-8, COVARIANCES[2]), (3, 1e-5, COVARIANCES[1])]
)
def test_the_error_sampled_on_all_rows_is_the_error(dim, rtol, cov):
    points = points_of("clustered", 600, dim)
    B, exact = h2gpu.covariance_matrix(points, cov, rtol), cov(points)
    assert h2gpu.sampled_error(B, points, cov, rows=600) == pytest.approx(difference(exact, dense_of(B)), rel=1e-3)


@pytest.mark.parametrize("name", ["duplicates", "outlier", "collinear", "grid", "all_equal"])
def test_it_holds_for_degenerate_points(name):
    points, cov = points_of(name, 700, 2), Exponential(1.0, 0.3)
    assert_accurate(h2gpu.covariance_matrix(points, cov, 1e-5), cov(points), 1e-5)


def test_it_holds_for_strong_anisotropy():
    points, cov = points_of("uniform", 600, 2), Exponential(1.0, (1.0, 0.1))
    assert_accurate(h2gpu.covariance_matrix(points, cov, 1e-6), cov(points), 1e-6)


def test_it_holds_for_matern_of_any_smoothness():
    points, cov = points_of("uniform", 400, 2), Matern(1.0, 0.3, 0.8)
    assert_accurate(h2gpu.covariance_matrix(points, cov, 1e-3), cov(points), 1e-3)


def test_it_holds_on_the_sphere():
    rng = np.random.default_rng(0)
    lonlat = np.stack([rng.uniform(-180, 180, 1000), np.rad2deg(np.arcsin(rng.uniform(-1, 1, 1000)))], axis=1)
    cov = on_sphere(Exponential(1.0, 2000.0)) + Nugget(0.1)
    assert_accurate(h2gpu.covariance_matrix(lonlat, cov, 1e-4), cov(lonlat), 1e-4)


@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_it_holds_for_rectangular_matrices(rtol, xp):
    points, cols, cov = points_of("uniform", 900, 2), points_of("clustered", 500, 2, seed=1), Exponential(1.0, 0.3)
    B = h2gpu.covariance_matrix(xp.asarray(points), cov, rtol, col_points=xp.asarray(cols))
    assert B.shape == (900, 500) and isinstance(B.to_dense(), xp.ndarray)
    assert_accurate(B, cov(points, cols), rtol)
    error = h2gpu.sampled_error(B, xp.asarray(points), cov, rows=900, col_points=xp.asarray(cols))
    assert error == pytest.approx(difference(cov(points, cols), dense_of(B)), rel=1e-3)


def test_it_holds_in_float32():
    points, cov = points_of("uniform", 1000, 2), Exponential(1.0, 0.3)
    B = h2gpu.covariance_matrix(points.astype(np.float32), cov, 1e-4)
    assert B.dtype == np.float32
    assert_accurate(B, cov(points), 1e-4)


@pytest.mark.parametrize("n", [1, 2, 17, 65])
def test_few_points_are_as_good_as_many(n):
    points, cov = points_of("uniform", n, 2), Exponential(1.0, 0.3) + Nugget(0.1)
    assert_accurate(h2gpu.covariance_matrix(points, cov, 1e-6), cov(points), 1e-6)


@pytest.mark.parametrize(("n", "length"), [(1500, 0.05), (1500, 0.2), (1500, 0.3), (5000, 0.3)])
def test_sites_may_lie_further_apart_than_the_field_remembers(n, length):
    """The far field is below rtol for the smallest order already."""
    points, cov = 100 * points_of("uniform", n, 2), Exponential(1.0, length)
    A = h2gpu.covariance_matrix(points, cov, 1e-6)
    assert h2gpu.sampled_error(A, points, cov, rows=100) <= 1e-6


def test_a_matrix_that_underflows_is_zero():
    points, cov = points_of("uniform", 300, 2), Gaussian(1.0, 0.01)
    B = h2gpu.covariance_matrix(points, cov, 1e-6, col_points=points + 100)
    assert not B.to_dense().any() and h2gpu.sampled_error(B, points, cov, col_points=points + 100) == 0


def test_less_accuracy_takes_less_memory():
    points, cov = points_of("uniform", 2000, 2), Exponential(1.0, 0.1)
    sizes = [h2gpu.covariance_matrix(points, cov, rtol).nbytes for rtol in (1e-2, 1e-4, 1e-6)]
    assert sizes == sorted(sizes) and sizes[0] < 0.6 * sizes[-1] < 0.6 * 8 * 2000**2


def test_the_result_is_the_same_every_time_and_on_record(caplog):
    points, cov = points_of("uniform", 600, 2), Exponential(1.0, 0.1)
    with caplog.at_level(logging.INFO, "h2gpu"):
        B = h2gpu.covariance_matrix(points, cov, 1e-4)
    assert "leaf size" in caplog.text and "order" in caplog.text and "sampled rows" in caplog.text
    again = h2gpu.covariance_matrix(points, cov, 1e-4)
    np.testing.assert_array_equal(B.to_dense(), again.to_dense())


# Memory


def test_uncompressed_bases_are_gone_when_couplings_are_projected(monkeypatch, xp):
    """No call on the way holds them: they were 158 MB of 885 at the peak of 2^17 sites."""
    made, alive, build = [], [], assembly.uncompressed

    def remembered(*arguments, **named):
        A = build(*arguments, **named)
        made.append(weakref.ref(A.row_basis))
        return A

    def look(name, done, total):
        if name == "project" and done == 0:
            alive.append(made[-1]() is not None)

    monkeypatch.setattr(assembly, "uncompressed", remembered)
    with watched_by(look):
        h2gpu.covariance_matrix(xp.asarray(points_of("uniform", 1000, 2)), Exponential(1.0, 0.2), 1e-4)
    assert alive == [False]


@pytest.mark.parametrize("cov", [Exponential(1.0, 0.2), Exponential(1.0, 0.2) + Nugget(0.3)])
def test_the_error_is_that_of_all_pieces_of_rows(cov, monkeypatch):
    """However few of them a cache holds."""
    points = points_of("uniform", 600, 2)
    A = h2gpu.build(points, cov, leaf_size=32, order=3)
    exact = difference(cov(points), A.to_dense())
    monkeypatch.setattr(assembly, "ROWS_OF_A_PIECE", 100)
    for entries in (1, 5000):
        monkeypatch.setattr(threads, "CACHED", entries)
        assert h2gpu.sampled_error(A, points, cov, rows=600) == pytest.approx(exact, rel=1e-10)


# The plan


@pytest.mark.parametrize("nearfield", ["stored", "computed"])
@pytest.mark.parametrize("storage", ["auto", "full"])
def test_a_plan_foretells_memory(storage, nearfield):
    """Bytes before and after compression are near the true ones."""
    points, cov = points_of("uniform", 4000, 2), Exponential(1.0, 0.1)
    kept = {"storage": storage, "nearfield": nearfield}
    chosen = plan(points, cov, 1e-5, leaf_size=64 if nearfield == "computed" else None, **kept)
    A, B = assemble(Sites.of(points, cov), chosen, **kept)
    stored = A.nbytes - A.nearfield.nbytes + A.nearfield.sizes.sum() * 8
    assert chosen.leaf_size in LEAF_SIZES and chosen.rtol < 1e-5 and chosen.interpolation_error < 1e-5
    assert chosen.bytes_before == pytest.approx(stored, rel=0.1)
    assert chosen.bytes_after == pytest.approx(B.nbytes, rel=0.3)
    assert chosen.bytes_peak > chosen.bytes_after
    assert f"leaf size {chosen.leaf_size}" in str(chosen)


def test_fixed_parameters_are_kept():
    points, cov = points_of("uniform", 1000, 2), Exponential(1.0, 0.1)
    chosen = plan(points, cov, 1e-3, leaf_size=40, eta=0.8, order=7, split="mean")
    assert (chosen.leaf_size, chosen.eta, chosen.order, chosen.split) == (40, 0.8, 7, "mean")


@pytest.mark.parametrize("eta", [1.0, 2.0])
@pytest.mark.parametrize("name", ["uniform", "clustered", "grid"])
def test_the_estimated_interpolation_error_is_the_measured_one_within_a_factor(name, eta):
    points, cov = points_of(name, 900, 2), Exponential(1.0, 0.2)
    for order in (3, 5):
        chosen = plan(points, cov, 1e-3, leaf_size=32, eta=eta, order=order)
        A = h2gpu.build(points, cov, leaf_size=32, eta=eta, order=order)
        measured = difference(cov(points), A.to_dense())
        assert measured / 3 < chosen.interpolation_error < 3 * measured


def test_the_estimated_interpolation_error_of_rectangular_matrices():
    points, cols, cov = points_of("uniform", 1500, 2), points_of("clustered", 700, 2, seed=1), Exponential(1.0, 0.2)
    chosen = plan(points, cov, 1e-3, leaf_size=32, eta=1.0, order=4, col_points=cols)
    A = h2gpu.build(points, cov, leaf_size=32, order=4, col_points=cols)
    measured = difference(cov(points, cols), A.to_dense())
    assert measured / 3 < chosen.interpolation_error < 3 * measured
    assert chosen.bytes_before == pytest.approx(A.nbytes, rel=0.15)


def test_a_plan_with_trees_gives_the_matrix_of_one_without():
    """On the same clusters; within leaves the points may stand in another order."""
    points, cols, cov = points_of("uniform", 900, 2), points_of("uniform", 500, 2, seed=1), Exponential(1.0, 0.3)
    for col_points in (None, cols):
        sites = Sites.of(points, cov, col_points)
        kept = next(plans(sites, 1e-4))
        bare = plan(points, cov, 1e-4, col_points=col_points)
        assert kept == bare and kept.trees and not bare.trees
        first, second = (assemble(sites, chosen)[1] for chosen in (kept, bare))
        assert difference(dense_of(first), dense_of(second)) < 1e-4
        assert first.nbytes == pytest.approx(second.nbytes, rel=1e-2)


def test_the_device_plans_as_the_host_does(xp):
    """The same clusters and admissibility: which are best depends on what they cost a device."""
    points, cov, given = points_of("clustered", 3000, 2), Matern(1.0, 0.2, 1.5), {"leaf_size": 16, "eta": 1.5}
    there, here = plan(xp.asarray(points), cov, 1e-5, **given), plan(points, cov, 1e-5, **given)
    assert there.interpolation_error == pytest.approx(here.interpolation_error, rel=1e-6)
    own = {"bytes_peak": 0, "interpolation_error": 0.0}  # rooms differ, and roundings
    assert replace(there, **own) == replace(here, **own)


def test_a_covariance_that_is_nothing_in_the_farfield():
    """A short Gaussian in three dimensions: the few blocks that are not zero are hardly ever sampled."""
    points, cov = np.random.default_rng(0).random((1800, 3)), Gaussian(length_scale=0.1)
    A = h2gpu.covariance_matrix(points, cov, 1e-4)
    assert np.linalg.norm(A.to_dense() - cov(points)) < 1.5e-4 * np.linalg.norm(cov(points))


# What cannot be reached, and bad arguments


def spherical(x, y):
    """The spherical covariance of range ½: a kink at the range, far from the diagonal."""
    h = np.minimum(2 * np.linalg.norm(x - y, axis=-1), 1)
    return 1 - 1.5 * h + 0.5 * h**3


def test_what_interpolation_cannot_reach_is_refused():
    """A kink far from the diagonal makes the error fall only as a power of the order."""
    points, cov = points_of("uniform", 1000, 1), from_function(spherical)
    with pytest.raises(ValueError, match=r"rtol: 1e-08 cannot be reached .* in 1 dimensions and float64: the best"):
        h2gpu.covariance_matrix(points, cov, 1e-8)
    assert_accurate(h2gpu.covariance_matrix(points, cov, 1e-2), cov(points), 1e-2)


def test_a_check_that_keeps_failing_is_refused_after_larger_orders(monkeypatch, caplog):
    monkeypatch.setattr(assembly, "error_on_rows", lambda *args, **kwargs: 0.02)
    with (
        caplog.at_level(logging.INFO, "h2gpu"),
        pytest.raises(ValueError, match=r"0.01 was not reached: .* 0.02"),
    ):
        h2gpu.covariance_matrix(points_of("uniform", 1000, 2), Exponential(1.0, 0.1), 1e-2)
    found = re.findall(r"order (\d+)(?: to (\d+))?", caplog.text)
    largest = [int(high or low) for low, high in found]
    assert len(largest) == 1 + len(assembly.MORE_POINTS) and min(np.diff(largest)) >= 1


@pytest.mark.parametrize("cols", [None, 900])
def test_a_miss_is_mended_by_the_orders_that_the_error_asks_for(monkeypatch, cols):
    """Where estimates fall short eight times, a second matrix is accurate, on the clusters and blocks of the first."""
    points, cov, blocks = points_of("uniform", 1500, 2), Exponential(1.0, 0.3), []
    cols = None if cols is None else points_of("uniform", cols, 2, seed=1)
    estimated, made = candidates.Family.squared_errors, assembly.uncompressed
    monkeypatch.setattr(candidates.Family, "squared_errors", lambda self, order: estimated(self, order) / 8**2)

    def noting(*args, **kwargs):
        blocks.append(made(*args, **kwargs))
        return blocks[-1]

    monkeypatch.setattr(assembly, "uncompressed", noting)
    A = h2gpu.covariance_matrix(points, cov, 1e-6, col_points=cols)
    assert difference(cov(points, points if cols is None else cols), dense_of(A)) <= 1e-6
    first, second = blocks
    assert second.row_basis.tree is first.row_basis.tree
    assert second.row_basis.ranks.sum() > first.row_basis.ranks.sum()
    for name in ("rows", "columns"):
        np.testing.assert_array_equal(getattr(second.couplings, name), getattr(first.couplings, name))


def test_the_least_rtol_of_a_precision_is_accepted_and_less_is_not():
    """8 ε: reached where clusters are small, and never another number than the caller's in the message."""
    for dtype, least in ((np.float64, "1.8e-15"), (np.float32, "9.5e-07")):
        points, rtol = points_of("uniform", 200, 2, dtype=dtype), 8.5 * float(np.finfo(dtype).eps)
        assert h2gpu.covariance_matrix(points, Exponential(), rtol).dtype == dtype
        with pytest.raises(ValueError, match=f"rtol: expected a number from {least} .* got {rtol / 2!r}"):
            h2gpu.covariance_matrix(points, Exponential(), rtol / 2)


POINTS, COV = points_of("uniform", 30, 2), Exponential()


@pytest.mark.parametrize(
    ("points", "cov", "rtol", "arguments", "message"),
    [
        (np.full((3, 2), np.nan), COV, 1e-3, {}, "points: expected finite"),
        (np.zeros(3), COV, 1e-3, {}, "points: expected shape"),
        (POINTS, "exponential", 1e-3, {}, "cov: expected a covariance"),
        (POINTS, Exponential(1e155), 1e-3, {}, r"cov: expected a variance from 1e-100 to 1e\+100, got 1e\+155"),
        (POINTS, Exponential(1e-160), 1e-3, {}, "cov: expected a variance from 1e-100"),
        (POINTS, COV, 0, {}, "rtol: expected a number"),
        (POINTS, COV, 1, {}, "rtol: expected a number"),
        (POINTS, COV, "1e-3", {}, "rtol: expected a number"),
        (POINTS, COV, 1e-3, {"col_points": np.zeros((3, 3))}, "col_points: expected 2 coordinates"),
        (POINTS, COV, 1e-3, {"col_points": POINTS.astype(np.float32)}, "col_points: expected"),
    ],
)
def test_bad_arguments_give_one_clear_error(points, cov, rtol, arguments, message):
    with pytest.raises(ValueError, match=message):
        h2gpu.covariance_matrix(points, cov, rtol, **arguments)


@pytest.mark.parametrize("shape", [(30, 200), (200, 30)])
def test_rows_are_checked_by_vectors_of_which_the_longer_side_tells_how_many(shape, monkeypatch):
    told, points, cols = [], *(points_of("uniform", size, 2, seed=size) for size in shape)
    monkeypatch.setattr(assembly, "together", lambda n, xp: told.append(n) or 7)
    B = h2gpu.covariance_matrix(points, COV, 1e-6, col_points=cols)
    told.clear()
    error = h2gpu.sampled_error(B, points, COV, rows=30, col_points=cols, random_state=0)
    assert told == [200] and error <= 1e-6


def test_sampled_error_checks_what_it_is_given():
    B = h2gpu.build(POINTS, COV)
    for rows in (0, -1, 2.5, None):
        with pytest.raises(ValueError, match="rows: expected a positive integer"):
            h2gpu.sampled_error(B, POINTS, COV, rows=rows)
    with pytest.raises(ValueError, match=r"sampled_error: expected a matrix of shape \(29, 29\), got \(30, 30\)"):
        h2gpu.sampled_error(B, POINTS[1:], COV)
    assert h2gpu.sampled_error(B, POINTS, COV, rows=1000) < 1e-15
    assert h2gpu.sampled_error(B, POINTS, Exponential(2.0), rows=7, random_state=1) == pytest.approx(0.5)
