"""Kriging of observations that are not Gaussian: counts, shares, positive amounts, outliers.

    y_i ~ p(y | η(x_i)),   η(x) = f(x)ᵀ β + Z(x),   Z Gaussian of covariance C
    posterior of η by Laplace: its mode η̂, and K = C + W⁻¹ in place of C + nugget

All that kriging does with K serves the posterior: means, standard deviations, likelihood.

Reference: Diggle, Tawn & Moyeed (1998), Model-based geostatistics; Rasmussen & Williams (2006), chapter 3.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.statistics.equations import Equations
from h2gpu.statistics.generalized import predictive
from h2gpu.statistics.generalized.choices import joint_of
from h2gpu.statistics.generalized.columns import of_column, without
from h2gpu.statistics.generalized.estimation import estimate
from h2gpu.statistics.generalized.marginal import Latent
from h2gpu.statistics.generalized.observed import Observed
from h2gpu.statistics.generalized.saved import Saved
from h2gpu.statistics.generalized.scored import Scored
from h2gpu.statistics.inputs import seed_of, targets, training, weighted
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.regression import Regression, orthonormalizer
from h2gpu.statistics.settings import check_level, tell_unused_mean
from h2gpu.statistics.trends import trend_of
from h2gpu.statistics.variances import tell_error
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Seed, TrendLike


class GeneralizedKriging(Scored, Saved, RegressorMixin, BaseEstimator):
    """Kriging with a Poisson, binomial, gamma or Student-t likelihood, by Laplace; a scikit-learn regressor.

    cov             covariance of the predictor η, as for `Kriging`; a Nugget within it is further variation of places
    likelihood      "poisson" (counts, log link), "binomial" (successes, logit link), "gamma" (positive, log link) or
                    "student-t" (outliers, identity link)
    trend, mean     of η, as for `Kriging`
    rtol            of the H²-matrix, at most
    exposure        the column of X, by name or index, that multiplies the Poisson mean; None: 1
    trials          the column of X with the number of binomial trials; None: 1
    shape           of the gamma distribution, variance mean²/shape
    scale, df       of Student's t: units of y, degrees of freedom
    fit_parameters  True: those of the covariance, as for `Kriging`, and shape and scale, of greatest Laplace marginal
                    likelihood; "all": its smoothness and df too; or a list of names
    restricted      whether the trend's coefficients are integrated over, under a flat prior
    neighbours      of Vecchia's approximation: preconditioner, and marginal likelihood of more than 1,500 places
    std_rtol, missing, random_state   as for `Kriging`

    After fit:

    cov_, likelihood_       in use
    parameters_, parameter_errors_, parameter_intervals_, estimation_   as for `Kriging`
    converged_              whether mode and estimation have converged; else there is a ConvergenceWarning
    mode_                   (places,) η̂ of the different places, in the order in which they come
    weights_                (places,) K⁻¹ (u − Qγ), the derivative of the log-density there
    trend_coefficients_     (p,) β
    steps_                  of Newton's method

    Source: Diggle, Tawn & Moyeed (1998); Rasmussen & Williams (2006), chapter 3; Zilber & Katzfuss (2021).

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 2))
    >>> y = rng.poisson(np.exp(1 + np.sin(6 * X[:, 0])))
    >>> kriging = GeneralizedKriging(Exponential(1.0, 0.5), "poisson").fit(X, y)
    >>> bool(abs(kriging.predict([[0.26, 0.5]])[0] - np.exp(2)) < 2)
    True
    """

    def __init__(
        self,
        cov: Any,
        likelihood: str = "poisson",
        trend: TrendLike = "constant",
        rtol: float = 1e-6,
        *,
        exposure: str | int | None = None,
        trials: str | int | None = None,
        shape: float = 1.0,
        scale: float = 1.0,
        df: float = 4.0,
        fit_parameters: bool | str | Sequence[str] = False,
        restricted: bool = False,
        mean: float = 0.0,
        neighbours: int = 30,
        std_rtol: float = 0.01,
        missing: str = "raise",
        random_state: Seed = 0,
    ) -> None:
        self.cov = cov
        self.likelihood = likelihood
        self.trend = trend
        self.rtol = rtol
        self.exposure = exposure
        self.trials = trials
        self.shape = shape
        self.scale = scale
        self.df = df
        self.fit_parameters = fit_parameters
        self.restricted = restricted
        self.mean = mean
        self.neighbours = neighbours
        self.std_rtol = std_rtol
        self.missing = missing
        self.random_state = random_state

    @any_array
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """The posterior of η given observations y (n,) at X (n, features).

        Raises ValueError for what the likelihood cannot give, such as negative counts, and for what cannot be kriged;
        LinAlgError for a covariance that is not positive definite.
        """
        joint = joint_of(self)
        tell_unused_mean(self.trend, self.mean, stacklevel=4)
        X, y, weights = training(self, X, y, None, joint.cov)
        X, y, _ = weighted(X, y, weights)
        latent, change = self._prepared(joint.likelihood, X, y)
        eta = self._estimated(joint, latent)
        self._solve(latent, change, eta)
        return self

    def _prepared(self, likelihood, X, y):
        """The problem by places of checked observations, and the change that makes trend columns orthonormal."""
        names = getattr(self, "feature_names_in_", None)
        self._column = of_column(self._size, X.shape[1], names)
        sites, size = self._parted(X)
        y = likelihood.checked(to_host(y), size)
        self._observed = X, y
        self._trend = without(trend_of(self.trend, X.shape[1], names), self._column)
        return self._latent(sites, y, size)

    def _estimated(self, joint, latent):
        """Finds the covariance and the likelihood in use; the mode there, None where nothing was estimated."""
        eta = None
        self.estimation_, self.parameters_ = None, {}
        self.parameter_errors_, self.parameter_intervals_ = {}, {}
        if self.fit_parameters and (joint.model.kinds or joint.own):
            found, eta = estimate(latent, joint, self.neighbours, seed_of(self.random_state))
            self.estimation_ = found
            joint = found.model
            self.parameters_ = {free.name: free.value for free in joint.free}
            self.parameter_errors_, self.parameter_intervals_ = found.errors, found.intervals()
        self.cov_, self.likelihood_, self._kinds = joint.cov, joint.likelihood, joint.model.kinds
        return eta

    def _solve(self, latent, change, eta=None):
        """Mode and equations, the search begun at `eta`."""
        state = seed_of(self.random_state)
        options = {"rtol": self.rtol, "neighbours": self.neighbours, "random_state": state}
        found = latent.exact(Model(self.cov_, 0.0, ()), self.likelihood_, eta, **options)
        messages = [] if self.estimation_ is None else list(self.estimation_.messages)
        if not found.converged:
            messages.append(f"Laplace's approximation: the mode was not found in {found.steps} steps")
        for message in messages:
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self.converged_, self.steps_ = not messages, found.steps
        self.mode_, self.weights_ = self._level() + found.eta, found.a
        self.trend_coefficients_ = change @ found.gamma
        self._latent_, self._found = latent, found
        xp = array_module(latent.sites)
        Q, gamma, w = (xp.asarray(part) for part in (latent.Q, found.gamma[:, None], found.a[:, None]))
        regression = Regression(change, Q, found.solved, found.information)
        spread = float(found.eta.std()) or 1.0
        noise = 1 / found.weight
        self._equations = Equations(
            latent.sites, self.cov_, noise, self._trend, found.system, regression, gamma, w, spread, self.rtol
        )

    @any_array
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        observations: bool = False,
        *,
        interval: float | None = None,
    ) -> Any:
        """Means (m,) of new observations at X (m, features), and where asked for one of

        return_std     standard deviations (m,) of the mean surface μ(x): of the field on the scale of y
        interval       lower and upper ends (m,), (m,) of its central interval of this level, such as 0.95
        observations   of new observations instead: with the likelihood's own variation

        Exposure or trials are those of X. Raises ValueError for both, and for a level outside (0, 1).
        """
        check_is_fitted(self, "weights_")
        if return_std and interval is not None:
            raise ValueError("predict: expected one of return_std and interval, got both")
        check_level(interval)
        m, v, size = self._posterior(X)
        mean, spread, within = predictive.moments(self.likelihood_, m, v, size)
        moved = array_module(self._latent_.sites).asarray
        if return_std:
            return moved(mean), moved(np.sqrt(spread + (within if observations else 0.0)))
        if interval is None:
            return moved(mean)
        quantile = predictive.quantile if observations else predictive.field_quantile
        levels = (0.5 - interval / 2, 0.5 + interval / 2)
        return moved(mean), *(moved(quantile(self.likelihood_, level, m, v, size)) for level in levels)

    @any_array
    def predict_latent(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Posterior means (m,) of η at X (m, features), and standard deviations (m,) where asked for."""
        check_is_fitted(self, "weights_")
        m, v, _ = self._posterior(X, return_std)
        moved = array_module(self._latent_.sites).asarray
        return (moved(m), moved(np.sqrt(v))) if return_std else moved(m)

    @any_array
    def predict_cdf(self, X: ArrayLike, values: ArrayLike) -> Array:
        """P(y ≤ value) of new observations at X (m, features), (m,); values: one number, or (m,)."""
        check_is_fitted(self, "weights_")
        m, v, size = self._posterior(X)
        values = np.asarray(values, np.float64)
        if values.shape not in ((), m.shape) or np.isnan(values).any():
            raise ValueError(f"values: expected one number or {len(m)}, got {brief(values, 60)}")
        return predictive.cdf(self.likelihood_, values, m, v, size)

    def log_marginal_likelihood(self) -> LogLikelihood:
        """Laplace's approximation of the log-likelihood of the training data: a `LogLikelihood`, float with its error.

        Raises NotFittedError before fit.
        """
        check_is_fitted(self, "weights_")
        return self._latent_.value(self._found, self.likelihood_)

    def _posterior(self, X, spread=True):
        """Means and variances of η, (m,) each, and sizes, on the host."""
        sites, size = self._parted(targets(self, X))
        if not spread:
            return self._level() + to_host(self._equations.means(sites)[:, 0]), None, size
        mean, variances, error = self._equations.means_and_variances(sites, self.std_rtol, seed_of(self.random_state))
        tell_error(error, self.std_rtol)
        return self._level() + to_host(mean), np.maximum(to_host(variances), 0), size

    @property
    def _size(self):
        """The column of exposure or trials, None without."""
        return self.trials if self.likelihood == "binomial" else self.exposure

    @property
    def _more_columns(self):
        return [] if self._size is None else [self._size]

    def _parted(self, X):
        """X without the column of sizes, and sizes (n,) on the host. Raises ValueError."""
        if self._column is None:
            return X, np.ones(len(X))
        size = to_host(X[:, self._column])
        name = "trials" if self.likelihood == "binomial" else "exposure"
        whole = name == "exposure" or (size == np.floor(size)).all()
        if not ((size > 0).all() and whole):
            raise ValueError(
                f"{name}: expected {'' if name == 'exposure' else 'whole '}numbers above 0, got {size.min():g}"
            )
        rest = [i for i in range(X.shape[1]) if i != self._column]
        return X[:, rest], size

    def _latent(self, X, y, size):
        """The problem by places, and the change that makes trend columns orthonormal."""
        observed = Observed.of(X, y, size, self._level())
        F = self._trend.columns(observed.X)
        change = orthonormalizer(F)
        return Latent(observed, to_host(F) @ change, self._trend.sites(observed.X), self.restricted), change

    def _level(self):
        return float(self.mean) if self.trend is None else 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.likelihood != "student-t"
        tags.regressor_tags.poor_score = True  # of data that are not of this likelihood
        return tags
