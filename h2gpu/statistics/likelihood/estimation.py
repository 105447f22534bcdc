"""Parameters of largest likelihood, by Fisher scoring.

    θ ← θ + (I + λ diag I)⁻¹ ∂ℓ/∂θ      I the information matrix, λ Levenberg's damping

up to EXACT places    the exact likelihood, I the average information
more                  Vecchia's, derivatives in closed form: one sparse pass an iteration (90,000 sites, 2 cores: some
                      seconds), where the H²-matrix's takes minutes; first of some random rows, then of all

Newton's steps need five to ten iterations along the ridge σ² l^(−2ν) = const on which quasi-Newton methods take a
hundred. `refinement` then goes from Vecchia's maximum to that of the full likelihood.

Reference: Guinness (2021), Gaussian process learning via Fisher scoring of Vecchia's approximation.
"""

import logging
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from h2gpu.progress import phase
from h2gpu.statistics.likelihood.bounds import bounds, limits
from h2gpu.statistics.likelihood.judgement import check_free, judged
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood
from h2gpu.statistics.likelihood.moments import dense_moments
from h2gpu.statistics.likelihood.parameters import Model, kept_shapes
from h2gpu.statistics.likelihood.starts import starts_from_variogram
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_rows

logger = logging.getLogger("h2gpu")

EXACT = 1500  # places up to which the exact likelihood is used
SOME = 6000  # rows of Vecchia's approximation that the first iterations use
MOST = 60  # iterations
GAIN = 1e-5  # of the log-likelihood that a further step would bring: it is not taken. Of Vecchia's likelihood of some
OF_SOME, OF_VECCHIA = 1e-2, 1e-3  # rows and of all: a seventh and a twentieth of a standard error
LONGEST = 2.0  # step in the logarithm of a parameter
DAMPING, LARGEST = 1e-3, 1e8
NEAR = 0.02  # of a bound, in the logarithm: where the likelihood still rises there, the bound ends it
EVIDENCE = 0.01  # of log-likelihood: a nugget that brings less is none, a maximum that is less higher is the same
SURE = 0.2  # standard error of a nugget's logarithm: it is far from 0
MOST_LOGARITHM = 700.0  # of an end of an interval
ANGLES, RATIO = 4, 2**0.5  # of axes to start from, and what lengthens the first axis


@dataclass(frozen=True, eq=False)
class Estimate:
    """What was found.

    model        the Model at the maximum
    value        its LogLikelihood, with gradient: of Vecchia's approximation or exact
    covariance   (J, J) of the logarithms of the parameters, the inverse information
    iterations   of the last maximization
    exact        whether the likelihood was
    messages     what the user should know: one sentence each
    """

    model: Model
    value: LogLikelihood
    covariance: np.ndarray
    iterations: int
    exact: bool = False
    messages: tuple = ()

    def told(self, message):
        """The same with one more message."""
        return replace(self, messages=(*self.messages, message))

    @property
    def errors(self):
        """Standard errors of the logarithms, by name: 0.1 means ten per cent; of angles and slopes themselves."""
        found = zip(self.model.free, np.sqrt(np.diagonal(self.covariance)).tolist())
        return {free.name: error / free.unit for free, error in found}

    def intervals(self, level=0.95):
        """Confidence intervals (low, high) by name, on the parameters' own scale: normal in the logarithms."""
        reach = float(ndtri(0.5 + level / 2)) * np.sqrt(np.diagonal(self.covariance))
        theta, free = self.model.theta, self.model.free
        ends = np.stack([theta - reach, theta + reach], axis=1)
        ends = np.clip(ends, -MOST_LOGARITHM, MOST_LOGARITHM)
        return {one.name: tuple(map(float, one.at(end))) for one, end in zip(free, ends)}


def estimate(data, model, neighbours=30, random_state=0, starts=None, tell=True):
    """The Estimate of the model's free parameters from `likelihood.Data`; starts: Models, else from the variogram;
    tell: whether numbers of its shape that are kept are logged.

    Raises ValueError where nothing can be estimated, LinAlgError where the likelihood cannot be evaluated.
    """
    y = data.B[:, 0]
    if len(y) < 3:
        raise ValueError(
            f"y: expected at least 3 places to estimate parameters from, got n_samples = {len(y)}; give the parameters"
        )
    if float(abs(y).max()) <= 1e-12 * float(abs(data.places.values).max()):
        raise ValueError(
            "y: expected values that vary around the trend, to estimate parameters from, got none that do; give the "
            "parameters"
        )
    check_free(model)
    for name, kept in kept_shapes(model) if tell else ():
        logger.warning('estimation: %s %g is kept as given; fit_parameters="all" estimates it too', name, kept)
    model = model.within(data.sites)
    model = model.at(np.clip(model.theta, *limits(model)))
    starts = starts or starts_from_variogram(model, data.sites, y, random_state)
    own = model.at(np.where(np.isfinite(model.theta), model.theta, starts[0].theta))
    with phase("maximum likelihood"):
        if len(y) <= EXACT:
            evaluate = _exact(data)
            found = _best_maximum(evaluate, starts, own)
        else:
            rows = vecchia_rows(data.sites, starts[0].cov, neighbours, random_state)
            found = _best_maximum(_of_vecchia(data, rows.some(SOME, random_state)), starts, own, OF_SOME)
            evaluate = evaluation(data, found.model, neighbours, random_state, known=rows)
            found = _maximum(evaluate, found.model, OF_VECCHIA)
        found = replace(_without_needless_nugget(found, evaluate), exact=len(y) <= EXACT)
    logger.info("maximum likelihood: %.6g at %s after %d iterations", found.value, found.model, found.iterations)
    return judged(found, data)


def evaluation(data, model, neighbours, random_state, full=None, known=None):
    """The function that gives the `Point` of a model: exact up to EXACT places, else Vecchia's near the given model, or
    with options of the `full` likelihood that one; known: as for `vecchia_rows`."""
    if len(data.B) <= EXACT:
        return _exact(data)
    if full is not None:
        return lambda model: _evaluated(data, model, *data.full(model, **full))
    return _of_vecchia(data, vecchia_rows(data.sites, model.cov, neighbours, random_state, known))


def _exact(data):
    def evaluate(model):
        moments = dense_moments(model, data.sites, data.places.noise, data.B, True)
        return _evaluated(data, model, data.combined(model, moments), moments)

    return evaluate


def _of_vecchia(data, rows):
    return lambda model: _evaluated(data, model, *data.vecchia(model, rows))


@dataclass(frozen=True, eq=False)
class Point:
    """A model, its LogLikelihood and information matrix, and the variance of its standardized residuals."""

    model: Model
    value: LogLikelihood
    information: np.ndarray
    dispersion: float


def _evaluated(data, model, value, moments):
    c = data.residual(moments)
    return Point(model, value, data.information(model, moments), float(c @ moments.gram @ c) / data.contrasts)


def _best_maximum(evaluate, starts, own, enough=GAIN):
    """The best maximum reached from each of the starts, and from the user's own values where they are more likely than
    those; the first of equals, so that units do not matter."""
    points = [_started(evaluate, model) for start in starts for model in [_best_axes(evaluate, start)]]
    likeliest = max((point.value for point in points if point), default=-np.inf)
    mine = _started(evaluate, own)
    if mine and mine.value > likeliest:
        points.append(mine)
    best = None
    for point in filter(None, points):
        found = climbed(evaluate, point, enough)
        if best is None or found.value > best.value + EVIDENCE:
            best = found
    if best is None:
        raise _nowhere(starts[0])
    return best


def _best_axes(evaluate, start):
    """The start, or the likeliest of some with other axes where their rotation is free."""
    if not any(free.kind == "rotation" for free in start.free):
        return start
    models = [start.turned(np.pi * k / ANGLES, RATIO) for k in range(ANGLES)]
    points = [point for model in (start, *models) for point in [_attempt(evaluate, model)] if point]
    return max(points, key=lambda point: point.value).model if points else start


def _maximum(evaluate, start, enough=GAIN):
    """The Estimate reached from one starting model, near a maximum."""
    point = _attempt(evaluate, start)
    if point is None:
        raise _nowhere(start)
    return climbed(evaluate, point, enough)


def _nowhere(model):
    return np.linalg.LinAlgError(f"the likelihood cannot be evaluated at the starting values, {model.cov!r}")


def _started(evaluate, model):
    """The Point of a model, its variances rescaled to fit; None where its likelihood cannot be evaluated."""
    point = _attempt(evaluate, model)
    return point and _rescaled(evaluate, point)


def climbed(evaluate, point, enough=GAIN):
    """The Estimate that Fisher scoring reaches from a Point: a further step gains less than `enough`."""
    low, high = bounds(point.model)
    damping, iterations = DAMPING, 0
    while iterations < MOST and damping < LARGEST:
        step, gain = _step(point, damping, low, high)
        if gain < enough:
            break
        new = _attempt(evaluate, point.model.at(point.model.theta + step))
        iterations += 1
        if new is not None and new.value > point.value:
            point, damping = new, max(damping / 10, 1e-12)
        else:
            damping *= 10
    found = Estimate(point.model, point.value, inverse_information(point.information), iterations)
    theta, g = point.model.theta, point.value.gradient
    at_bound = ((theta <= low + NEAR) & (g < 0)) | ((theta >= high - NEAR) & (g > 0))
    for free in (free for free, stopped in zip(point.model.free, at_bound) if stopped):
        found = found.told(f"maximum likelihood: {free.name} ended at {free.value:.4g}, as far as it is allowed to go")
    left = _step(point, 0.0, low, high)[1]
    if left < EVIDENCE:
        return found
    return found.told(f"maximum likelihood: stopped after {iterations} iterations, where {left:.2g} might be gained")


def inverse_information(information):
    """The covariance of the parameters; what the data say nothing about has a large, finite variance."""
    eigenvalues, V = np.linalg.eigh(information)
    return V / np.maximum(eigenvalues, 1e-12 * max(eigenvalues[-1], 1e-300)) @ V.T


def _attempt(evaluate, model):
    """The Point of a model; None where its likelihood cannot be evaluated."""
    try:
        point = evaluate(model)
    except np.linalg.LinAlgError:
        return None
    return point if np.isfinite(point.value) and np.isfinite(point.information).all() else None


def _rescaled(evaluate, point):
    """All variances multiplied by what fits best, where all are free."""
    model = point.model
    scalable = "variance" in model.kinds and (model.nugget == 0 or model.error_is_free)
    if not scalable or point.dispersion <= 0:
        return point
    new = _attempt(evaluate, model.scaled(point.dispersion))
    return new if new is not None and new.value > point.value else point


def _step(point, damping, low, high):
    """The damped step within bounds, none of its parts beyond LONGEST, and what Newton's model says it gains."""
    g, information, theta = point.value.gradient, point.information, point.model.theta
    lower, upper = np.maximum(low - theta, -LONGEST), np.minimum(high - theta, LONGEST)
    inner = ~(((theta <= low) & (g < 0)) | ((theta >= high) & (g > 0)))
    diagonal = np.diagonal(information)
    damped = information + damping * np.diag(np.maximum(diagonal, 1e-12 * diagonal[inner].max(initial=1e-300)))
    step = newton_step(damped, g, lower, upper, inner)
    return step, float(g @ step - 0.5 * step @ information @ step)


def newton_step(information, gradient, lower, upper, inner):
    """I⁻¹ ∂ℓ/∂θ within lower ≤ step ≤ upper (J,), of the parameters `inner`; others stay.

    Of parts that go too far the farthest is cut and the others are found anew, given that one: so a parameter that
    nothing holds, a nugget on its way to 0, does not stop the others, and steps along a ridge stay on it.
    """
    step, inner = np.zeros(len(gradient)), inner.copy()
    while inner.any():
        step[inner] = 0.0
        step[inner] = np.linalg.lstsq(
            information[np.ix_(inner, inner)], (gradient - information @ step)[inner], rcond=None
        )[0]
        beyond = np.where(inner, np.maximum(lower - step, step - upper), 0.0)
        farthest = int(beyond.argmax())
        if beyond[farthest] <= 0:
            break
        step[farthest] = np.clip(step[farthest], lower[farthest], upper[farthest])
        inner[farthest] = False
    return step


def _without_needless_nugget(found, evaluate):
    """The estimate with nugget 0 where the likelihood is the same."""
    model = found.model
    errors = [found.errors[free.name] for free in model.free if free.kind == "nugget"]
    if not errors or max(errors) < SURE:
        return found
    kinds = tuple(kind for kind in model.kinds if kind != "nugget")
    without = replace(model.started(1.0, 1.0, 0.0), kinds=kinds)
    try:
        point = evaluate(without) if without.free else None
    except (ValueError, np.linalg.LinAlgError):  # repeated observations disagree
        return found
    if point is None or not point.value > found.value - EVIDENCE:
        return found
    again = _maximum(evaluate, without)
    return again if again.value > found.value - EVIDENCE else found
