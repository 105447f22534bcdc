"""Indicator kriging: P(Z(x) ≤ z_k | data), the kriging of indicators i_k = 1 where y ≤ z_k, else 0.

    F̂_k(x) = q(x)ᵀ γ_k + c(x)ᵀ w_k,     w_k = K⁻¹ (i_k − Q γ_k),     then ordered: 0 ≤ F̂_1 ≤ … ≤ F̂_K ≤ 1

One covariance for all thresholds (median indicator kriging) costs one factorization or one block of solves.
Reference: Journel (1983), Nonparametric estimation of spatial distributions, Mathematical Geology 15.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.covariance.base import PLANE
from h2gpu.covariance.checks import checked, is_finite
from h2gpu.progress import phase
from h2gpu.statistics.equations import solved_equations
from h2gpu.statistics.indicators import distributions
from h2gpu.statistics.indicators.equations import Solved, alike, indicator_places
from h2gpu.statistics.indicators.saved import Saved
from h2gpu.statistics.inputs import covariance_of, seed_of, targets, training, weighted
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.settings import check_accuracy
from h2gpu.statistics.trends import trend_of
from h2gpu.statistics.variography.empirical import variogram
from h2gpu.statistics.variography.fitting import fitted
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Seed, TrendLike

DECILES = tuple(round(0.1 * k, 1) for k in range(1, 10))


class IndicatorKriging(Saved, RegressorMixin, BaseEstimator):
    """The distribution of the field at targets, from all observations; a scikit-learn regressor of its mean.

    cov              covariance of the indicators, as for `Kriging`: one for all thresholds, or a list of one each. Its
                     variance does not matter, its proportion to the nugget does
    thresholds       (K,) ascending values z_k within the range of the data; None: by `quantiles`
    quantiles        (K,) of the data, ascending levels between 0 and 1, that are the thresholds
    nugget           of the indicators: one, or a list of one each
    trend            as for `Kriging`; None: simple kriging, the mean of an indicator is its mean over the data
    rtol             of the H²-matrix, at most
    fit_variograms   whether covariance and nugget of each threshold are fitted to the variogram of its indicators, by
                     weighted least squares; `cov` tells the family
    neighbours, missing, random_state   as for `Kriging`

    After fit:

    thresholds_      (K,)
    marginal_        (K,) share of the observations at or below them
    covs_, nuggets_  in use: a list of K each
    ends_            lowest and highest observation, where distributions end

    Without nugget the distribution at a site is a step at its observation, spread linearly between two thresholds.
    Source: Journel (1983).

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> kriging = IndicatorKriging(Exponential(1.0, 0.3), thresholds=[0.5, 1.0]).fit(X, X.sum(axis=1))
    >>> kriging.predict_cdf([[0.1, 0.1], [0.9, 0.8]]).round(1)
    array([[1., 1.],
           [0., 0.]])

    A file of it predicts the same, to the last bit:

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kriging.save(os.path.join(folder, "zones.h5"))
    ...     again = IndicatorKriging.load(os.path.join(folder, "zones.h5"))
    >>> bool((again.predict(X) == kriging.predict(X)).all())
    True
    """

    def __init__(
        self,
        cov: Any,
        thresholds: ArrayLike | None = None,
        quantiles: Sequence[float] = DECILES,
        nugget: float = 0.0,
        trend: TrendLike = "constant",
        rtol: float = 1e-6,
        *,
        fit_variograms: bool = False,
        neighbours: int = 30,
        missing: str = "raise",
        random_state: Seed = 0,
    ) -> None:
        self.cov = cov
        self.thresholds = thresholds
        self.quantiles = quantiles
        self.nugget = nugget
        self.trend = trend
        self.rtol = rtol
        self.fit_variograms = fit_variograms
        self.neighbours = neighbours
        self.missing = missing
        self.random_state = random_state

    @any_array
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Solve the kriging equations of all indicators of observations y (n,) at X (n, features).

        sample_weight   (n,): observation i has the nugget nugget/sample_weight[i], and is left out for 0

        Raises ValueError for what cannot be kriged, as `Kriging` does, and for thresholds beyond the data.
        """
        check_accuracy(self)
        first = self.cov[0] if isinstance(self.cov, (list, tuple)) and len(self.cov) else self.cov
        X, y, weights = weighted(*training(self, X, y, sample_weight, covariance_of(first)))
        values = to_host(y)
        self._observe(X, y, weights, self._thresholds(values))
        trend = trend_of(self.trend, X.shape[1], getattr(self, "feature_names_in_", None))
        self.covs_, self.nuggets_ = self._models(trend.sites(X), values)
        self._solved = [self._solve(trend, members) for members in self._alike()]
        return self

    def _observe(self, X, y, weights, thresholds):
        """What the observations alone say; ValueError for thresholds that do not suit them."""
        values = to_host(y)
        self._observed, self.thresholds_ = (X, y, weights), _suiting(thresholds, values)
        self.ends_ = float(values.min()), float(values.max())
        self.marginal_ = np.array([float(weights @ (values <= z)) for z in self.thresholds_]) / float(weights.sum())

    @any_array
    def predict_cdf(self, X: ArrayLike, corrected: bool = True) -> Array:
        """P(Z ≤ z_k) at X (m, features), (m, K); without order correction the kriging of the indicators as it is."""
        check_is_fitted(self, "thresholds_")
        X = targets(self, X)
        F = array_module(X).empty((len(X), len(self.thresholds_)))
        for solved in self._solved:
            F[:, solved.members] = solved.equations.means(X, solved.gamma, solved.w)
        F += array_module(X).asarray(self._known_means())
        return distributions.ordered(F) if corrected else F

    @any_array
    def predict(self, X: ArrayLike) -> Array:
        """Mean (m,) of the distribution at X (m, features), which is linear between thresholds and the data's ends."""
        return distributions.means(*self._completed(X))

    @any_array
    def predict_quantiles(self, X: ArrayLike, levels: ArrayLike) -> Array:
        """Quantiles (m, count) of the distribution at X (m, features), of levels (count,) between 0 and 1."""
        levels = np.atleast_1d(np.asarray(levels, np.float64))
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"levels: expected numbers between 0 and 1, got {brief(levels, 80)}")
        return distributions.quantiles(*self._completed(X), levels)

    @any_array
    def predict_exceedance(self, X: ArrayLike, value: float) -> Array:
        """P(Z > value) at X (m, features), (m,)."""
        if not is_finite(value):
            raise ValueError(f"value: expected a finite number, got {brief(value)}")
        return 1 - distributions.at(*self._completed(X), float(value))

    def _completed(self, X):
        return distributions.completed(self.predict_cdf(X), self.thresholds_, *self.ends_)

    def _thresholds(self, values):
        """Those given, or quantiles of the data. Raises ValueError."""
        if self.thresholds is None:
            levels = np.asarray(self.quantiles, np.float64)
            if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
                raise ValueError(f"quantiles: expected levels between 0 and 1, got {brief(self.quantiles, 80)}")
            return np.unique(np.quantile(values, levels, method="inverted_cdf"))
        return self.thresholds

    def _models(self, sites, values):
        """Covariance and nugget of each threshold. Raises ValueError."""
        covs, nuggets = self._each("cov", self.cov), self._each("nugget", self.nugget)
        covs, nuggets = [covariance_of(c) for c in covs], [checked("nugget", t, zero=True) for t in nuggets]
        if not self.fit_variograms:
            return covs, nuggets
        if any(cov.embedding not in (None, PLANE) for cov in covs):
            raise ValueError(
                "fit_variograms: expected a covariance in the plane; on the sphere give a list of fitted ones"
            )
        found = []
        for cov, nugget, z in zip(covs, nuggets, self.thresholds_):
            indicators = (values <= z).astype(np.float64)
            if indicators.min() == indicators.max():  # nothing varies, nothing to fit
                found.append((cov, nugget))
                continue
            empirical = variogram(sites, indicators, random_state=seed_of(self.random_state))
            best = fitted(empirical, cov, nugget)
            if self.trend is None:  # with a trend the variogram alone counts, however far it rises
                for message in best.messages:
                    warnings.warn(f"threshold {z:g}: {message}", ConvergenceWarning, stacklevel=4)
            found.append((best.cov, best.nugget))
        return [cov for cov, _ in found], [nugget for _, nugget in found]

    def _each(self, name, given):
        """One value a threshold, of one or of a list. Raises ValueError."""
        count = len(self.thresholds_)
        if not isinstance(given, (list, tuple, np.ndarray)):
            return [given] * count
        if len(given) != count:
            raise ValueError(f"{name}: expected one, or one for each of {count} thresholds, got {len(given)}")
        return list(given)

    def _alike(self):
        """Thresholds with the same covariance and nugget, which share a factorization."""
        return alike(list(zip(self.covs_, self.nuggets_)))

    @property
    def _accuracy(self):
        return self.rtol, self.neighbours, seed_of(self.random_state)

    def _known_means(self):
        return self.marginal_ if self.trend is None else np.zeros(len(self.thresholds_))

    def _solve(self, trend, members):
        """The Solved equations of some thresholds that share a model."""
        model = Model(self.covs_[members[0]], self.nuggets_[members[0]], ())
        means, every = self._known_means(), []
        for k in members:
            every.append(indicator_places(*self._observed, self.thresholds_[k], means[k]))
            if model.nugget == 0:
                every[-1].check_agreement()
        with phase("kriging equations"):
            equations = solved_equations(every[0], trend, model, *self._accuracy)
            Y = array_module(equations.sites).stack([places.values for places in every], axis=1)
            gamma, w = equations.regression.of(equations.system.solve(Y))
        return Solved.of(equations, gamma, w, members)


def _suiting(thresholds, values):
    """Thresholds (K,) as an array, ascending and within the values. Raises ValueError."""
    z = np.asarray(thresholds, np.float64)
    if z.ndim != 1 or not len(z) or not np.isfinite(z).all() or (np.diff(z) <= 0).any():
        raise ValueError(f"thresholds: expected ascending finite numbers, got {brief(thresholds, 80)}")
    if z[0] < values.min() or z[-1] > values.max():
        raise ValueError(
            f"thresholds: expected values from {values.min():g} to {values.max():g}, where there are observations, "
            f"got {z[0]:g} to {z[-1]:g}; leave out those beyond"
        )
    return z
