"""Cokriging: best linear unbiased predictions of several variables from all their observations.

    Ẑ_i(x) = f(x)ᵀ β_i + Σ_j k_ij(x)ᵀ w_j,     K w = y − F β,   K = C + N of all (site, variable) observed

Reference: Wackernagel (2003), Multivariate geostatistics, chapters 24 and 25; Goovaerts (1997), section 6.2.
"""

import warnings
from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.covariance import Coregionalization, MultivariateMatern
from h2gpu.covariance.checks import checked
from h2gpu.progress import phase
from h2gpu.statistics.cokriging.collocated import conditioned
from h2gpu.statistics.cokriging.results import CoResults
from h2gpu.statistics.cokriging.stacking import all_variables, stacked, trend_of_variables
from h2gpu.statistics.cokriging.starts import start_of, with_nuggets
from h2gpu.statistics.equations import solved_equations
from h2gpu.statistics.inputs import rows, seed_of
from h2gpu.statistics.likelihood.estimation import estimate
from h2gpu.statistics.likelihood.log_likelihood import Data, LogLikelihood
from h2gpu.statistics.likelihood.parameters import USUAL, Model, checked_kinds
from h2gpu.statistics.refinement import refined
from h2gpu.statistics.scores import interval as central_interval
from h2gpu.statistics.scores import r_squared
from h2gpu.statistics.settings import check_accuracy, check_level, check_mean, tell_unused_mean
from h2gpu.statistics.simulation import checked_count, conditional_samples, generator
from h2gpu.statistics.tables import check_crs, check_same_crs, crs_of, table
from h2gpu.statistics.trends import trend_of
from h2gpu.statistics.variances import tell_error
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Seed, TrendLike


class CoKriging(CoResults, BaseEstimator):
    """Cokriging of p variables, each observed where it was: full by default, collocated data where given.

    cov             `Coregionalization` or `MultivariateMatern`: points are rows of X, the index of a variable is added
    nugget          variance of the measurement error, one number or one a variable
    trend           of each variable with coefficients of its own: None, "constant", "linear" or a function of X
    rtol            of the H²-matrices, for more than 4,096 observations
    fit_parameters  True: variances, correlations, length scales and nuggets of greatest likelihood; "all": smoothness
                    too; or a list of kinds, such as ["variance", "partial"]
    restricted      estimation by the restricted likelihood
    refine          whether estimates by Vecchia's likelihood, of more than 1,500 observations, are corrected by the
                    full one where the two differ
    mean            where trend is None: one number, or one a variable
    neighbours      of Vecchia's approximation
    std_rtol        wanted relative error of standard deviations at more than 4,096 observations; 0: exact
    random_state    seed of everything random

    After fit: `crs_`, `cov_`, `nugget_` (p,), `parameters_`, `parameter_errors_`, `parameter_intervals_`,
    `estimation_`, `converged_`, `trend_coefficients_` (p, q), `iterations_`, `rtol_`, `residual_`, `n_variables_`, and
    after predict(…, return_std=True) `variance_error_`; as for `Kriging`.
    Source: Wackernagel (2003), chapters 24 and 25; Goovaerts (1997), section 6.2.

    >>> import numpy as np
    >>> from h2gpu.covariance import MultivariateMatern
    >>> x = np.linspace(0, 1, 40)[:, None]
    >>> Y = np.stack([np.sin(6 * x[:, 0]), np.sin(6 * x[:, 0]) + 0.1], axis=1)
    >>> Y[10:30, 0] = np.nan  # the second variable tells the first
    >>> cov = MultivariateMatern((1.0, 1.0), 0.2, (1.5, 1.5), 0.95, space_dimension=1)
    >>> kriging = CoKriging(cov).fit(x, Y)
    >>> mean, std = kriging.predict([[0.51]], return_std=True)
    >>> mean.shape, bool(abs(mean[0, 0] - np.sin(6 * 0.51)) < 0.1), bool(std[0, 1] < std[0, 0] < 0.5)
    ((1, 2), True, True)

    Another observation, and means over two intervals:

    >>> from h2gpu.statistics import cells
    >>> kriging.update([[1.1]], [[0.3, np.nan]]).predict_blocks(cells([[0.2], [0.6]], size=0.4)).round(1)
    array([[ 0.7,  0.8],
           [-0.3, -0.2]])
    """

    def __init__(
        self,
        cov: Coregionalization | MultivariateMatern,
        nugget: float | Sequence[float] = 0.0,
        trend: TrendLike = "constant",
        rtol: float = 1e-6,
        *,
        fit_parameters: bool | str | Sequence[str] = False,
        restricted: bool = False,
        refine: bool = True,
        mean: float | Sequence[float] = 0.0,
        neighbours: int = 40,
        std_rtol: float = 0.01,
        random_state: Seed = 0,
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
        self.std_rtol = std_rtol
        self.random_state = random_state

    @any_array
    def fit(self, X: ArrayLike, Y: ArrayLike) -> Self:
        """Solve the cokriging equations for Y (n, p) at X (n, d), NaN where a variable was not observed.

        Raises ValueError for what cannot be cokriged: rows of X that repeat, variables never observed, a number of
        columns that is not the covariance's; LinAlgError for a covariance that is not positive definite.
        """
        p, nuggets = self._options()
        tell_unused_mean(self.trend, self.mean, stacklevel=4)
        self.crs_ = crs_of(X)
        check_crs(self.crs_, self.cov, stacklevel=4)
        data = self._observe(*self._checked(X, Y, p), p)
        cov, system, self.estimation_, self.parameters_, self.converged_ = self.cov, None, None, {}, True
        self.parameter_errors_, self.parameter_intervals_ = {}, {}
        if self.fit_parameters is not False:
            cov, nuggets, system = self._estimated(data, p, nuggets)
        return self._solve(data, cov, nuggets, system)

    def _observe(self, X, Y, p):
        """The Stacked observations, less known means."""
        self.n_features_in_, self.n_variables_, self._observed = X.shape[1], p, (X, Y)
        self._variable_trend = trend_of(self.trend, X.shape[1])
        self._trend = trend_of_variables(self._variable_trend, p)
        return stacked(X, Y - array_module(X).asarray(self._means(p)))

    def _solve(self, data, cov, nuggets, system=None):
        """The equations of Stacked observations at given parameters, whose system may be known."""
        self._places, self._noisy = data.places(nuggets), float(nuggets.max() > 0)
        with phase("cokriging equations"):
            model = Model(cov, self._noisy)
            self._equations = self._solved(model, system)
        self.cov_, self.nugget_ = cov, nuggets
        found = self._equations.regression.change @ to_host(self._equations.gamma)[:, 0]
        self.trend_coefficients_ = found.reshape(self.n_variables_, -1)
        self.iterations_, self.rtol_ = self._equations.system.iterations, self._equations.system.rtol
        self.residual_ = self._equations.residual(self._places, seed_of(self.random_state))
        return self

    def _solved(self, model, system):
        return solved_equations(self._places, self._trend, model, *self._accuracy, system)

    def _data(self, places):
        return Data(places, self._trend, self.restricted)

    @any_array
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        observations: bool = False,
        *,
        collocated: ArrayLike | None = None,
        interval: float | None = None,
    ) -> Array | tuple[Array, ...]:
        """Predictions (m, p) of all variables at X (m, d), and where asked for one of

        return_std     standard deviations (m, p) too
        interval       in their place lower and upper ends (m, p), (m, p) of the central normal interval of this level
        observations   of new observations: measurement errors included
        collocated     (m, p) observations of some variables at X itself, NaN where unknown: each row improves its own
                       predictions (collocated cokriging); for up to 5,000 targets

        Raises ValueError for X of another number of columns or reference system, for both, and for a level outside
        (0, 1).
        """
        check_is_fitted(self, "cov_")
        check_level(interval)
        if return_std and interval is not None:
            raise ValueError("predict: expected one of return_std and interval, got both")
        X, p = self._targets(X), self.n_variables_
        xp, sites, shape = array_module(X), all_variables(X, p), (len(X), p)
        mean, added = xp.asarray(self._means(p)), xp.asarray(self.nugget_)
        if collocated is not None:
            found, variances = conditioned(
                self._equations, sites, p, self.nugget_, np.asarray(_host(collocated), float) - to_host(mean)
            )
        elif not return_std and interval is None:
            return self._equations.means(sites)[:, 0].reshape(shape) + mean
        else:
            found, variances, self.variance_error_ = self._equations.means_and_variances(
                sites, self.std_rtol, seed_of(self.random_state)
            )
            tell_error(self.variance_error_, self.std_rtol)
        found = found.reshape(shape) + mean
        std = xp.sqrt(variances.reshape(shape) + (added if observations else 0.0))
        if interval is not None:
            return found, *central_interval(found, std, interval)
        return (found, std) if return_std else found

    @any_array
    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Seed = 0) -> Array:
        """Conditional simulation: samples (m, p, n_samples) of the fields at X (m, d) given the observations."""
        check_is_fitted(self, "cov_")
        X, p = self._targets(X), self.n_variables_
        count, rng = checked_count(n_samples), generator(random_state)
        Z = conditional_samples(self._equations, all_variables(X, p), count, rng, self.neighbours)
        return Z.reshape(len(X), p, count) + array_module(X).asarray(self._means(p))[:, None]

    @any_array
    def score(self, X: ArrayLike, Y: ArrayLike) -> float:
        """The mean over the variables of R² of the predictions, of Y (n, p) where it is no NaN."""
        Y, found = np.asarray(_host(Y), float), to_host(self.predict(X))
        known = np.isfinite(Y)
        return float(np.mean([r_squared(y[k], f[k]) for y, f, k in zip(Y.T, found.T, known.T) if k.sum() > 1]))

    def log_marginal_likelihood(self) -> LogLikelihood:
        """The log-likelihood of the observations at the parameters in use, a `LogLikelihood`."""
        check_is_fitted(self, "cov_")
        options = dict(zip(("rtol", "neighbours", "random_state", "solver"), self._accuracy))
        return self._data(self._places).log_likelihood(
            Model(self.cov_, self._noisy), system=self._equations.system, **options
        )

    @property
    def _accuracy(self):
        return self.rtol, self.neighbours, seed_of(self.random_state), "iterative"

    def _options(self):
        """Number of variables, and their nuggets (p,); ValueError for wrong options."""
        if not isinstance(self.cov, (Coregionalization, MultivariateMatern)):
            raise ValueError(f"cov: expected a Coregionalization or MultivariateMatern, got {brief(self.cov)}")
        check_accuracy(self)
        p = self.cov.variables
        self._means(p)
        if isinstance(self.trend, (list, tuple)):
            raise ValueError(f'trend: expected None, "constant", "linear" or a function of X, got {brief(self.trend)}')
        given = np.atleast_1d(np.asarray(self.nugget, dtype=object)).tolist()
        if len(given) not in (1, p):
            raise ValueError(f"nugget: expected one number or {p}, one a variable, got {len(given)}")
        return p, np.broadcast_to([checked("nugget", value, zero=True) for value in given], p).copy()

    def _means(self, p):
        """(p,) known means, zero where there is a trend."""
        mean = check_mean(self.mean, p)
        return np.broadcast_to(mean if self.trend is None else 0.0, p)

    def _checked(self, X, Y, p):
        """X (n, d) and Y (n, p) of a fit, checked; arrays on the GPU stay there."""
        X, Y = self._rows(X, Y, p)
        if X.shape[1] != self.cov.space_dimension:
            raise ValueError(f"X: expected {self.cov.space_dimension} coordinates as for cov, got {X.shape[1]}")
        for i in np.flatnonzero(~np.isfinite(to_host(Y)).any(axis=0)):
            raise ValueError(f"Y: expected some observations of each variable, got NaN for all of column {i}")
        return X, Y

    def _rows(self, X, Y, p):
        """X (n, d) of different sites and Y (n, p), NaN where not observed."""
        X, host = self._table(X), _host(Y)
        if np.ndim(host) == 1:
            raise ValueError(f"Y: expected shape ({len(X)}, {p}), a column a variable, got {np.shape(host)}")
        host = check_array(host, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=1)
        if host.shape != (len(X), p):
            raise ValueError(f"Y: expected shape ({len(X)}, {p}), a column a variable, got {host.shape}")
        if len(np.unique(to_host(X), axis=0)) < len(X):
            raise ValueError("X: expected different sites, got some twice; put variables of one site in one row")
        return X, array_module(X).asarray(host)

    def _targets(self, X):
        check_same_crs(self.crs_, crs_of(X))
        X = self._table(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X: expected {self.n_features_in_} coordinates as in fit, got {X.shape[1]}")
        return X

    @staticmethod
    def _table(X):
        xp = array_module(X)
        return xp.asarray(check_array(rows(table(_host(X))), dtype=np.float64))

    def _estimated(self, data, p, nuggets):
        """Covariance and nuggets (p,) of greatest likelihood, and the system at them where it is known."""
        kinds = USUAL if self.fit_parameters is True else self.fit_parameters
        model = Model(with_nuggets(self.cov, nuggets), 0.0)
        model = Model(model.cov, 0.0, checked_kinds(kinds, model.cov))
        start, first = start_of(self.cov, data, self._variable_trend, p, seed_of(self.random_state))
        start = _kept(model, with_nuggets(start, first))
        data, system = self._data(data.places(np.ones(p))), None
        found = estimate(data, model, self.neighbours, seed_of(self.random_state), [start])
        if self.refine and not found.exact:
            found, system = refined(data, found, *self._accuracy)
        self.converged_ = not found.messages
        for message in found.messages:
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self.estimation_, self.parameter_errors_, self.parameter_intervals_ = found, found.errors, found.intervals()
        self.parameters_ = {free.name: free.value for free in Model(found.model.cov, 0.0, model.kinds).free}
        cov, errors = found.model.cov.terms
        return cov, np.array(errors.variance), system


def _kept(model, start):
    """The model with its free numbers taken from another covariance of its kind."""
    return model.at(Model(start, 0.0, model.kinds).theta)


def _host(values):
    """Arrays on the GPU as NumPy's; lists, tables and others as they are."""
    return values if array_module(values) is np else to_host(values)
