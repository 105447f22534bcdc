"""Kriging and likelihoods of random small problems against the equations solved densely.

mean = C* K⁻¹ y,   variance = C** − C* K⁻¹ C*ᵀ,   K = C + nugget I   (Rasmussen and Williams 2006, 2.23 and 2.24)
"""

import warnings

import numpy as np
from battery import back, battery, expect, given, one_line
from cases_matrices import covariance, points
from scipy.spatial.distance import cdist

from h2gpu.statistics import Kriging, log_likelihood


@battery("numerics: kriging")
def kriging(rng, folder):
    n, dim = int(rng.integers(3, 250)), int(rng.integers(1, 4))
    X = points(rng, n, dim)
    if rng.random() < 0.3:  # repeated sites, which share a nugget of the covariance's own
        X[rng.integers(n, size=n // 4)] = X[rng.integers(n)]
    cov = covariance(rng, float(np.ptp(X, axis=0).max()) or 1.0, dim)
    nugget = float(cov.variance_at_zero) * 10.0 ** rng.uniform(-3, 0)
    weights_of = rng.uniform(0.2, 5, n) if rng.random() < 0.3 else None
    y, new = rng.standard_normal(n), X[rng.integers(n, size=20)]  # at sites, and
    new[:10] += 0.01 * float(np.ptp(X)) * rng.standard_normal((10, dim))  # near them
    what = f"{n} sites in {dim}D, {cov!r}, nugget {nugget:.3g}, {'weighted' if weights_of is not None else 'plain'}"
    constant = bool(rng.integers(2))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = given((X, y, weights_of))
            k = Kriging(cov, nugget=nugget, trend="constant" if constant else None, rtol=1e-9).fit(*there)
            mean, std = back(k.predict(given(new), return_std=True))
            likelihood = (
                None if constant else log_likelihood(cov, *there[:2], nugget, rtol=1e-9, sample_weight=there[2])
            )
    except (ValueError, np.linalg.LinAlgError) as error:
        one_line(error)
        return "refused"
    own = float(cov.nugget)  # within the covariance: variation of the field, shared by what lies at one place
    K, C = (cov(a.copy(), X) + own * (cdist(a, X) == 0) for a in (X, new))
    K += np.diag(nugget / np.broadcast_to(1.0 if weights_of is None else weights_of, n))
    F, f = np.ones((n, int(constant))), np.ones((20, int(constant)))
    weights, G = np.linalg.solve(K, C.T), np.linalg.solve(K, F)
    information = np.linalg.inv(F.T @ G) if constant else np.zeros((0, 0))
    beta = information @ (G.T @ y)
    exact = f @ beta + C @ np.linalg.solve(K, y - F @ beta)
    rest = f - weights.T @ F
    variance = (
        cov.variance_at_zero
        + own
        - np.einsum("ij,ji->i", C, weights)
        + np.einsum("ij,jk,ik->i", rest, information, rest)
    )
    condition = np.linalg.cond(K)
    expect(np.abs(mean - exact).max() <= 1e-6 * max(1, condition * 1e-4) * np.abs(y).max(), f"{what}: mean")
    off = np.abs(std**2 - variance).max()
    expect(off <= 1e-3 * cov.variance_at_zero, f"{what}: variance off by {off:.3g}")
    if likelihood is not None:
        determinant = np.linalg.slogdet(K)[1]
        dense = -0.5 * (y @ np.linalg.solve(K, y) + determinant + n * np.log(2 * np.pi))
        expect(
            abs(float(likelihood) - dense) <= 1e-3 * abs(dense) + 0.05, f"{what}: likelihood {likelihood} for {dense}"
        )
    return "right"
