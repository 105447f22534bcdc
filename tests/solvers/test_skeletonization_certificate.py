"""The certificate of a direct factorization tells its errors, against dense truth."""

import numpy as np
import pytest

from h2gpu import covariance_matrix
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.solvers import skeletonization, skeletonize
from h2gpu.solvers.log_determinant import signs

ROUGH, SMOOTH = Exponential(length_scale=0.1), Matern(length_scale=0.1, smoothness=1.5) + Nugget(0.01)


@pytest.fixture(autouse=True)
def small_root(monkeypatch):
    """So that some thousand sites are eliminated on several levels."""
    monkeypatch.setattr(skeletonization, "ROOT", 100)
    monkeypatch.setattr(skeletonization, "WIDER", 1)


def sites(n=800):
    return np.random.default_rng(0).random((n, 2))


@pytest.mark.parametrize("cov", [ROUGH, SMOOTH])
def test_the_errors_told_are_those_of_the_dense_matrix(cov):
    K, G = cov(sites()), skeletonize(sites(), cov, 0.1)
    told, exact = G.certificate(K, probes=32), np.linalg.slogdet(K)[1]
    assert told.log_determinant == G.log_determinant()
    assert abs(told.error - (G.log_determinant() - exact)) < 4 * told.standard_error
    root = G.multiply_half(np.eye(len(K)))
    B = np.linalg.solve(root, np.linalg.solve(root, K).T)
    quadratic = len(K) - np.trace(np.linalg.inv(B))
    assert abs(told.quadratic_error - quadratic) < 4 * told.quadratic_standard_error
    both = -0.5 * (G.log_determinant() - exact + quadratic)
    assert abs(told.log_likelihood_error - both) < 4 * told.log_likelihood_standard_error + 1e-9
    spectrum = np.linalg.eigvalsh(B)
    assert spectrum[0] - 1e-9 <= told.least < 1 < told.largest <= spectrum[-1] + 1e-9
    assert told.log_likelihood_standard_error < 0.2 * told.standard_error


def test_what_is_told_are_the_means_over_the_probes():
    K, G = SMOOTH(sites()), skeletonize(sites(), SMOOTH, 0.1)
    told = G.certificate(K, probes=8, random_state=3)
    Z = signs(np.random.default_rng(3), len(K), 8, np, np.float64)
    root = G.multiply_half(np.eye(len(K)))
    theta, V = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, K).T))
    logs, inverses = (((V.T @ Z) ** 2 * f[:, None]).sum(axis=0) for f in (np.log(theta), 1 / theta))
    np.testing.assert_allclose(told.error, -logs.mean(), rtol=1e-3)
    np.testing.assert_allclose(told.standard_error, logs.std(ddof=1) / 8**0.5, rtol=1e-3)
    np.testing.assert_allclose(told.quadratic_error, len(K) - inverses.mean(), rtol=1e-3)
    np.testing.assert_allclose(told.log_likelihood_error, 0.5 * (logs + inverses - len(K)).mean(), rtol=1e-2)


def test_a_smaller_eta_has_a_smaller_error(xp):
    points = xp.asarray(sites())
    rough, fine = (skeletonize(points, SMOOTH, eta).certificate(SMOOTH(points)) for eta in (0.1, 0.01))
    assert fine.log_likelihood_error < 0.05 * rough.log_likelihood_error
    assert fine.largest - fine.least < 0.3 * (rough.largest - rough.least)


def test_the_exact_factor_has_no_error():
    points = sites(150)
    told = skeletonize(points, SMOOTH).certificate(SMOOTH(points))
    assert abs(told.error) < 1e-8 and abs(told.quadratic_error) < 1e-8


def test_the_compressed_matrix_serves_as_the_truth():
    told = skeletonize(sites(), SMOOTH, 0.1)
    exact, compressed = (told.certificate(C) for C in (SMOOTH(sites()), covariance_matrix(sites(), SMOOTH, 1e-8)))
    assert abs(exact.error - compressed.error) < 1e-3 * exact.standard_error
    assert (exact.probes, exact.steps) == (compressed.probes, compressed.steps)


def test_another_matrix_is_refused():
    G = skeletonize(sites(50), ROUGH)
    with pytest.raises(ValueError, match=r"C: expected shape \(50, 50\) as the factor has"):
        G.certificate(np.eye(49))
    with pytest.raises(ValueError, match="probes: expected an integer ≥ 2"):
        G.certificate(np.eye(50), probes=1)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        G.certificate(-np.eye(50))
