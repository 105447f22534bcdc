"""Observations to krige from, and universal kriging as the textbooks write it."""

import numpy as np
from reference import points_of

from h2gpu.covariance import Matern
from h2gpu.statistics import simulate

COV = Matern(2.0, 0.3, 1.5)


def problem(n=300, m=60, cov=COV, nugget=0.05, seed=0, dim=2):
    """Sites, observations of a sample with a trend, targets."""
    X, T = points_of("uniform", n, dim, seed), points_of("uniform", m, dim, seed + 1)
    y = simulate(cov, X, 1, seed, nugget=nugget)[:, 0] + 3 + 2 * X[:, 0]
    return X, y, T


def sample(cov, n=300, nugget=0.1, seed=0):
    """Sites, observations of a sample of mean 5."""
    X = points_of("uniform", n, 2, seed)
    return X, simulate(cov, X, 1, seed, nugget=nugget)[:, 0] + 5


def textbook(cov, nugget, X, y, T, F, f):
    """Universal kriging as the textbooks write it, dense: means, variances of the field."""
    K = cov(X) + nugget * np.eye(len(X))
    k, p = cov(X, T), F.shape[1]
    A = np.block([[K, F], [F.T, np.zeros((p, p))]])
    right = np.concatenate([k, f.T])
    weights = np.linalg.solve(A, right)
    return weights[: len(X)].T @ y, cov.variance_at_zero + cov.nugget - (weights * right).sum(axis=0)
