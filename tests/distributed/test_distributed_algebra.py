"""Sums and recompressed matrices by ranks are the serial ones to rounding."""

from functools import cache

import numpy as np
import pytest
from threads import all_of, on_ranks

import h2gpu
from h2gpu import distributed
from h2gpu.covariance import Exponential, Matern, Nugget

RNG = np.random.default_rng(0)
PLANE, LINE = RNG.random((900, 2)), RNG.random((700, 1))
HEAPS = np.concatenate([RNG.random((300, 2)) * 0.01, RNG.random((150, 2)), np.zeros((30, 2))])
ONE, OTHER = Exponential(length_scale=0.2) + Nugget(0.1), Matern(2.0, 0.3, 1.5)


@cache
def pair(name):
    """Two matrices on the same trees, one with parts in float32."""
    points, structure = {
        "plane": (PLANE, {"leaf_size": 32, "order": 5, "eta": 1.5}),
        "line": (LINE, {"leaf_size": 16, "order": 5}),
        "heaps": (HEAPS, {"leaf_size": 8, "order": 3, "eta": 2.0, "split": "mean"}),
    }[name]
    A, B = (h2gpu.build(points, cov, **structure) for cov in (ONE, OTHER))
    return h2gpu.compress(A, 1e-4), h2gpu.compress(B, 1e-5, storage="full")


@cache
def serial(name):
    """A sum of the pair, exact and recompressed."""
    total = h2gpu.add(*pair(name), 2.0, -0.5)
    return total, h2gpu.compress(total, 1e-3, storage="full")


@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("name", ["plane", "line", "heaps"])
def test_a_sum_and_what_is_left_of_it_are_the_serial_ones(name, ranks):
    (A, B), (total, small) = pair(name), serial(name)

    def work(comm):
        C = distributed.add(*(distributed.distribute(M, comm) for M in (A, B)), 2.0, -0.5)
        D = distributed.compress(C, 1e-3, storage="full")
        return distributed.gathered_matrix(C), distributed.gathered_matrix(D), distributed.compress(C, 1e-3).nbytes

    whole, smaller, _ = all_of(ranks, work)[0]
    x = np.ones(A.shape[0])
    assert np.abs(whole @ x - total @ x).max() < 1e-14 * np.abs(total @ x).max()
    assert total.relative_error(whole) < 1e-14
    assert np.array_equal(smaller.row_basis.ranks, small.row_basis.ranks)
    assert small.relative_error(smaller) < 1e-12 and total.relative_error(smaller) < 1e-3
    assert smaller.nbytes == small.nbytes


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", ["plane", "line", "heaps"])
def test_what_the_basis_method_leaves_of_a_sum_is_the_serial_one(name, ranks):
    """Of a matrix with couplings in float32, too."""
    (A, B), (total, _) = pair(name), serial(name)
    pairs = [(total, h2gpu.compress(total, 0.1, method="basis")), (A, h2gpu.compress(A, 0.3, method="basis"))]

    def work(comm):
        C = distributed.add(*(distributed.distribute(M, comm) for M in (A, B)), 2.0, -0.5)
        found = (
            distributed.compress(C, 0.1, method="basis"),
            distributed.compress(distributed.distribute(A, comm), 0.3, method="basis"),
        )
        return [distributed.gathered_matrix(M) for M in found]

    for found, (M, small) in zip(all_of(ranks, work)[0], pairs):
        assert np.array_equal(found.row_basis.ranks, small.row_basis.ranks)
        assert small.relative_error(found) < 1e-6 and abs(M.relative_error(found) / M.relative_error(small) - 1) < 1e-3


def test_a_basis_that_is_not_finite_ends_all_ranks():
    A = h2gpu.build(PLANE, ONE, leaf_size=32, order=5, eta=1.5)
    A.row_basis.leaf.buffer[0] = np.nan

    def work(comm):
        return distributed.compress(distributed.distribute(A, comm), 0.1, method="basis")

    assert all(isinstance(error, np.linalg.LinAlgError) for error in on_ranks(3, work))


def test_parts_in_float32_keep_the_promise():
    A, _ = pair("plane")

    def work(comm):
        return distributed.gathered_matrix(distributed.compress(distributed.distribute(A, comm), 1e-3))

    B = all_of(3, work)[0]
    assert A.relative_error(B) < 1e-3 and B.nbytes < A.nbytes and B.nearfield.narrow.nbytes > 0


def test_what_is_built_by_ranks_can_be_compressed_again():
    """Where each knows its own subtrees alone."""

    def work(comm):
        share = np.array_split(PLANE, comm.size)[comm.rank]
        A = distributed.covariance_matrix(share, ONE, 1e-6, comm=comm, storage="full")
        return distributed.gathered_matrix(A), distributed.gathered_matrix(
            distributed.compress(A, 1e-3, storage="full")
        )

    A, B = all_of(4, work)[0]
    small = h2gpu.compress(A, 1e-3, storage="full")
    assert np.array_equal(B.row_basis.ranks, small.row_basis.ranks) and small.relative_error(B) < 1e-12


def test_sums_of_rectangular_matrices_and_of_blocks_with_one_owner():
    R = [h2gpu.build(PLANE, cov, col_points=HEAPS, leaf_size=32, order=4) for cov in (Exponential(), OTHER)]
    A, B = pair("plane")

    def work(comm):
        found = []
        for matrices, once in ((R, False), ((A, B), True)):
            C = distributed.add(*(distributed.distribute(M, comm, once=once) for M in matrices), 1.0, 3.0)
            found.append(C.gather(C @ C.scatter(np.ones(C.shape[1]))))
        return found

    for found, (M, N) in zip(all_of(3, work)[0], (R, (A, B))):
        y = M @ np.ones(M.shape[1]) + 3 * (N @ np.ones(M.shape[1]))
        assert np.abs(found - y).max() < 1e-13 * np.abs(y).max()


def test_what_does_not_fit_is_refused_on_all_ranks():
    A, _ = pair("plane")
    small = h2gpu.build(LINE, ONE, leaf_size=16, order=5)
    R = h2gpu.build(PLANE, Exponential(), col_points=HEAPS, leaf_size=32, order=4)

    def other(comm):
        return distributed.add(distributed.distribute(A, comm), distributed.distribute(small, comm))

    cases = {
        "add: expected matrices on the same trees": other,
        "factor of a matrix": lambda comm: distributed.add(*[distributed.distribute(A, comm)] * 2, np.inf),
        "compress: expected a symmetric matrix": lambda comm: distributed.compress(distributed.distribute(R, comm)),
        "at both owners": lambda comm: distributed.compress(distributed.distribute(A, comm, once=True)),
        "rtol: expected": lambda comm: distributed.compress(distributed.distribute(A, comm), 2.0),
        "method: expected": lambda comm: distributed.compress(distributed.distribute(A, comm), method="best"),
    }
    for text, work in cases.items():
        for error in on_ranks(2, work):
            assert isinstance(error, ValueError) and text in str(error)
