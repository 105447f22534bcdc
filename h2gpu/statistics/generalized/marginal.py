"""Laplace's approximation of the marginal likelihood, and its gradient.

    ℓ_L = ℓ(η̂) − ½ aᵀ C a − ½ (log det K + Σ log W)             [ − ½ log det QᵀK⁻¹Q + ½ p log 2π ]   restricted
    ∂ℓ_L/∂θ = −½ tr(K⁻¹ ∂C) + ½ aᵀ ∂C a + (W⁻¹ s)ᵀ P ∂C a
    ∂ℓ_L/∂α = ∂ℓ + ½ Σ … ∂W + (W⁻¹ s)ᵀ (∂g − P W⁻¹ ∂g),          s = −½ diag(Σ) ∂W/∂η,   diag Σ = W⁻¹ − W⁻² diag K⁻¹

θ parameters of the covariance, α of the likelihood, P = K⁻¹ − K⁻¹Q (QᵀK⁻¹Q)⁻¹QᵀK⁻¹. The Gaussian likelihood's moments
of B = [u, Q, W⁻¹ s, W⁻¹ ∂g] hold all of it. Restricted: diag P in place of diag K⁻¹; the trend has a flat prior.

Reference: Rasmussen & Williams (2006), section 5.5.1; Breslow & Clayton (1993) for the trend.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.statistics import systems
from h2gpu.statistics.generalized.mode import Mode, mode
from h2gpu.statistics.generalized.working_systems import exact_systems, inverse_diagonal, vecchia_systems
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood
from h2gpu.statistics.likelihood.moments import dense_moments
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_moments


@dataclass(frozen=True, eq=False)
class Latent:
    """The problem: `observed.Observed`, trend columns Q (places, p) on the host, sites (places, dim) of the field."""

    observed: object
    Q: np.ndarray
    sites: object
    restricted: bool = False
    independent_log_likelihood = None  # has no closed form

    def exact(self, model, likelihood, start=None, **options):
        """The Mode with the full covariance; options of `exact_systems`."""
        made = exact_systems(self.sites, model.cov, **options)
        return mode(self.observed, likelihood, self.Q, made, start)

    def value(self, found, likelihood):
        """ℓ_L at a Mode, whose system knows log det K: a LogLikelihood with its standard error."""
        told = found.system.log_determinant
        return LogLikelihood(self._value(found, likelihood, told.value), 0.5 * told.standard_error)

    def with_gradient(self, model, likelihood, rows=None, start=None):
        """ℓ_L with its gradient by θ, then α, and the Mode; by Vecchia's approximation where rows are given.

        model   a Model without free measurement error
        """
        made = (lambda noise: systems.dense_system(self.sites, model.cov, noise)) if rows is None else None
        made = made or vecchia_systems(rows, model.cov)
        found = mode(self.observed, likelihood, self.Q, made, start)
        own = list(self.observed.own_slopes(likelihood, found.eta))
        variances, s = self._spread(found, likelihood)
        columns = [found.working, *self.Q.T, s / found.weight, *(dg / found.weight for _, dg, _ in own)]
        B = array_module(self.sites).asarray(np.stack(columns, axis=1))
        given = Model(model.cov, 1.0, model.kinds), self.sites
        sloped = bool(model.free)
        if rows is None:
            moments = dense_moments(*given, lambda v: v / found.weight, B, sloped, found.system)
        else:
            moments = vecchia_moments(given[0], rows, lambda v: v / found.weight, B, sloped)
        gradient = self._gradient(found, moments, own, variances, s)
        return LogLikelihood(self._value(found, likelihood, moments.log_determinant), 0.0, gradient), found

    def _value(self, found, likelihood, log_determinant):
        value = found.penalized(self.observed, likelihood, self.Q)
        value -= 0.5 * (log_determinant + float(np.log(found.weight).sum()))
        if self.restricted:
            p = self.Q.shape[1]
            value += 0.5 * (p * np.log(2 * np.pi) - np.linalg.slogdet(found.information)[1])
        return value

    def _spread(self, found: Mode, likelihood):
        """diag Σ and s, (places,)."""
        inverse = inverse_diagonal(found.system)
        if self.restricted:
            Z = to_host(found.solved)
            inverse = inverse - np.einsum("ij,ij->i", Z, np.linalg.solve(found.information, Z.T).T)
        variances = 1 / found.weight - inverse / found.weight**2
        return variances, -0.5 * variances * self.observed.weight_slope(likelihood, found.eta)

    def _gradient(self, found, moments, own, variances, s):
        """(θ and α,) from the moments of B."""
        p, M, D = self.Q.shape[1], moments.gram, moments.gram_slopes
        others = np.delete(np.arange(len(M)), np.arange(1, 1 + p))
        c = np.zeros((len(M), len(others)))  # columns of B, free of their trend
        c[others, np.arange(len(others))] = 1
        c[1 : 1 + p] = -np.linalg.solve(M[1 : 1 + p, 1 : 1 + p], M[1 : 1 + p, others])
        slopes = np.empty(0)
        if D is not None:
            slopes = -0.5 * moments.slopes - np.einsum("c,jcd,d->j", 0.5 * c[:, 0] + c[:, 1], D, c[:, 0])
        if self.restricted and p and D is not None:
            inverse = np.linalg.inv(M[1 : 1 + p, 1 : 1 + p])
            slopes -= 0.5 * np.einsum("dc,jcd->j", inverse, D[:, 1 : 1 + p, 1 : 1 + p])
        P = c.T @ M @ c
        alphas = [
            value - 0.5 * variances @ dw + (s / found.weight) @ dg - P[1, 2 + j]
            for j, (value, dg, dw) in enumerate(own)
        ]
        return np.concatenate([slopes, alphas])
