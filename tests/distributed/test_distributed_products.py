"""The distributed matrix equals the serial one to rounding, for every number of ranks."""

from functools import cache

import numpy as np
import pytest
from scipy.sparse.linalg import cg, eigsh
from threads import all_of, on_ranks

import h2gpu
from h2gpu import distributed
from h2gpu.distributed.partition import LocalTree, Partition

COV = h2gpu.covariance.Exponential(length_scale=0.2)
RANKS = 1, 2, 3, 4, 7
ROUNDING = 1e-14


def square(rng):
    return h2gpu.covariance_matrix(rng.random((1500, 2)), COV, 1e-5)


def line(rng):
    """Blocks far above the cuts."""
    return h2gpu.compress(h2gpu.build(rng.random((1200, 1)), COV, leaf_size=16, order=5), 1e-4)


def heaps(rng):
    """Clustered sites and many at one place, leaves on many levels."""
    sites = np.concatenate([rng.random((450, 2)) * 0.01, rng.random((150, 2)), np.zeros((50, 2))])
    return h2gpu.compress(h2gpu.build(sites, COV, leaf_size=8, order=3, eta=2.0, split="mean"), 1e-3, storage="full")


def few(rng):
    return h2gpu.build(rng.random((20, 2)), COV, leaf_size=16, order=4)


def rectangular(rng):
    return h2gpu.compress(
        h2gpu.build(rng.random((700, 2)), COV, col_points=rng.random((300, 2)) ** 3, leaf_size=16, order=4, eta=1.5),
        1e-5,
    )


matrix = cache(lambda kind: kind(np.random.default_rng(0)))


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", [square, line, heaps, few, rectangular])
def test_products_equal_the_serial_ones(kind, ranks):
    A = matrix(kind)
    x = np.random.default_rng(1).standard_normal((A.shape[1], 3))
    y = A @ x

    def work(comm):
        B = distributed.distribute(A, comm)
        local = B @ B.scatter(x)
        assert (B @ B.scatter(x)[:, 0]).shape == (B.local_shape[0],)
        C = distributed.distribute(A, comm, once=True)
        once = C.gather(C @ C.scatter(x)), np.array([C.memory[name] for name in ("total", "off_diagonal")])
        return B.gather(local), B.T.gather(B.T @ local), B.rmatvec(local), B.T @ local, B.memory_by_rank(), once

    transposed = y.T @ A
    for found, back, rmatvec, again, memory, (once, kept) in all_of(ranks, work):
        assert relative(found, y) < ROUNDING and relative(once, y) < ROUNDING
        assert A.symmetric or kept[0] in [part["total"] for part in memory]
        assert relative(back, transposed.T) < ROUNDING
        assert np.array_equal(rmatvec, again)
        assert len(memory) == ranks and all(part["off_diagonal"] <= part["total"] for part in memory)


def test_off_diagonal_blocks_alone_are_kept_twice():
    A = matrix(square)
    memory = all_of(4, lambda comm: distributed.distribute(A, comm).memory)
    blocks = sum(part["nearfield"] + part["coupling"] for part in memory)
    off = sum(part["off_diagonal"] for part in memory)
    assert 0 < off < 0.7 * blocks
    assert blocks - off // 2 == A.memory["nearfield"] + A.memory["coupling"]
    memory = all_of(4, lambda comm: distributed.distribute(A, comm, once=True).memory)
    assert sum(part["nearfield"] + part["coupling"] for part in memory) == blocks - off // 2
    assert sum(part["off_diagonal"] for part in memory) == off // 2


def test_more_vectors_than_go_at_a_time_and_none():
    A = matrix(few)
    x = np.random.default_rng(3).standard_normal((20, 130))
    found = all_of(3, lambda comm: (lambda B: B.gather(B @ B.scatter(x)))(distributed.distribute(A, comm)))
    assert relative(found[0], A @ x) < ROUNDING
    assert all_of(2, lambda comm: (distributed.distribute(A, comm) @ np.zeros((10, 0))).shape) == [(10, 0)] * 2


def test_one_exchange_a_product_and_its_bytes():
    """Every peer sends one message: x̂ of what the other side meets, and x of its near points, nothing else."""
    A = matrix(square)

    def work(comm):
        B = distributed.distribute(A, comm)
        B @ B.scatter(np.ones(1500))
        return comm.traffic.exchanges["coefficients of far clusters and near points"], B

    for (messages, size), B in all_of(4, work):
        assert messages == len({q for halo in (B.far.halo, B.near.halo) for q in halo.receives} - {B.comm.rank}) <= 3
        assert size == 8 * (B.far.halo.size + B.near.halo.size)  # no cluster of the square is above the cut


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 16, 100])
def test_every_point_and_every_cluster_has_one_owner(ranks):
    tree = matrix(heaps).row_basis.tree
    partition = Partition.of(tree, ranks)
    assert partition.sizes.sum() == tree.n and len(partition.sizes) == ranks and (partition.sizes >= 0).all()
    owned = np.concatenate([part.clusters[part.owned] for part in (LocalTree(partition, r) for r in range(ranks))])
    assert np.array_equal(np.sort(owned), np.arange(len(tree)))
    assert not partition.above[tree.leaves].any()
    starts = tree.start[~partition.above & partition.shared]
    assert set(partition.bounds[:-1][partition.sizes > 0]) <= set(starts)


def test_shares_of_even_points_are_even_and_cuts_high():
    tree = h2gpu.ClusterTree.build(np.random.default_rng(5).random((4096, 2)), 32)
    partition = Partition.of(tree, 4)
    assert np.array_equal(partition.sizes, [1024] * 4) and partition.above.sum() == 3
    third = Partition.of(tree, 3)
    assert abs(third.sizes - 4096 / 3).max() < 0.3 * 4096 / 3 and third.above.sum() < 12


def test_what_cannot_be_distributed_is_refused():
    points = np.random.default_rng(6).random((100, 2))
    computed = h2gpu.build(points, COV, nearfield="computed")
    with pytest.raises(ValueError, match="rank 0: distribute: expected an H2Matrix with stored blocks"):
        distributed.distribute(computed, distributed.Alone())
    A = h2gpu.build(points, COV)
    B = distributed.distribute(A, distributed.Alone())
    with pytest.raises(ValueError, match=r"A @ x: expected a real numpy array of shape \(100,\)"):
        B @ np.ones(99)
    lengths = [np.ones(50), np.ones(49)]
    for error in on_ranks(2, lambda comm: distributed.distribute(A, comm) @ lengths[comm.rank]):
        assert isinstance(error, ValueError) and str(error).startswith("rank 1: A @ x: expected a real numpy array")
    with pytest.raises(ValueError, match="ranks: expected a positive integer, got 0"):
        Partition.of(computed.row_basis.tree, 0)


@pytest.mark.parametrize("ranks", [1, 3])
def test_scipy_solves_and_finds_eigenvalues_with_whole_vectors(ranks):
    A, b = matrix(few), np.random.default_rng(7).standard_normal(20)
    x, values = np.linalg.solve(A.to_dense(), b), np.linalg.eigvalsh(A.to_dense())[-2:]

    def work(comm):
        operator = distributed.linear_operator(distributed.distribute(A, comm))
        return cg(operator, b, rtol=1e-12)[0], eigsh(operator, 2, v0=np.ones(20))[0]

    for found, largest in all_of(ranks, work):
        assert relative(found, x) < 1e-8 and relative(largest, values) < 1e-10
    R = matrix(rectangular)
    for operator in all_of(ranks, lambda comm: distributed.linear_operator(distributed.distribute(R, comm))):
        assert operator.shape == R.shape
    y = np.random.default_rng(8).standard_normal((700, 2))
    found = all_of(ranks, lambda comm: distributed.linear_operator(distributed.distribute(R, comm)).rmatmat(y))
    assert relative(found[0], (y.T @ R).T) < ROUNDING


def test_each_part_of_a_product_is_held_until_it_has_been_copied(monkeypatch):
    """An urgent stream has made it; sixty-four vectors are a part."""
    held = []
    monkeypatch.setattr("h2gpu.distributed.matrix.used", held.append)
    B = distributed.distribute(matrix(few), distributed.Alone())
    for count, parts in ((1, 1), (64, 1), (65, 2)):
        held.clear()
        B @ np.ones((20, count))
        assert held == [np] * parts
