"""Kriging: the best linear unbiased prediction of a random field from observations at sites.

    Z(x) = f(x)ᵀ β + smooth variation,   y_i = Z(x_i) + ε_i,   var ε_i = nugget
    Ẑ(x) = f(x)ᵀ β + k(x)ᵀ w,   w = K⁻¹ (y − F β),   K = C + nugget I

Reference: Cressie (1993), Statistics for spatial data, chapter 3.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.covariance.checks import checked
from h2gpu.progress import phase, shown
from h2gpu.statistics.equations import solved_equations, stabilized_equations
from h2gpu.statistics.inputs import covariance_of, seed_of, targets, training, weighted
from h2gpu.statistics.likelihood.estimation import estimate
from h2gpu.statistics.likelihood.log_likelihood import Data, LogLikelihood
from h2gpu.statistics.likelihood.parameters import USUAL, Model, checked_kinds
from h2gpu.statistics.places import places_of
from h2gpu.statistics.refinement import refined
from h2gpu.statistics.results.leave_one_out import joint_covariance
from h2gpu.statistics.results.results import Results
from h2gpu.statistics.scores import interval as central_interval
from h2gpu.statistics.scores import r_squared
from h2gpu.statistics.settings import check_accuracy, check_level, check_mean, tell_unused_mean
from h2gpu.statistics.simulation import checked_count, conditional_samples, generator
from h2gpu.statistics.systems.direct import checked_solver
from h2gpu.statistics.tables import values
from h2gpu.statistics.trends import trend_of
from h2gpu.statistics.variances import tell_error
from h2gpu.typing import Array, ArrayLike, Seed, Solver, TrendLike


class Kriging(Results, RegressorMixin, BaseEstimator):
    """Kriging with all observations, on as many sites as an H²-matrix holds; a scikit-learn regressor.

    cov             `h2gpu.covariance` value, scikit-learn kernel or GSTools model; a Nugget within it is variation of
                    the field below the sampling distance
    nugget          variance of the measurement error of an observation, squared units of y
    trend           None (simple kriging, the mean is known), "constant" (ordinary), "linear" in the coordinates, a
                    function of the sites (n, dim) → (n, p), or a list of columns of X that are no coordinates, with
                    "linear" among them for the coordinates too: ["linear", "elevation"]
    rtol            of the H²-matrix, at most; it is made as accurate as it must be to stay positive definite, and
                    `residual_` tells what that leaves
    mean            of the field, where trend is None
    neighbours      of Vecchia's approximation: preconditioner, and likelihood of many sites
    solver          of more than 4,096 places: "direct" factorization, in the plane and on the sphere; "iterative"; or
                    "auto", which takes the faster one as measured
    std_rtol        wanted relative error of standard deviations at more than 64 targets; 0: exact, by a solve a target.
                    The direct factorization's are exact to rtol
    fit_parameters  True: variance, length scale and nugget of greatest likelihood, cov telling the family and where to
                    start (`estimation`), and rotation where it has one; "all": smoothness, exponent and alpha too; or
                    a list of them, or of names of numbers of an Expression
    restricted      estimation by the restricted likelihood (REML), which allows for the trend's estimation
    refine          whether estimates by Vecchia's likelihood are corrected by the full one where the two differ
    missing         "raise": NaN in y is refused; "skip": those observations are left out
    random_state    seed of everything random
    verbose         1: a progress bar a phase, on stderr; 2: also what the logger "h2gpu" is told

    After fit:

    crs_                    coordinate reference system of a GeoDataFrame, that of targets must be the same; else None
    cov_, nugget_           the covariance and the nugget in use
    parameters_             estimated values by name
    parameter_errors_       standard errors of their logarithms, by name, of angles and slopes themselves; a nugget
                            that was found to be 0 has none
    parameter_intervals_    95 % confidence intervals (low, high) by name, on the parameters' own scale
    estimation_             the `estimation.Estimate`; None where nothing was estimated. Its `messages`, one sentence
                            each, tell what went wrong; each is a ConvergenceWarning too
    converged_              whether there are no such messages
    trend_coefficients_     (p,) β
    weights_                (n,) w of the different sites
    iterations_             of conjugate gradients, at most; 0 for a dense or direct factorization
    rtol_                   of the H²-matrix or direct factorization; 0 for a dense one
    residual_               root mean square of y − Qγ − K w at 64 sites, K exact: the error of the solution, in y
    variance_error_         after predict(…, return_std=True): how accurate the standard deviations are

    Source: Cressie (1993), chapter 3; Guinness (2021) for the estimation; scikit-learn for the interface.

    >>> import numpy as np
    >>> from h2gpu.covariance import Matern
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> kriging = Kriging(Matern(1.0, 0.3, 1.5)).fit(x, np.sin(6 * x[:, 0]))
    >>> mean, std = kriging.predict([[0.51]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(6 * 0.51)) < 1e-3), bool(std[0] < 0.05)
    (True, True)
    """

    def __init__(
        self,
        cov: Any,
        nugget: float = 0.0,
        trend: TrendLike = "constant",
        rtol: float = 1e-6,
        *,
        fit_parameters: bool | Sequence[str] = False,
        restricted: bool = False,
        refine: bool = True,
        mean: float = 0.0,
        neighbours: int = 30,
        solver: Solver = "auto",
        std_rtol: float = 0.01,
        missing: str = "raise",
        random_state: Seed = 0,
        verbose: int = 0,
    ) -> None:
        self.cov = cov
        self.nugget = nugget
        self.trend = trend
        self.rtol = rtol
        self.fit_parameters = fit_parameters
        self.restricted = restricted
        self.refine = refine
        self.mean = mean
        self.neighbours = neighbours
        self.solver = solver
        self.std_rtol = std_rtol
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    @any_array
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Solve the kriging equations for observations y (n,) at X (n, features).

        sample_weight   (n,): observation i has the error variance nugget/sample_weight[i], and is left out for 0

        Repeated sites are merged, exactly. Raises ValueError for what cannot be kriged: NaN, repeated sites that
        disagree where nugget is 0, dependent trend columns; LinAlgError for a covariance that is not positive definite:
        at an estimate, for one that lacks more than rounding; else the least nugget is added, with a warning.
        """
        model = self._model()
        self._check_options()
        X, y, weights = self._observed = weighted(*training(self, X, y, sample_weight, model.cov))
        with shown(self.verbose):
            return self._fitted(model, X, y, weights)

    def _fitted(self, model, X, y, weights):
        """The equations of checked observations, solved; the parameters estimated first where they are to be."""
        self._trend = trend_of(self.trend, X.shape[1], getattr(self, "feature_names_in_", None))
        mean = self._known_mean()
        self._places = places_of(X, y - mean if mean else y.copy(), weights)
        self.estimation_, self.parameters_, self.converged_ = None, {}, True
        self.parameter_errors_, self.parameter_intervals_ = {}, {}
        system = None
        if self.fit_parameters and model.kinds:
            model, system = self._estimate(model)
        if model.nugget == 0:
            self._places.check_agreement()
        with phase("kriging equations"):
            self._equations = self._solved(model, system)
        self.cov_, self.nugget_ = model.cov, model.nugget
        equations = self._equations
        self.trend_coefficients_ = equations.regression.change @ to_host(equations.gamma)[:, 0]
        self.weights_ = equations.w[:, 0]
        self.iterations_, self.rtol_ = equations.system.iterations, equations.system.rtol
        self.residual_ = equations.residual(self._places, seed_of(self.random_state))
        return self

    def _solved(self, model, system):
        """The Equations; of estimated parameters whose matrix is singular to rounding with a nugget, and a warning."""
        given = self._places, self._trend, model, *self._accuracy
        try:
            return solved_equations(*given, system)
        except np.linalg.LinAlgError:
            if self.estimation_ is None:
                raise
        equations, added = stabilized_equations(*given)
        told = (
            "kriging equations: the covariance matrix at the estimate is singular to rounding; kept the estimate, and "
            f"solved them with {added:.2g} added to the nugget"
        )
        self.estimation_, self.converged_ = self.estimation_.told(told), False
        warnings.warn(told, ConvergenceWarning, stacklevel=5)
        return equations

    def _data(self):
        return Data(self._places, self._trend, self.restricted)

    def _model(self):
        chosen = USUAL if isinstance(self.fit_parameters, (bool, np.bool_)) else self.fit_parameters
        cov = covariance_of(self.cov)
        return Model(cov, checked("nugget", self.nugget, zero=True), checked_kinds(chosen, cov))

    def _check_options(self):
        """ValueError for what is wrong at any number of sites, even where few do not need it."""
        check_accuracy(self)
        checked_solver(self.solver)
        check_mean(self.mean)
        tell_unused_mean(self.trend, self.mean)

    @property
    def _accuracy(self):
        return self.rtol, self.neighbours, seed_of(self.random_state), self.solver

    def _estimate(self, model):
        """The model of greatest likelihood, and the covariance system at it where it is known."""
        data, system = self._data(), None
        found = estimate(data, model, self.neighbours, seed_of(self.random_state))
        if self.refine and not found.exact:
            found, system = refined(data, found, *self._accuracy)
        self.converged_ = not found.messages
        for message in found.messages:
            warnings.warn(message, ConvergenceWarning, stacklevel=5)
        self.estimation_, self.parameter_errors_, self.parameter_intervals_ = found, found.errors, found.intervals()
        self.parameters_ = {free.name: free.value for free in replace(found.model, kinds=model.kinds).free}
        return found.model, system

    @any_array
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R², the share of the variance of observations y (n,) at X (n, features) that the predictions explain."""
        y = values(y, X) if array_module(y) is np else to_host(y)
        return r_squared(y, to_host(self.predict(X)), sample_weight)

    def log_marginal_likelihood(self, gradient: bool = False) -> LogLikelihood:
        """The log-likelihood of the training data at the parameters in use: a `LogLikelihood`, float with its error.

        The restricted one where `restricted`. For many sites the full likelihood, not Vecchia's: by the H²-matrix.
        """
        check_is_fitted(self, "weights_")
        chosen = self._model().kinds
        data = self._data()
        options = dict(zip(("rtol", "neighbours", "random_state", "solver"), self._accuracy))
        model = Model(self.cov_, self.nugget_, chosen)
        return data.log_likelihood(model, gradient, system=self._equations.system, **options)

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ..., observations: bool = ...) -> Array: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True], observations: bool = ...) -> tuple[Array, Array]: ...
    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = ...,
        observations: bool = ...,
        *,
        return_cov: bool = ...,
        interval: float | None = ...,
    ) -> Array | tuple[Array, ...]: ...
    @any_array
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        observations: bool = False,
        *,
        return_cov: bool = False,
        interval: float | None = None,
    ) -> Array | tuple[Array, ...]:
        """Best linear unbiased predictions of the field at X (m, features): means (m,), and where asked for one of

        return_std     standard deviations (m,)
        return_cov     the covariance matrix (m, m) of the errors, for up to 5,000 targets
        interval       lower and upper ends (m,), (m,) of the central normal interval of this level, such as 0.95
        observations   all of them for new observations: measurement error included

        Raises ValueError for two of them, and for a level outside (0, 1).
        """
        check_is_fitted(self, "weights_")
        if bool(return_std) + bool(return_cov) + (interval is not None) > 1:
            raise ValueError("predict: expected one of return_std, return_cov and interval, got several")
        X, added = targets(self, X), self.nugget_ if observations else 0.0
        check_level(interval)
        with shown(self.verbose):
            if return_cov:
                mean, cov = joint_covariance(self._equations, X, added)
                return mean + self._known_mean(), cov
            if not return_std and interval is None:
                return self._equations.means(X)[:, 0] + self._known_mean()
            mean, variances, self.variance_error_ = self._equations.means_and_variances(
                X, self.std_rtol, seed_of(self.random_state), added
            )
        self._tell_error()
        mean, std = mean + self._known_mean(), array_module(X).sqrt(variances)
        return (mean, std) if return_std else (mean, *central_interval(mean, std, interval))

    def _tell_error(self):
        """A warning where standard deviations are less accurate than asked for."""
        tell_error(
            self.variance_error_, self.std_rtol, stacklevel=5
        )  # the door of other libraries' arrays is a frame too

    @any_array
    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Seed = 0, observations: bool = False) -> Array:
        """Conditional simulation: samples (m, n_samples) of the field at X (m, features) given the observations.

        observations   samples of new observations: measurement errors added
        """
        check_is_fitted(self, "weights_")
        X, rng = targets(self, X), generator(random_state)
        count = checked_count(n_samples)
        Z = conditional_samples(self._equations, X, count, rng, self.neighbours) + self._known_mean()
        if observations:
            Z += self.nugget_**0.5 * array_module(X).asarray(rng.standard_normal(Z.shape))
        return Z

    def _known_mean(self):
        return float(self.mean) if self.trend is None else 0.0
