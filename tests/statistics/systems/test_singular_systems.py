"""Estimates whose covariance matrix is singular to rounding: kept, kriged with the least nugget that will do, told."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from h2gpu.covariance import Exponential, Matern
from h2gpu.covariance.sites import Sites
from h2gpu.statistics import Kriging, equations, simulate
from h2gpu.statistics.systems import covariance_system


def singular_below(least, monkeypatch):
    """The covariance matrix of all sites fails for noise below `least`."""

    def system(sites, cov, noise, *options, **more):
        if np.min(noise) < least:
            raise np.linalg.LinAlgError("not positive definite to rounding")
        return covariance_system(sites, cov, noise, *options, **more)

    monkeypatch.setattr(equations, "covariance_system", system)


def test_a_singular_matrix_at_the_estimate_is_kriged_with_the_least_nugget(monkeypatch):
    """The estimate stays; predictions are those of the nugget that the warning tells."""
    X = np.random.default_rng(0).random((60, 2))
    y = simulate(Matern(1.0, 0.5, 2.5), X, random_state=0)[:, 0]
    kriging = Kriging(Matern(1.0, 0.3, 2.5), fit_parameters=["variance", "length_scale"])
    free = clone(kriging).fit(X, y)
    norm = Sites.of(X, free.cov_).norm
    singular_below(0.9e-10 * norm, monkeypatch)
    with pytest.warns(ConvergenceWarning, match="singular to rounding; kept the estimate"):
        kriging.fit(X, y)
    assert kriging.parameters_ == free.parameters_ and kriging.nugget_ == 0
    assert not kriging.converged_ and "added to the nugget" in kriging.estimation_.messages[-1]
    same = Kriging(free.cov_, 1e-10 * norm).fit(X, y)
    targets = X + 0.01
    np.testing.assert_allclose(kriging.predict(targets, True), same.predict(targets, True), rtol=1e-9)


def test_given_parameters_and_more_than_rounding_are_refused(monkeypatch):
    X = np.random.default_rng(0).random((60, 2))
    y = simulate(Exponential(1.0, 0.5), X, random_state=0)[:, 0]
    singular_below(1e-9, monkeypatch)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        Kriging(Exponential()).fit(X, y)
    singular_below(1e9, monkeypatch)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        Kriging(Exponential(), fit_parameters=True).fit(X, y)
