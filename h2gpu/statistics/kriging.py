"""Kriging: the best linear unbiased prediction of a random field from observations at sites.

    Z(x) = f(x)ᵀ β + smooth variation,   y_i = Z(x_i) + ε_i,   var ε_i = nugget
    Ẑ(x) = f(x)ᵀ β + k(x)ᵀ w,   w = K⁻¹ (y − F β),   K = C + nugget I

Reference: Cressie (1993), Statistics for spatial data, chapter 3.
"""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from h2gpu.batched.arrays import array_module
from h2gpu.covariance.checks import checked
from h2gpu.progress import phase
from h2gpu.statistics.cross import CrossCovariance
from h2gpu.statistics.inputs import covariance_of, targets, training
from h2gpu.statistics.places import places_of
from h2gpu.statistics.regression import regression
from h2gpu.statistics.systems import covariance_system
from h2gpu.statistics.trends import trend_of
from h2gpu.statistics.variances import simple_variances, trend_variances


class Kriging(RegressorMixin, BaseEstimator):
    """Kriging with all observations, on as many sites as an H²-matrix holds; a scikit-learn regressor.

    cov             `h2gpu.covariance` value, scikit-learn kernel or GSTools model; a Nugget within it is variation of
                    the field below the sampling distance
    nugget          variance of the measurement error of an observation, squared units of y
    trend           None (simple kriging, the mean is known), "constant" (ordinary), "linear" in the coordinates, a
                    function of the sites (n, dim) → (n, p), or a list of columns of X that are no coordinates
    rtol            relative accuracy of predictions; the H²-matrix is as accurate as the solve needs, at least
    mean            of the field, where trend is None
    neighbours      of Vecchia's approximation: preconditioner, and likelihood of many sites
    std_rtol        wanted relative error of standard deviations at more than 64 targets; 0: exact, by a solve a target
    random_state    seed of everything random

    After fit:

    cov_, nugget_           the covariance and the nugget in use
    trend_coefficients_     (p,) β
    weights_                (n,) w of the different sites
    iterations_             of conjugate gradients, at most; 0 for a dense factorization
    rtol_                   of the H²-matrix; 0 for a dense one
    variance_error_         after predict(…, return_std=True): how accurate the standard deviations are

    >>> from h2gpu.covariance import Matern
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> kriging = Kriging(Matern(1.0, 0.3, 1.5)).fit(x, np.sin(6 * x[:, 0]))
    >>> mean, std = kriging.predict([[0.51]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(6 * 0.51)) < 1e-3), bool(std[0] < 0.05)
    (True, True)
    """

    def __init__(
        self, cov, nugget=0.0, trend="constant", rtol=1e-6, *, mean=0.0, neighbours=30, std_rtol=0.01, random_state=0
    ):
        self.cov = cov
        self.nugget = nugget
        self.trend = trend
        self.rtol = rtol
        self.mean = mean
        self.neighbours = neighbours
        self.std_rtol = std_rtol
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Solve the kriging equations for observations y (n,) at X (n, features).

        sample_weight   (n,) positive: observation i has the error variance nugget/sample_weight[i]

        Repeated sites are merged, exactly. Raises ValueError for what cannot be kriged: NaN, repeated sites that
        disagree where nugget is 0, dependent trend columns; LinAlgError for a covariance that is not positive definite.
        """
        cov, nugget = covariance_of(self.cov), checked("nugget", self.nugget, zero=True)
        X, y = training(self, X, y)
        self._trend = trend_of(self.trend, X.shape[1], getattr(self, "feature_names_in_", None))
        places = places_of(X, y - self._known_mean(), _weights(sample_weight, len(y)))
        if nugget == 0:
            places.check_agreement()
        self.cov_, self.nugget_, self._places = cov, nugget, places
        self._solve()
        return self

    def _solve(self):
        places = self._places
        sites, noise = self._trend.sites(places.sites), places.noise(self.nugget_)
        with phase("covariance of the sites"):
            self._system = covariance_system(
                sites, self.cov_, noise, self.rtol, self.neighbours, _seed(self.random_state)
            )
        self._regression = regression(self._system, places.values, self._trend.columns(places.sites))
        self.trend_coefficients_, self.weights_ = self._regression.coefficients, self._regression.weights
        self.iterations_, self.rtol_ = self._system.iterations, self._system.rtol

    def predict(self, X, return_std=False, observations=False):
        """Best linear unbiased predictions of the field at X (m, features): means (m,), standard deviations (m,).

        observations   the standard deviations are those of new observations: measurement error included
        """
        check_is_fitted(self, "weights_")
        X = targets(self, X)
        xp, solved = array_module(X), self._regression
        cross = CrossCovariance(self._trend.sites(X), self._trend.sites(self._places.sites), self.cov_)
        F = self._trend.columns(X)
        V = xp.concatenate([solved.weights[:, None], solved.solved], axis=1)[:, : None if return_std else 1]
        q = F @ xp.asarray(solved.change)
        P = cross.products(V, self._tolerances(V.shape[1], q))
        mean = F @ xp.asarray(solved.coefficients) + P[:, 0] + self._known_mean()
        if not return_std:
            return mean
        noise = self._places.noise(self.nugget_)
        variances, self.variance_error_ = simple_variances(
            self._system, cross, noise, self.std_rtol, _seed(self.random_state)
        )
        variances += trend_variances(solved, q, P[:, 1:]) + (self.nugget_ if observations else 0)
        return mean, xp.sqrt(variances)

    def _known_mean(self):
        return float(self.mean) if self.trend is None else 0.0

    def _tolerances(self, count, q):
        """Root mean square errors allowed of the products: rtol of the data's spread, rtol of the trend columns."""
        scales = np.ones(count) * max(1e-300, float(abs(q).max())) if q.shape[1] else np.ones(count)
        scales[0] = max(float(self._places.values.std()), 1e-300)
        return self.rtol * scales


def _weights(sample_weight, n):
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"sample_weight: expected {n} finite numbers > 0, got {sample_weight!r:.60}")
    return weights


def _seed(random_state):
    """An integer seed from what scikit-learn calls random_state."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return 0 if random_state is None else int(random_state)
