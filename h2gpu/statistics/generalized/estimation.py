"""Parameters of greatest Laplace marginal likelihood, of covariance and likelihood together.

    maximize ℓ_L(log θ, log α) by L-BFGS-B with its gradient; then (−∂²ℓ_L)⁻¹ by its differences

Up to EXACT places dense; more by Vecchia's approximation, first on SOME of the places, then on all.
Reference: Rasmussen & Williams (2006), section 5.5.1.
"""

import logging
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize

from h2gpu.arrays import array_module
from h2gpu.progress import phase
from h2gpu.statistics.generalized.marginal import Latent
from h2gpu.statistics.likelihood.bounds import bounds, limits
from h2gpu.statistics.likelihood.estimation import EXACT, Estimate, inverse_information
from h2gpu.statistics.likelihood.judgement import check_free, judged
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood
from h2gpu.statistics.likelihood.parameters import Free, Model
from h2gpu.statistics.likelihood.starts import starts_from_variogram
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_rows

logger = logging.getLogger("h2gpu")

SOME = 2000  # places that the first iterations use
STEP = 1e-3  # of logarithms, for the curvature
MOST = 100  # iterations
TINY = 1e-6  # of a gradient's entries: converged
LEFT = 0.01  # of log-likelihood that may be left to gain
CLIMBED = 3  # starts, the likeliest, of a likelihood that is not log-concave
NARROWER = 0.2  # of the scale that the variogram shows: a second start
REACH = 1e3  # factor from the start of a number of the likelihood, at most


@dataclass(frozen=True, eq=False)
class Joint:
    """A covariance's Model and a likelihood, and which of the likelihood's numbers are free."""

    model: Model
    likelihood: object
    own: tuple

    @property
    def cov(self):
        """The covariance."""
        return self.model.cov

    @property
    def _chosen(self):
        return np.array([name in self.own for name in self.likelihood.names], bool)

    @property
    def free(self):
        """The free numbers: of the covariance, then of the likelihood."""
        return [*self.model.free, *(Free("number", name, getattr(self.likelihood, name)) for name in self.own)]

    @property
    def names(self):
        """Of the free numbers."""
        return [free.name for free in self.free]

    @property
    def theta(self):
        """Their logarithms; angles as they are."""
        return np.concatenate([self.model.theta, self.likelihood.theta[self._chosen]])

    def at(self, theta):
        """The same with other free numbers."""
        count, alpha = len(self.model.free), self.likelihood.theta
        alpha[self._chosen] = theta[count:]
        likelihood = self.likelihood.at(alpha) if self.own else self.likelihood
        return Joint(self.model.at(theta[:count]) if count else self.model, likelihood, self.own)

    def kept(self, gradient):
        """The entries of a gradient that belong to free numbers."""
        return gradient[np.concatenate([np.ones(len(self.model.free), bool), self._chosen])]


def estimate(latent, joint, neighbours=30, random_state=0):
    """The Estimate, its model a Joint, from a `marginal.Latent`, and its mode.

    Its mode is that of the likeliest parameters evaluated (places,), from which a further search finds it again: a
    likelihood that is not log-concave may have several.

    Raises ValueError where nothing can be estimated, LinAlgError where the likelihood cannot be evaluated.
    """
    n = len(latent.Q)
    if n < 3:
        raise ValueError(
            f"y: expected at least 3 places to estimate parameters from, got n_samples = {n}; give the parameters"
        )
    if np.ptp(latent.observed.start(joint.likelihood)) == 0:
        raise ValueError("y: expected observations that vary, to estimate parameters from; got equal ones")
    if joint.model.kinds:
        check_free(joint.model)
        joint = replace(joint, model=joint.model.within(latent.sites))
    with phase("maximum marginal likelihood"):
        if n <= EXACT:
            target = _Target(latent, None)
            found = _from_starts(target, _starts(latent, joint, random_state))
        else:
            few = _thinned(latent, random_state)
            starts = _starts(latent, joint, random_state)
            rows = vecchia_rows(few.sites, starts[0].cov, neighbours, random_state)
            first = _from_starts(_Target(few, rows), starts).model
            rows = vecchia_rows(latent.sites, first.cov, neighbours, random_state)
            target = _Target(latent, rows)
            found = _from_starts(target, [first])
    logger.info("maximum marginal likelihood: %.6g after %d iterations", found.value, found.iterations)
    return judged(replace(found, exact=n <= EXACT), latent), target.best[1]


def _thinned(latent, random_state):
    """The problem at some of its places."""
    n = len(latent.Q)
    some = np.sort(np.random.default_rng(random_state).permutation(n)[:SOME])
    Q, sites = latent.Q[some], latent.sites[array_module(latent.sites).asarray(some)]
    Q = np.linalg.qr(Q)[0] if Q.shape[1] else Q
    return Latent(latent.observed.some(some), Q, sites, latent.restricted)


def _starts(latent, joint, random_state):
    """Joints to start from: the user's values where they can be, and those of the variogram of the observations as
    predictors."""
    found, eta = [], latent.observed.start(joint.likelihood)
    eta = eta - latent.Q @ (latent.Q.T @ eta)
    if joint.model.free and np.ptp(eta) > 0:
        seen = Model(joint.cov, 1.0, (*joint.model.kinds, "nugget"))
        for start in starts_from_variogram(seen, latent.sites, eta, random_state):
            likelihood = joint.likelihood
            if "scale" in joint.own and start.nugget > 0:
                likelihood = replace(likelihood, scale=float(np.sqrt(start.nugget)))
            found.append(Joint(replace(joint.model, cov=start.cov), likelihood, joint.own))
            if not likelihood.log_concave and "scale" in joint.own:  # what is far off may be of the field, or not
                found.append(replace(found[-1], likelihood=replace(likelihood, scale=likelihood.scale * NARROWER)))
    low, high = limits(joint)
    own = joint.at(np.clip(joint.theta, low, high))
    return [*found, *([own] if np.isfinite(own.theta).all() else [])]


class _Target:
    """−ℓ_L and its gradient at θ, the last mode the start of the next; the greatest ℓ_L so far and its mode."""

    def __init__(self, latent, rows):
        self.latent, self.rows, self.eta, self.best = latent, rows, None, (-np.inf, None)

    def __call__(self, joint):
        """The LogLikelihood, its gradient that of the free numbers; None where there is none."""
        try:
            value, found = self.latent.with_gradient(joint.model, joint.likelihood, self.rows, self.eta)
        except np.linalg.LinAlgError:
            return None
        if not (np.isfinite(value) and np.isfinite(value.gradient).all()):
            return None
        self.eta = found.eta
        if value > self.best[0]:
            self.best = float(value), found.eta
        return LogLikelihood(value, 0.0, joint.kept(value.gradient), None, joint.names)

    def afresh(self, joint):
        """The same, its mode found from the observations."""
        self.eta = None
        return self(joint)

    def told(self, joint):
        """The same for a minimizer."""
        value = self(joint)
        return (1e300, np.zeros(len(joint.theta))) if value is None else (-float(value), -value.gradient)


def _from_starts(target, starts):
    """The Estimate reached from the likeliest of some starts; the best from several where there may be many maxima."""
    values = [target.afresh(start) for start in starts]
    good = [i for i, value in enumerate(values) if value is not None]
    if not good:
        raise np.linalg.LinAlgError(f"the likelihood cannot be evaluated at the starting values, {starts[0].cov!r}")
    good.sort(key=lambda i: values[i], reverse=True)
    climbed = []
    for i in good[: 1 if starts[0].likelihood.log_concave else CLIMBED]:
        target.eta = None
        climbed.append(_maximum(target, starts[i]))
    return max(climbed, key=lambda found: found.value)


def _maximum(target, start):
    """The Estimate reached from one start."""
    low, high = _bounds(start)
    search = scipy.optimize.minimize(
        lambda theta: target.told(start.at(theta)),
        start.theta,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high)),
        options={"maxiter": MOST, "ftol": 1e-10, "gtol": TINY},
    )
    joint = start.at(search.x)
    value = target(joint)
    covariance = inverse_information(_curvature(target, joint))
    joint, value = _polished(target, joint, value, covariance, low, high)
    return _judged(Estimate(joint, value, covariance, int(search.nit)), low, high)


def _polished(target, joint, value, covariance, low, high):
    """After a Newton step, where it gains: modes are found to a tolerance, which ends line searches early."""
    new = joint.at(np.clip(joint.theta + covariance @ value.gradient, low, high))
    better = target(new)
    return (new, better) if better is not None and better > value else (joint, value)


def _bounds(joint):
    """Lowest and highest logarithms, of all free numbers."""
    low, high = bounds(joint)
    own = np.arange(len(low)) >= len(joint.model.free)
    reach = np.log(REACH)
    return np.where(own, joint.theta - reach, low), np.where(own, joint.theta + reach, high)


def _curvature(target, joint):
    """−∂²ℓ_L by central differences of the gradient, made positive definite."""
    theta, columns = joint.theta, []
    for j in range(len(theta)):
        step = np.zeros(len(theta))
        step[j] = STEP
        high, low = target(joint.at(theta + step)), target(joint.at(theta - step))
        if high is None or low is None:
            return np.zeros((len(theta), len(theta)))
        columns.append((low.gradient - high.gradient) / (2 * STEP))
    H = np.stack(columns)
    values, V = np.linalg.eigh(0.5 * (H + H.T))
    return V * np.maximum(values, 0) @ V.T


def _judged(found, low, high):
    """The Estimate with messages about bounds, and about what might be gained."""
    theta, g = found.model.theta, found.value.gradient
    stopped = ((theta <= low + 1e-9) & (g < 0)) | ((theta >= high - 1e-9) & (g > 0))
    for free in (free for free, at_bound in zip(found.model.free, stopped) if at_bound):
        found = found.told(
            f"maximum marginal likelihood: {free.name} ended at {free.value:.4g}, as far as it is allowed to go"
        )
    inside = np.where(stopped, 0.0, g)
    left = 0.5 * float(inside @ found.covariance @ inside)
    if left < LEFT:
        return found
    return found.told(
        f"maximum marginal likelihood: stopped after {found.iterations} iterations, where {left:.2g} might be gained"
    )
