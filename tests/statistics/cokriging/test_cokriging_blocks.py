"""Block means of several variables: those of the dense equations of the discretized blocks."""

import numpy as np
import pytest
from test_cokriging import LINEAR, MATERN, NUGGETS, sample

from h2gpu.covariance import Coregionalization, Exponential
from h2gpu.statistics import CoKriging, Kriging, cells
from h2gpu.statistics.blocks import averages, discretization
from h2gpu.statistics.blocks.discretization import blocks_of
from h2gpu.statistics.cokriging.stacking import all_variables

MEANS = np.array([5.0, -2.0])
TRENDS = {
    None: lambda X: X[:, :0],
    "constant": lambda X: np.ones((len(X), 1)),
    "linear": lambda X: np.c_[np.ones(len(X)), X],
}


def dense(cov, trend, X, Y, blocks):
    """Means (blocks, p) and covariances (blocks, p, blocks, p) of the errors, by the system of every place."""
    p, (row, i) = cov.variables, np.nonzero(np.isfinite(Y))
    A = np.zeros((len(blocks), len(blocks.weights)))
    A[np.repeat(np.arange(len(blocks)), np.diff(blocks.start)), np.arange(A.shape[1])] = blocks.weights
    A = np.kron(A, np.eye(p))
    S, T = np.column_stack([X[row], i]), all_variables(blocks.points, p)
    F, f = (np.einsum("ni,nj->nij", np.eye(p)[Z[:, 2].astype(int)], TRENDS[trend](Z[:, :2])) for Z in (S, T))
    F, q = F.reshape(len(S), -1), A @ f.reshape(len(T), -1)
    K, k, C = cov(S) + np.diag(np.array(NUGGETS)[i]), cov(S, T) @ A.T, A @ cov(T) @ A.T
    system = np.block([[K, F], [F.T, np.zeros((F.shape[1],) * 2)]])
    W = np.linalg.solve(system, np.concatenate([k, q.T]))[: len(S)]
    known = MEANS * (trend is None)
    mean = (W.T @ (Y[row, i] - known[i])).reshape(-1, p) + known
    return mean, (C - W.T @ k - k.T @ W + W.T @ K @ W).reshape(mean.shape * 2)


@pytest.mark.parametrize("cov", [LINEAR, MATERN], ids=["linear", "matern"])
@pytest.mark.parametrize("trend", TRENDS, ids=str)
def test_means_and_joint_errors_are_those_of_dense_equations(way, cov, trend):
    X, Y, _ = sample(cov, 100)
    model = CoKriging(cov, NUGGETS, trend, mean=0.0 if trend else tuple(MEANS), rtol=1e-8).fit(X, Y)
    T = 10 * np.random.default_rng(1).random((9, 2))
    sets = [T[:4], X[:1], np.r_[T[:2], X[1:4]], T[5:]]  # of several sizes, with places that are sites
    for given in (sets, cells(T[:3], (2.0, 1.0), 3)):
        mean, joint = dense(cov, trend, X, Y, blocks_of(given, np.asarray))
        found, errors = model.predict_blocks(given, return_cov=True)
        assert found.shape == (len(given), 2) and errors.shape == (len(given), 2) * 2
        np.testing.assert_allclose(found, mean, atol=10 * way)
        np.testing.assert_allclose(errors, joint, atol=10 * way)
        np.testing.assert_allclose(model.predict_blocks(given), found, rtol=1e-12)
        alone, std = model.predict_blocks(given, return_std=True)
        np.testing.assert_allclose(alone, found, rtol=1e-12)
        np.testing.assert_allclose(std**2, np.einsum("bibi->bi", joint), atol=10 * way)


def test_blocks_of_one_place_are_points():
    X, Y, _ = sample(MATERN, 60)
    model = CoKriging(MATERN, NUGGETS, "linear").fit(X, Y)
    T = np.r_[X[:3], X[:4] + 0.1]
    for a, b in zip(model.predict_blocks([t[None] for t in T], True), model.predict(T, True)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_independent_variables_have_blocks_by_themselves():
    cov = Coregionalization([np.diag([1.0, 2.0])], [Exponential(1.0, 3.0)])
    X, Y, _ = sample(cov, 80)
    blocks = cells([[2.0, 3.0], [7.0, 5.0]], 2.0)
    found = CoKriging(cov, NUGGETS).fit(X, Y).predict_blocks(blocks, return_std=True)
    for i, variance in enumerate((1.0, 2.0)):
        known = np.isfinite(Y[:, i])
        alone = Kriging(Exponential(variance, 3.0), NUGGETS[i]).fit(X[known], Y[known, i])
        expected = alone.predict_blocks(blocks, return_std=True)
        np.testing.assert_allclose([part[:, i] for part in found], expected, rtol=1e-8)


@pytest.mark.parametrize("ask, words", [
    (lambda k: k.predict_blocks(np.zeros((3, 2))), "blocks: expected a list of .* got ndarray"),
    (lambda k: k.predict_blocks([np.zeros((3, 3))]), "X: expected 2 coordinates as in fit, got 3"),
    (lambda k: k.predict_blocks([[[0.0, 0.0]]], True, return_cov=True), "expected one of return_std and return_cov"),
    (lambda k: k.predict_blocks([[[0.0, 0.0]]] * 3, return_cov=True), "at most 5 block means, .* got 6"),
    (lambda k: k.predict_blocks(cells([[0.0, 0.0]], 1.0)), "at most 20 points of all blocks together, got 32"),
], ids=range(5))  # fmt: skip
def test_wrong_blocks_are_refused(monkeypatch, ask, words):
    monkeypatch.setattr(averages, "MOST_BLOCKS", 5)
    monkeypatch.setattr(discretization, "MOST_POINTS", 20)
    X, Y, _ = sample(LINEAR, 40)
    with pytest.raises(ValueError, match=words):
        ask(CoKriging(LINEAR, NUGGETS).fit(X, Y))
