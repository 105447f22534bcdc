"""The likelihood of a Gaussian field, and its gradient by the logarithms of the parameters.

    ℓ = −½ (log det K + Q + n log 2π),   Q = min_β (y − F β)ᵀ K⁻¹ (y − F β)
    restricted: ℓ − ½ (log det QᵀK⁻¹Q − p log 2π), the density of n − p orthonormal contrasts

Exact for up to DENSE sites. For more, by a direct factorization without noise (`direct_moments`), or log det K by
stochastic Lanczos quadrature on the H²-matrix with its standard
error, the rest exact to the solves' residual. The gradient then is by Hutchinson traces: one H²-matrix of ∂K/∂θ_j
serves log det and quadratic form, no positive definiteness hangs on its accuracy, and Vecchia's share of the trace is
taken out exactly (differences of the likelihood need two accurate matrices a parameter, and divide their errors by h).

Reference: Mardia & Marshall (1984); Harville (1974) for the restricted likelihood.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from h2gpu.arrays import any_array, array_module
from h2gpu.covariance.checks import checked
from h2gpu.statistics import systems
from h2gpu.statistics.inputs import covariance_of, observations, seed_of, weighted
from h2gpu.statistics.likelihood.direct_moments import direct_moments
from h2gpu.statistics.likelihood.hierarchical_moments import hierarchical_moments
from h2gpu.statistics.likelihood.moments import dense_moments
from h2gpu.statistics.likelihood.parameters import USUAL, Model, checked_kinds
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_moments
from h2gpu.statistics.places import places_of
from h2gpu.statistics.regression import orthonormalizer
from h2gpu.statistics.systems.direct import checked_solver, is_direct
from h2gpu.statistics.trends import trend_of
from h2gpu.typing import Array, ArrayLike, Seed, Solver, TrendLike


class LogLikelihood(float):
    """A log-likelihood: a float that knows how accurate it is.

    standard_error   of the value over the probes; 0 where exact
    gradient         (J,) by the logarithms of the parameters (angles and slopes: by themselves; partial correlations:
                     by artanh), or None
    gradient_error   (J,) standard errors of the gradient, or None
    names            of the J parameters

    Raises nothing: a float with what `log_likelihood` knows of it.
    Source: Mardia & Marshall (1984); Harville (1974) for the restricted one.

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential
    >>> from h2gpu.statistics import log_likelihood
    >>> told = log_likelihood(Exponential(), np.array([[0.0], [1.0]]), np.array([1.0, -1.0]), gradient=True)
    >>> told.names, np.shape(told.gradient) == np.shape(told.names)
    (['variance', 'length_scale', 'nugget'], True)
    """

    standard_error: float
    gradient: Array | None
    gradient_error: Array | None
    names: Sequence[str]

    def __new__(
        cls,
        value: float,
        standard_error: float = 0.0,
        gradient: Array | None = None,
        gradient_error: Array | None = None,
        names: Sequence[str] = (),
    ) -> Self:
        self = super().__new__(cls, value)
        self.standard_error, self.gradient, self.gradient_error = standard_error, gradient, gradient_error
        self.names = list(names)
        return self

    def __getnewargs__(self):
        return float(self), self.standard_error, self.gradient, self.gradient_error, self.names


@any_array
def log_likelihood(
    cov: Any,
    X: ArrayLike,
    y: ArrayLike,
    nugget: float = 0.0,
    trend: TrendLike = None,
    *,
    mean: float = 0.0,
    restricted: bool = False,
    gradient: bool = False,
    parameters: Sequence[str] = USUAL,
    sample_weight: ArrayLike | None = None,
    rtol: float = 1e-6,
    neighbours: int = 30,
    probes: int = 16,
    solver: Solver = "auto",
    random_state: Seed = 0,
) -> "LogLikelihood":
    """The log-likelihood of observations y (n,) at X (n, features) of a Gaussian field: a LogLikelihood.

    cov            `h2gpu.covariance` value, scikit-learn kernel or GSTools model
    nugget         variance of the measurement error
    trend, mean    as for `Kriging`; coefficients take their best values (profile likelihood)
    restricted     the restricted likelihood, of contrasts that are free of the trend
    gradient       also by the logarithms of the parameters
    parameters     some of "variance", "length_scale", "nugget", "smoothness", or names of numbers of an Expression
    sample_weight  (n,): observation i has the error variance nugget/sample_weight[i], and is left out for 0
    rtol, neighbours, probes   of the H²-matrix or direct factorization, Vecchia's approximation and the
                   log-determinant, for more than 4,096 sites
    solver         "direct": no Monte Carlo noise; the gradient by one-sided differences of this noiseless value at one
                   choice of skeletons, as probes would leave a quarter of the score's own standard deviation.
                   "iterative": by probes. "auto": direct in the plane and on a sphere, where measured to be faster

    Raises ValueError for bad arguments, LinAlgError for a covariance that is not positive definite.
    Source: Mardia & Marshall (1984); Harville (1974) for the restricted one.

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential
    >>> sites, y = np.array([[0.0], [1.0]]), np.array([1.0, -1.0])
    >>> K = Exponential()(sites)
    >>> exact = -0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(2 * np.pi * K)[1])
    >>> bool(np.isclose(log_likelihood(Exponential(), sites, y), exact))
    True
    """
    cov = covariance_of(cov)
    model = Model(cov, checked("nugget", nugget, zero=True), checked_kinds(parameters, cov))
    X, y, names = observations(X, y, trend)
    X, y, weights = weighted(X, y, sample_weight)
    trend = trend_of(trend, X.shape[1], names)
    places = places_of(X, y - (mean if trend.kind is None else 0.0), weights)
    data = Data(places, trend, restricted)
    options = {"rtol": rtol, "neighbours": neighbours, "probes": probes, "random_state": seed_of(random_state)}
    options["solver"] = checked_solver(solver)
    return data.log_likelihood(model, gradient, **options)


class Data:
    """Observations ready for likelihoods: places, and the columns B = [y, Q], y free of its least-squares trend.

    restricted   whether the restricted likelihood is meant
    """

    def __init__(self, places, trend, restricted=False):
        F = trend.columns(places.sites)
        xp = array_module(F)
        Q = F @ xp.asarray(orthonormalizer(F))
        y = places.values - Q @ (Q.T @ places.values)
        self.places, self.restricted, self.sites = places, restricted, trend.sites(places.sites)
        self.B = xp.concatenate([y[:, None], Q], axis=1)
        self.p = Q.shape[1]
        if restricted and len(y) <= self.p:
            raise ValueError(f"restricted: expected more places than the {self.p} trend columns, got {len(y)}")

    @property
    def contrasts(self):
        """Number of observations, less the trend's coefficients where restricted."""
        return len(self.B) + self.places.repeats - (self.p if self.restricted else 0)

    @property
    def independent_log_likelihood(self):
        """The largest log-likelihood of independent data of one variance; None where it has no closed form."""
        if self.restricted or self.places.repeats or not (self.places.weights == self.places.weights[0]).all():
            return None
        n = len(self.B)
        return -0.5 * n * (np.log(2 * np.pi * float((self.B[:, 0] ** 2).mean())) + 1)

    def log_likelihood(self, model, gradient=False, **options):
        """The LogLikelihood: exact for up to DENSE places, else by the direct factorization or the H²-matrix."""
        model = model.within(self.sites)
        found = self.full(model, gradient, **options)[0]
        if found.gradient is None or model.extents is None:
            return found
        units = np.array([free.unit for free in model.free])  # slopes on their own scale
        errors = None if found.gradient_error is None else units * found.gradient_error
        return LogLikelihood(found, found.standard_error, units * found.gradient, errors, found.names)

    def full(self, model, gradient=True, **options):
        """The same, and its Moments."""
        moments = self._moments(model, gradient, **options)
        return self.combined(model, moments), moments

    def _moments(self, model, gradient, *, solver="auto", system=None, **options):
        """By the system that is given, else by the solver."""
        given = model, self.sites, self.places.noise, self.B, gradient
        if len(self.B) <= systems.DENSE:
            return dense_moments(*given, system)
        direct = (
            is_direct(solver, self.sites, model.cov, likelihood=True)
            if system is None
            else hasattr(system, "explained_at")
        )
        if direct:
            own = {name: value for name, value in options.items() if name != "probes"}
            try:
                return direct_moments(*given, system=system, **own)
            except np.linalg.LinAlgError:
                if solver == "direct":
                    raise
        return hierarchical_moments(*given, system=None if direct else system, **options)

    def system(self, model, **options):
        """The covariance system of a model, for likelihoods."""
        noise = self.places.noise(model.nugget)
        return systems.covariance_system(self.sites, model.cov, noise, likelihood=True, **options)

    def vecchia(self, model, rows, gradient=True):
        """The LogLikelihood by Vecchia's approximation, and its Moments."""
        moments = vecchia_moments(model, rows, self.places.noise, self.B, gradient)
        return self.combined(model, moments), moments

    def information(self, model, moments):
        """The (J, J) information matrix of the parameters' logarithms, repeated observations included."""
        information = moments.information(self.residual(moments))
        if model.error_is_free:
            information[-1, -1] += 0.5 * self.places.repeats
        return information

    def residual(self, moments):
        """c with r = B c the residual of the best trend; Q = cᵀ M c."""
        M = moments.gram
        return np.concatenate([[1.0], -np.linalg.solve(M[1:, 1:], M[1:, 0])])

    def combined(self, model, moments):
        """The LogLikelihood of a model that has these moments."""
        M, c = moments.gram, self.residual(moments)
        value = -0.5 * (moments.log_determinant + c @ M @ c + self._constant)
        if self.restricted:
            value -= 0.5 * np.linalg.slogdet(M[1:, 1:])[1]
        value += self.places.log_likelihood(model.nugget)
        if moments.slopes is None:
            return LogLikelihood(value, 0.5 * moments.error)
        slopes = moments.slopes + np.einsum("c,jcd,d->j", c, moments.gram_slopes, c)
        if self.restricted and self.p:
            slopes = slopes + np.einsum("dc,jcd->j", np.linalg.inv(M[1:, 1:]), moments.gram_slopes[:, 1:, 1:])
        slopes = -0.5 * slopes + self._slopes_of_repeats(model)
        errors = None if moments.slope_errors is None else 0.5 * moments.slope_errors
        return LogLikelihood(value, 0.5 * moments.error, slopes, errors, model.names)

    @property
    def _constant(self):
        return (len(self.B) - (self.p if self.restricted else 0)) * np.log(2 * np.pi)

    def _slopes_of_repeats(self, model):
        """What repeated observations add to the derivative by log nugget."""
        slopes, places = np.zeros(len(model.names)), self.places
        if places.repeats and model.error_is_free:
            slopes[-1] = 0.5 * (places.spread / model.nugget - places.repeats)
        return slopes
