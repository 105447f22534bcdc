"""A model fitted to an empirical variogram by weighted least squares.

    min_θ Σ_j w_j (γ̂_j − γ(h_j; θ))²,   γ(h) = nugget + C(0) − C(h)
    w_j = N_j / γ(h_j; θ)²  (Cressie)        N_j / h_j²  (gstat)        N_j

From a grid of length scales, for each of which nugget and variance are a linear fit, by Gauss–Newton in the parameters'
logarithms. Reference: Cressie (1985), Fitting variogram models by weighted least squares.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from h2gpu.covariance import Covariance
from h2gpu.covariance.base import PLANE
from h2gpu.covariance.checks import checked
from h2gpu.statistics.inputs import covariance_of
from h2gpu.statistics.likelihood.judgement import check_free
from h2gpu.statistics.likelihood.parameters import Model, checked_kinds
from h2gpu.statistics.likelihood.starts import nonnegative
from h2gpu.statistics.variography.pairs import unit_vector
from h2gpu.texts import brief

WEIGHTS = "model", "distance", "pairs"
STRETCHES = 40
NONE = 1e-6  # of the sill: a nugget below is none
CHOSEN = "variance", "length_scale", "nugget"
BEYOND = 2.0  # times the longest distance: of a longer length scale the classes see a nearly straight line


@dataclass(frozen=True, eq=False)
class FittedVariogram:
    """What was found.

    cov, nugget   as `Kriging` takes them
    error         Σ_j w_j (γ̂_j − γ_j)²
    gamma         function of distances h (any shape): γ(h) of the model
    messages      what the user should know: one sentence each
    """

    cov: Covariance
    nugget: float
    error: float
    gamma: object
    messages: tuple = ()


def fitted(empirical, cov, nugget, parameters=None, weights="model"):
    """See `EmpiricalVariogram.fit`."""
    if weights not in WEIGHTS:
        raise ValueError(f"weights: expected one of {', '.join(WEIGHTS)}, got {brief(weights)}")
    cov = covariance_of(cov)
    kinds = checked_kinds(CHOSEN if parameters is None else parameters, cov)
    start = Model(cov, checked("nugget", nugget, zero=True), kinds)
    check_free(start)
    if not empirical.value.any():
        raise ValueError("variogram: expected values that vary, to fit a model to, got 0 in all classes")
    start = _best_start(empirical, start, weights)

    def residuals(theta):
        return _residuals(empirical, start.at(theta), weights)

    free = np.isfinite(start.theta)
    found = start
    if free.any():
        low, high = start.theta - 12, start.theta + 12
        found = start.at(least_squares(residuals, start.theta, bounds=(low, high), x_scale="jac").x)
    found = _without_needless_nugget(empirical, found, weights)
    error = float((_residuals(empirical, found, weights) ** 2).sum())
    told = tuple(_beyond(empirical, found))
    return FittedVariogram(found.cov, found.nugget, error, lambda h: _gamma(empirical, found, h), told)


def _best_start(empirical, model, weights):
    """The model with the best of a grid of length scales, nugget and variance by least squares where they are free."""
    least = empirical.value[empirical.value > 0].min()  # a class of equal values has 0, whose weight would be infinite
    h, w = empirical.distance, np.sqrt(_weights(empirical, np.maximum(empirical.value, least), weights))
    lengths = [free.value for free in model.free if free.kind == "length_scale"]
    stretches = np.geomspace(0.2 * h[0], 4 * h[-1], STRETCHES) / np.exp(np.mean(np.log(lengths))) if lengths else [1.0]
    best = None
    for stretch in stretches:
        candidate = model.scaled(1.0, stretch)
        total = candidate.cov.variance_at_zero
        rise = (_gamma(empirical, candidate, h) - candidate.nugget - candidate.cov.nugget) / total
        basis = np.stack([np.ones(len(h)), rise], axis=1) * w[:, None]
        (nugget, variance), error = nonnegative(basis, empirical.value * w)
        if best is None or error < best[0]:
            best = error, stretch, max(variance, 1e-3 * (nugget + variance)), max(nugget, 1e-3 * variance)
    _, stretch, variance, nugget = best
    factor = variance / model.cov.variance_at_zero if "variance" in model.kinds else 1.0
    start = model.started(factor, stretch, nugget) if "nugget" in model.kinds else model.scaled(factor, stretch)
    return start


def _beyond(empirical, model):
    """A message for each length scale that was fitted and that the classes of distance cannot tell."""
    longest = float(empirical.distance[-1])
    for free in model.free:
        if free.kind == "length_scale" and free.value > BEYOND * longest:
            yield (
                f"variogram: {free.name} {free.value:.4g} is far beyond the longest distance, {longest:.4g}, where the "
                "variogram still rises: the classes do not tell it and the variance apart; a trend that is left out "
                "does that, or `longest` is too short"
            )


def _gamma(empirical, model, h):
    """γ(h) of a model, in the direction and on the surface of the variogram."""
    h, cov = np.asarray(h, np.float64), model.cov
    if empirical.sphere is not None:
        if cov.embedding in (None, PLANE):
            raise ValueError(
                f"cov: expected one on the sphere, as the variogram is, got {brief(cov)}; take on_sphere(…)"
            )
        degrees = np.rad2deg(h / empirical.sphere).ravel()
        C = cov([[0.0, 0.0]], np.stack([degrees, np.zeros(len(degrees))], axis=1))[0].reshape(h.shape)
    elif cov.isotropic:
        C = cov.at_distance(h)
    elif empirical.direction is None:
        raise ValueError(f"cov: expected one of the distance alone, or variogram(…, direction=…), got {brief(cov)}")
    else:
        u = unit_vector(empirical.direction)
        C = cov([0 * u], h.reshape(-1, 1) * u)[0].reshape(h.shape)
    return np.where(h > 0, model.nugget + cov.nugget + cov.variance_at_zero - C, 0.0)


def _weights(empirical, gamma, weights):
    N = empirical.count
    return {"model": N / gamma**2, "distance": N / empirical.distance**2, "pairs": N * 1.0}[weights]


def _residuals(empirical, model, weights):
    gamma = _gamma(empirical, model, empirical.distance)
    return np.sqrt(_weights(empirical, np.maximum(gamma, 1e-300), weights)) * (empirical.value - gamma)


def _without_needless_nugget(empirical, model, weights):
    """The model with nugget 0 where it is all but none."""
    if not any(free.kind == "nugget" for free in model.free):
        return model
    total = model.cov.variance_at_zero + model.nugget + model.cov.nugget
    return model.started(1.0, 1.0, 0.0) if model.nugget + model.cov.nugget < NONE * total else model
