"""Solvers by ranks find what the serial ones find."""

import numpy as np
import pytest
from threads import all_of, on_ranks

import h2gpu
from h2gpu import distributed
from h2gpu.solvers import ordering, square_root, vecchia

N = 400
POINTS = np.random.default_rng(0).random((N, 2))
COV = h2gpu.covariance.Matern(smoothness=1.5, length_scale=0.1) + h2gpu.covariance.Nugget(0.05)
A = h2gpu.covariance_matrix(POINTS, COV, 1e-8, storage="full")
W = vecchia(POINTS, COV, 12)
DENSE = A.to_dense()
X = np.random.default_rng(1).standard_normal((N, 3))


def parts(comm):
    B = distributed.distribute(A, comm)
    share = np.array_split(POINTS, comm.size)[comm.rank]
    return B, distributed.solvers.vecchia(B, share, COV, 12)


@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_vecchia_is_the_serial_factor(ranks):
    def work(comm):
        B, V = parts(comm)
        local, whole = B.scatter(X), np.zeros((N, 3))
        for found, rows in zip(comm.gather(V.whiten(local)), comm.gather(V.positions)):
            whole[rows] = found
        return whole, B.gather(V @ local), V.log_determinant, V.whiten(local[:, 0]).shape == (len(local),)

    for whitened, product, log_determinant, shape in all_of(ranks, work):
        assert np.allclose(whitened, W.whiten(X), rtol=0, atol=1e-11)
        assert np.allclose(product, W @ X, rtol=0, atol=1e-10 * abs(W @ X).max())
        assert log_determinant == pytest.approx(W.log_determinant, rel=1e-12) and shape


def test_an_order_by_levels_is_the_serial_one(monkeypatch):
    """Of sites on a grid with a denser corner, some of them twice: many equal distances, the least with one rank."""
    monkeypatch.setattr(ordering, "EXACT", 30)
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    points = np.concatenate([grid, grid[::40]])
    points[-200:-100] = 0.3 * POINTS[:100]
    C, serial, x = h2gpu.covariance_matrix(points, COV, 1e-4), vecchia(points, COV, 12), np.arange(410.0)

    def work(comm):
        B = distributed.distribute(C, comm)
        V = distributed.solvers.vecchia(B, np.array_split(points, comm.size)[comm.rank], COV, 12)
        return V.positions, V.whiten(B.scatter(x))

    whitened = np.zeros(410)
    for positions, part in all_of(3, work):
        whitened[positions] = part
    assert np.abs(whitened - serial.whiten(x)).max() < 1e-11 * np.abs(whitened).max()


@pytest.mark.parametrize("ranks", [1, 4])
def test_solves_by_one_sum_a_step(ranks):
    b = X.copy()
    b[:, 1] = 0
    exact = np.linalg.solve(DENSE + 0.1 * np.eye(N), b)

    def work(comm):
        B, V = parts(comm)
        solution = distributed.solvers.conjugate_gradients(B, B.scatter(b), V, nugget=0.1, rtol=1e-10)
        sums = comm.traffic.sums["dot products"]
        plain = distributed.solvers.conjugate_gradients(B, B.scatter(b)[:, 0], nugget=0.1, rtol=1e-10)
        return B.gather(solution.checked()), solution.iterations, B.gather(plain.checked()), sums, plain.iterations[0]

    serial = h2gpu.solvers.conjugate_gradients(A, b, W, nugget=0.1, rtol=1e-10).iterations
    long = h2gpu.solvers.conjugate_gradients(A, b[:, 0], nugget=0.1, rtol=1e-10).iterations[0]
    for x, iterations, plain, sums, steps in all_of(ranks, work):
        assert np.abs(x - exact).max() < 1e-8 * np.abs(exact).max()
        assert np.abs(plain - exact[:, 0]).max() < 1e-8 * np.abs(exact).max()
        assert steps <= 1.1 * long  # the coefficients are those of the three sums
        assert abs(iterations - serial).max() <= 1 and iterations[1] == 0
        assert sums <= iterations.max() + 4  # and the norms of b, of the last residual, and of the true one


def test_a_solve_tells_of_what_it_cannot_do():
    def work(comm):
        B = distributed.distribute(A, comm)
        few = distributed.solvers.conjugate_gradients(B, B.scatter(X[:, 0]), rtol=1e-10, maximum=2)
        negative = distributed.solvers.conjugate_gradients(_Minus(B), B.scatter(X[:, 0]))
        return few, negative

    for few, negative in all_of(2, work):
        assert not few.converged[0] and few.iterations[0] == 2 and negative.indefinite[0]
    bad = [np.ones(200), np.full(200, np.nan)]

    def fails(comm):
        B = distributed.distribute(A, comm)
        distributed.solvers.conjugate_gradients(B, bad[comm.rank])

    for error in on_ranks(2, fails):
        assert isinstance(error, ValueError) and str(error).startswith("rank 1: b: expected finite numbers")


class _Minus:
    """−A."""

    def __init__(self, A):
        self.comm, self.local_shape, self.shape, self.symmetric, self.A = A.comm, A.local_shape, A.shape, True, A

    def __matmul__(self, x):
        return -(self.A @ x)


@pytest.mark.parametrize("ranks", [1, 3])
def test_log_determinants_and_simulations_of_a_seed_are_the_serial_ones(ranks):
    serial = h2gpu.solvers.log_determinant(A, W, probes=8, trace=N)
    noise = np.random.default_rng(2).standard_normal((N, 2))
    field = square_root(A, noise, W, rtol=1e-8)

    def work(comm):
        B, V = parts(comm)
        found = distributed.solvers.log_determinant(B, V, probes=8, trace=N)
        return found, B.gather(distributed.solvers.square_root(B, noise[V.positions], V, rtol=1e-8))

    for found, simulated in all_of(ranks, work):
        assert found.value == pytest.approx(serial.value, rel=1e-10)
        assert found.standard_error == pytest.approx(serial.standard_error, rel=1e-6)
        assert np.abs(simulated - field).max() < 1e-6 * np.abs(field).max()
    assert abs(serial.value - np.linalg.slogdet(DENSE)[1]) < 4 * serial.standard_error


def test_arguments_of_solvers_are_checked_on_all_ranks():
    def bad(call):
        return [str(error) for error in on_ranks(2, lambda comm: call(*parts(comm)))]

    assert all(
        "rtol: expected a number between 0 and 1" in e
        for e in bad(lambda B, V: solvers.square_root(B, own(B), V, rtol=2))
    )
    assert all(
        "probes: expected an integer ≥ 2" in e for e in bad(lambda B, V: solvers.log_determinant(B, V, probes=1))
    )
    assert all(
        "expected a symmetric matrix" in e for e in bad(lambda B, V: solvers.conjugate_gradients(B, own(B), rtol=0))
    )
    assert all("neighbours: expected" in e for e in bad(lambda B, V: solvers.vecchia(B, POINTS[:200], COV, -1)))
    assert all("expected the 400 points" in e for e in bad(lambda B, V: solvers.vecchia(B, POINTS[:30], COV)))


def own(B):
    return B.scatter(X[:, 0])


solvers = distributed.solvers
