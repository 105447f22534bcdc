"""Building and compressing by ranks gives the serial matrix to rounding, and keeps the promise."""

from functools import cache

import numpy as np
import pytest
from threads import all_of, on_ranks

import h2gpu
from h2gpu import batched, distributed
from h2gpu.clustering import Admissibility
from h2gpu.covariance.sites import Sites
from h2gpu.distributed import truncation
from h2gpu.distributed.assembly import blocks_of, sites_of_shares, sorted_sides
from h2gpu.distributed.compression import built_and_compressed
from h2gpu.distributed.planning import planned
from h2gpu.distributed.truncation import ranks_of_few, shared_ranks

COV = h2gpu.covariance.Exponential(length_scale=0.2) + h2gpu.covariance.Nugget(0.1)


def square(rng):
    return {"points": rng.random((900, 2)), "leaf_size": 32, "order": 5, "eta": 1.5}


def line(rng):
    """Farfield far above the cuts."""
    return {"points": rng.random((900, 1)), "leaf_size": 16, "order": 5, "eta": 1.0}


def own_points(rng):
    """Clusters above the cut that interpolate at their own points."""
    return {"points": rng.random((500, 1)), "leaf_size": 8, "order": 40, "eta": 1.0}


def leaves_deny(rng):
    """Clusters that would interpolate at their own points if their leaves did, of which other ranks do not know."""
    return {"points": rng.random((500, 1)), "leaf_size": 8, "order": (500, 250, 125, 63, 32, 16, 4), "eta": 1.0}


def heaps(rng):
    points = np.concatenate([rng.random((300, 2)) * 0.01, rng.random((150, 2)), np.zeros((30, 2))])
    return {"points": points, "leaf_size": 8, "order": 3, "eta": 2.0, "split": "mean"}


def rectangular(rng):
    return {**square(rng), "leaf_size": 16, "order": 4, "col_points": rng.random((300, 2)) ** 3}


@cache
def serial(kind, rtol, method="weighted"):
    """What is asked for, the compressed matrix of it by one process, and the one before."""
    given = kind(np.random.default_rng(0))
    A = h2gpu.build(cov=COV, **given)
    return given, h2gpu.compress(A, rtol, method=method, storage="full"), A


def compressed(comm, given, rtol, method="weighted"):
    """The same by ranks, of shares of the points."""
    sites, leaf, split = Sites.of(given["points"], COV, given.get("col_points")), given["leaf_size"], given.get("split")
    sides = [sites.points] if sites.symmetric else [sites.points, sites.col_points]
    shares = [np.array_split(side, comm.size)[comm.rank] for side in sides]
    blocks, points = blocks_of(comm, shares, leaf, Admissibility(given["eta"]), split or "median")
    options = {"storage": "full", "once": comm.size % 2 == 1, "method": method}
    return built_and_compressed(comm, blocks, points, sites.cov, given["order"], rtol, **options)


@pytest.mark.parametrize(("ranks", "few"), [(1, 0), (3, 0), (3, 1 << 10), (4, 8)])
@pytest.mark.parametrize("kind", [square, line, own_points, leaves_deny, heaps, rectangular])
def test_the_same_matrix_as_the_serial_one(kind, ranks, few, monkeypatch):
    monkeypatch.setattr(truncation, "FEW_CLUSTERS", few)  # more of them: by sums
    rtol = 1e-4
    given, A, _ = serial(kind, rtol)
    x = np.random.default_rng(1).standard_normal((A.shape[1], 2))
    y = A @ x

    def work(comm):
        B = compressed(comm, given, rtol)
        return B.gather(B @ B.scatter(x)), distributed.gathered_matrix(B)

    results = all_of(ranks, work)
    for found, _ in results:
        assert np.abs(found - y).max() < 1e-13 * np.abs(y).max()
    whole = results[0][1]
    assert all(matrix is None for _, matrix in results[1:])
    assert np.array_equal(whole.row_basis.ranks, A.row_basis.ranks)
    assert np.array_equal(whole.col_basis.ranks, A.col_basis.ranks)
    assert A.relative_error(whole) < 1e-13 and whole.memory == A.memory


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [square, line, own_points, leaves_deny, heaps, rectangular])
def test_the_basis_method_and_its_error_are_the_serial_ones(kind, ranks):
    """At an rtol that four of these miss at first, so that bases are cut again with a smaller tolerance."""
    rtol, told = 0.3, []
    given, B, A = serial(kind, rtol, "basis")

    def work(comm):
        total = comm.sum

        def listening(values, name):
            found = total(values, name)
            if comm.rank == 0 and name == "error of the basis":
                told.append(found)
            return found

        comm.sum = listening
        return distributed.gathered_matrix(compressed(comm, given, rtol, "basis"))

    found = all_of(ranks, work)[0]
    assert np.array_equal(found.row_basis.ranks, B.row_basis.ranks)
    assert np.array_equal(found.col_basis.ranks, B.col_basis.ranks)
    assert B.relative_error(found) < 1e-13 and found.memory == B.memory
    assert len(told) == (1 if kind in (square, rectangular) else 2)
    norm, error = told[-1]
    assert norm**0.5 == pytest.approx(np.linalg.norm(A.to_dense()), rel=1e-13)
    assert (error / norm) ** 0.5 == pytest.approx(A.relative_error(B), rel=1e-10, abs=1e-14)
    assert B.row_basis.ranks.sum() < A.row_basis.ranks.sum() or kind is line  # where there is nothing to be cut


@pytest.mark.parametrize("once", [False, True])
def test_points_by_ranks_to_a_matrix_within_rtol(tmp_path, once):
    """Unequal and empty shares; parts in float32; saved and loaded as a serial matrix."""
    rng, rtol = np.random.default_rng(2), 1e-4
    points, path = rng.random((1200, 2)), tmp_path / "gathered.h5"
    shares = np.split(points, [350, 350, 1000])
    alone = h2gpu.covariance_matrix(points, COV, rtol)

    def work(comm):
        B = distributed.covariance_matrix(shares[comm.rank], COV, rtol, comm=comm, once=once)
        whole = distributed.gathered_matrix(B)
        if comm.rank == 0:
            h2gpu.save(whole, path)
        return B.gather(B @ B.scatter(points[:, 0])), B.memory

    found = all_of(4, work)
    B = h2gpu.load(path)
    assert h2gpu.sampled_error(B, points, COV, random_state=1) < rtol
    assert np.abs(B @ points[:, 0] - found[0][0]).max() < 1e-12 * np.abs(found[0][0]).max()
    assert np.array_equal(B.row_basis.tree.permutation, alone.row_basis.tree.permutation)
    assert B.nbytes == pytest.approx(alone.nbytes, rel=0.05)
    assert B.nearfield.narrow.nbytes > 0


@pytest.mark.parametrize("kind", [square, rectangular])
def test_the_plan_of_the_first_rank_is_that_of_one_process(kind):
    """Of points that it does not have."""
    given = kind(np.random.default_rng(0))
    points, others = given["points"], given.get("col_points")
    plan = h2gpu.plan(points, COV, 1e-5, col_points=others)

    def work(comm):
        own = (None if x is None else np.array_split(x, comm.size)[comm.rank] for x in (points, others))
        sites = sites_of_shares(comm, next(own), COV, next(own))
        sides = sorted_sides(comm, sites, 16)
        return next(planned(comm, sites, sides, 1e-5, finest=16))

    assert [str(found) for found in all_of(3, work)] == [str(plan)] * 3
    assert all(vars(found) == vars(plan) for found in all_of(2, work))


def test_blocks_are_the_serial_ones_where_the_covariance_has_a_kink():
    """At the distance at which a spherical covariance ends."""
    points, cov, x = (
        np.random.default_rng(4).random((600, 1)),
        h2gpu.covariance.Spherical(length_scale=0.3),
        np.ones(600),
    )
    y = h2gpu.covariance_matrix(points, cov, 1e-6, storage="full") @ x

    def work(comm):
        share = np.array_split(points, comm.size)[comm.rank]
        B = distributed.covariance_matrix(share, cov, 1e-6, comm=comm, storage="full")
        return B.gather(B @ B.scatter(x))

    assert np.abs(all_of(2, work)[0] - y).max() < 1e-13 * np.abs(y).max()


def test_bad_input_on_one_rank_is_an_error_of_all():
    def work(comm, share=None, **rest):
        share = np.random.default_rng(comm.rank).random((50, 2))
        if comm.rank == 1:
            share[3] = np.nan
        return distributed.covariance_matrix(share, COV, 1e-3, comm=comm)

    for error in on_ranks(3, work):
        assert isinstance(error, ValueError) and "points" in str(error) and "rank" in str(error)
    for error in on_ranks(2, lambda comm: distributed.covariance_matrix(np.ones((9, 1 + comm.rank)), COV, comm=comm)):
        assert isinstance(error, ValueError) and "expected shares (points, dim)" in str(error)
    for error in on_ranks(2, lambda comm: distributed.covariance_matrix(np.ones((9, 2)), COV, 2.0, comm=comm)):
        assert isinstance(error, ValueError) and "rtol: expected a number" in str(error)


@pytest.mark.parametrize("allowance", [0.0, 1e-3, 0.5, 3.0, 1e9])
@pytest.mark.parametrize("few", [-1, 60, 1 << 14, None])
def test_ranks_that_share_a_budget_by_sums(allowance, few, monkeypatch):
    rng = np.random.default_rng(3)
    sigma = -np.sort(-(rng.random((40, 6)) ** 5), axis=1)
    sigma[5:9] = sigma[4]  # equals
    sigma[20:30, 4:] = 0
    serial = batched.shared_ranks(sigma, allowance)
    monkeypatch.setattr(truncation, "FEW", few)  # -1: by sums alone
    choose = ranks_of_few if few is None else shared_ranks
    parts = all_of(3, lambda comm: choose(comm, np.split(sigma, [7, 7])[comm.rank], allowance + 0.75, 0.25))
    assert np.array_equal(np.concatenate([ranks for ranks, _ in parts]), serial)
    discarded = 0.75 + batched.discarded(sigma, serial)
    assert np.allclose([spent for _, spent in parts], discarded, rtol=1e-12)


def test_a_budget_that_sums_miss_by_one_rounding_is_not_overspent(monkeypatch):
    """What begins alike is summed again, digit by digit, in another order."""
    monkeypatch.setattr(truncation, "FEW", -1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        sigma = -np.sort(-np.sqrt(rng.uniform(1, 1.9, (200, 30)) * 10.0 ** -rng.integers(0, 3, (200, 1))), axis=1)
        squares = (sigma**2).ravel()
        exponents = squares.view(np.int64) >> 52
        sums = np.cumsum(np.bincount(exponents, weights=squares))
        allowance = np.nextafter(sums[np.unique(exponents)[-2]], 0)  # all but the largest do not fit, by one rounding
        ((ranks, spent),) = all_of(1, lambda comm, given=(sigma, allowance): shared_ranks(comm, *given))
        assert batched.discarded(sigma, ranks) <= allowance * (1 + 1e-12)
        assert spent == pytest.approx(batched.discarded(sigma, ranks), rel=1e-12)


@pytest.mark.parametrize("choose", [ranks_of_few, shared_ranks])
def test_values_that_are_not_finite_end_all_ranks(choose):
    for bad in (np.nan, np.inf):
        sigma = np.full((4, 2), 0.5)

        def work(comm, sigma=sigma, bad=bad):
            return choose(comm, np.where(comm.rank == 1, bad, sigma), 1.0)

        assert all(isinstance(error, np.linalg.LinAlgError) for error in on_ranks(3, work))
