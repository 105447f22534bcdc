"""Ranks with their numbers on a GPU, here threads that share one: the same as on the CPU."""

import numpy as np
import pytest
from threads import all_of

import h2gpu
import h2gpu.statistics
from h2gpu import distributed
from h2gpu.covariance import Matern, Nugget
from h2gpu.distributed.statistics import Kriging
from h2gpu.statistics import systems

pytestmark = pytest.mark.gpu
SITES = np.random.default_rng(0).random((300, 2))
COV = Matern(1.0, 0.2, 1.5) + Nugget(0.05)
X = np.random.default_rng(1).standard_normal((300, 2))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_products_of_a_distributed_matrix(ranks):
    import cupy

    A = h2gpu.covariance_matrix(SITES, COV, 1e-6, storage="full")
    y = A @ X

    def work(comm):
        B = distributed.distribute(A.to_device("cuda"), comm)
        local = B @ B.scatter(cupy.asarray(X))
        assert isinstance(local, cupy.ndarray)
        return B.gather(local), distributed.linear_operator(B).matmat(X)

    for found, whole in all_of(ranks, work, xp=cupy, limit=120.0):
        assert np.abs(found - y).max() < 1e-12 * np.abs(y).max()
        assert np.array_equal(found, whole)


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_basis_method(ranks):
    import cupy

    A = h2gpu.build(SITES, COV, leaf_size=16, order=4, eta=1.5)
    small = h2gpu.compress(A, 0.3, method="basis", storage="full")

    def work(comm):
        B = distributed.distribute(A.to_device("cuda"), comm)
        return distributed.gathered_matrix(distributed.compress(B, 0.3, method="basis", storage="full"))

    found = all_of(ranks, work, xp=cupy, limit=120.0)[0]
    assert np.array_equal(found.row_basis.ranks, small.row_basis.ranks)
    assert small.relative_error(found) < 1e-12


@pytest.mark.parametrize("ranks", [1, 3])
def test_points_to_solves(ranks):
    import cupy

    b = X[:, 0]

    def work(comm):
        share = np.array_split(SITES, comm.size)[comm.rank]
        B = distributed.covariance_matrix(share, COV, 1e-8, comm=comm)
        W = distributed.solvers.vecchia(B, share, COV, 12)
        solution = distributed.solvers.conjugate_gradients(B, B.scatter(cupy.asarray(b)), W, rtol=1e-10)
        return B.gather(solution.checked()), W.log_determinant

    exact = np.linalg.solve(COV(SITES), b)
    for x, logdet in all_of(ranks, work, xp=cupy, limit=120.0):
        assert np.abs(x - exact).max() < 1e-5 * np.abs(exact).max()
        assert logdet == pytest.approx(np.linalg.slogdet(COV(SITES))[1], rel=0.05)


def test_kriging_at_own_targets(monkeypatch):
    import cupy

    monkeypatch.setattr(systems, "DENSE", 50)
    y, targets = np.sin(6 * SITES[:, 0]), np.random.default_rng(2).random((80, 2))
    one = h2gpu.statistics.Kriging(COV, 0.01, rtol=1e-8, solver="iterative").fit(SITES, y)
    mean, std = one.predict(targets, return_std=True)

    def work(comm):
        own = [cupy.asarray(np.array_split(part, comm.size)[comm.rank]) for part in (SITES, y, targets)]
        kriging = Kriging(COV, 0.01, rtol=1e-8, comm=comm).fit(*own[:2])
        found = kriging.predict(own[2], return_std=True)
        assert all(isinstance(part, cupy.ndarray) for part in found)
        return *(part.get() for part in found), kriging.sample_y(own[2], 2, random_state=1).shape

    found = all_of(2, work, xp=cupy, limit=120.0)
    assert np.abs(np.concatenate([f[0] for f in found]) - mean).max() < 1e-5
    assert np.abs(np.concatenate([f[1] for f in found]) - std).max() < 1e-5
    assert [f[2] for f in found] == [(40, 2)] * 2
