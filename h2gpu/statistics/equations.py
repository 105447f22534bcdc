"""The kriging equations of one data set, solved.

    Ẑ(x) = q(x)ᵀ γ + k(x)ᵀ w,   γ = (Qᵀ K⁻¹ Q)⁻¹ Qᵀ K⁻¹ y,   w = K⁻¹ (y − Q γ),   K = C + N

Any data at the same sites cost one more solve: conditional simulation needs that of simulated data.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.covariance.sites import Sites
from h2gpu.statistics.cross import CrossCovariance
from h2gpu.statistics.regression import Regression, regression
from h2gpu.statistics.systems import covariance_system
from h2gpu.statistics.variances import simple_variances, trend_variances

STABLE = 1e-12, 1e-10, 1e-8  # of the norm of the covariance matrix


@dataclass(frozen=True, eq=False)
class Equations:
    """What predictions need; everything where the sites are unless said otherwise.

    sites        (n, dim)
    cov, noise   covariance, and variance of the measurement errors: one number, or (n,) on the host
    trend        `trends.Trend`
    system       of K
    regression   `regression.Regression`
    gamma, w     (p, 1), (n, 1)
    spread       standard deviation of the data, the scale of the accuracy asked for
    rtol         of predictions
    """

    sites: object
    cov: object
    noise: object
    trend: object
    system: object
    regression: Regression
    gamma: object
    w: object
    spread: float
    rtol: float

    def means(self, X, gamma=None, w=None):
        """q γ + C w at X (m, features), (m, count); those of the data if no others are given."""
        gamma, w = (self.gamma, self.w) if w is None else (gamma, w)
        return self._q(X) @ gamma + self._cross(X).products(w, np.full(w.shape[1], self.rtol * self.spread))

    def means_and_variances(self, X, std_rtol, random_state, added=0.0):
        """Means (m,), variances of the errors of prediction of the field (m,) plus `added`, and their VarianceError."""
        xp, cross, q = array_module(X), self._cross(X), self._q(X)
        tolerances = np.full(1 + q.shape[1], self.rtol / len(self.sites) ** 0.5)
        tolerances[0] = self.rtol * self.spread
        P = cross.products(xp.concatenate([self.w, self.regression.solved], axis=1), tolerances)
        variances, error = self._variances(cross, std_rtol, random_state, added)
        q, P, gamma = map(to_host, (q, P, self.gamma))  # sums of a few columns: a GPU would compile them
        variances = variances + trend_variances(self.regression.information, q, P[:, 1:]) + added
        return xp.asarray((q @ gamma)[:, 0] + P[:, 0]), xp.asarray(variances), error

    def _variances(self, cross, std_rtol, random_state, added):
        return simple_variances(self.system, cross, self.noise, std_rtol, random_state, added)

    def means_of(self, X, Y):
        """What kriging of other data Y (n, count) at the same sites predicts at X, (m, count)."""
        return self.means(X, *self.regression.of(self.system.solve(Y)))

    def residual(self, places, random_state, rows=64):
        """Root mean square of y − Q γ − K w in the exact K, at random sites: what the H²-matrix's error leaves."""
        n = len(self.sites)
        some = np.sort(np.random.default_rng(random_state).permutation(n)[:rows])
        i = array_module(self.sites).asarray(some)
        Kw = to_host(self._at(self.sites[i]).products(self.w, np.zeros(1)))
        y, Q, w, gamma = map(to_host, (places.values[i], self.regression.Q[i], self.w[i], self.gamma))
        r = y - (Q @ gamma + Kw)[:, 0] - np.broadcast_to(self.noise, n)[some] * w[:, 0]
        return float(np.sqrt((r**2).mean()))

    def _at(self, targets):
        return CrossCovariance(targets, self.sites, self.cov)

    def _cross(self, X):
        return self._at(self.trend.sites(X))

    def _q(self, X):
        return self.trend.columns(X) @ array_module(X).asarray(self.regression.change)


def solved_equations(places, trend, model, rtol, neighbours, random_state, solver="auto", system=None, added=0.0):
    """The Equations of `places.Places` under a `parameters.Model`, whose system may be known; added: to the noise."""
    sites, noise = trend.sites(places.sites), places.noise(model.nugget) + added
    if system is None:
        system = covariance_system(sites, model.cov, noise, rtol, neighbours, random_state, solver)
    trended, solution = regression(system, places.values[:, None], trend.columns(places.sites))
    gamma, w = trended.of(solution)
    observed = to_host(places.values)
    spread = float(observed.std()) or max(1e-300, float(abs(observed).max()))
    return Equations(sites, model.cov, noise, trend, system, trended, gamma, w, spread, rtol)


def stabilized_equations(places, trend, model, *accuracy):
    """The Equations with the least of some nuggets with which they can be solved, and that nugget.

    For a covariance matrix that is singular to rounding, as that of smooth fields on dense sites is. Raises LinAlgError
    where more than rounding is missing.
    """
    norm = Sites.of(trend.sites(places.sites), model.cov).norm
    for part in STABLE:
        try:
            return solved_equations(places, trend, model, *accuracy, added=part * norm), part * norm
        except np.linalg.LinAlgError as error:
            last = error
    raise last
