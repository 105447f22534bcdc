"""The moments of an H²-matrix, with derivatives by Hutchinson traces.

    tr(K⁻¹ ∂K) = tr(W ∂K Wᵀ) + E[aᵀ ∂K (b − a)],     a = Wᵀ z,   b = K⁻¹ W⁻¹ z,   z of random signs

The first term is exact, row by row of Vecchia's W; b − a vanishes as Wᵀ W → K⁻¹, and so does the spread of the second.
∂K is an H²-matrix itself, as accurate as (K⁻¹ y)ᵀ ∂K (K⁻¹ y) needs: no positive definiteness hangs on it.
"""

from functools import partial

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.covariance.sites import Sites
from h2gpu.statistics.likelihood.moments import Moments, average_information
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_moments, vecchia_rows
from h2gpu.statistics.systems import hierarchical_system

DIGITS = 1e-5, 1e-12  # rtol of ∂K, at most and at least
CURVATURE = 1e-6, 1e-2  # residual of solves for the information, wanted and at worst: it only chooses the step
PROBED = 1e-5  # residual of the probes' solves: their average is known to some per cent
ERROR = 0.3  # of the derivative of the quadratic form, which the error of ∂K may make; the score's spread is some tens


def hierarchical_moments(
    model,
    sites,
    noise,
    B,
    derivatives=False,
    *,
    rtol=1e-6,
    neighbours=30,
    probes=16,
    random_state=0,
    system=None,
    of_rows=vecchia_moments,
):
    """The Moments; first arguments as for `moments.dense_moments`.

    rtol, neighbours   of the HierarchicalSystem that is made unless one is given
    probes             random vectors of the log-determinant and of the traces
    of_rows            `vecchia_moments`, or who else gives the Moments of its arguments
    """
    if system is None:
        system = hierarchical_system(sites, model.cov, noise(model.nugget), rtol, neighbours, random_state)
    n, logdet = len(sites), system.log_determinant_of(probes, random_state)
    error = float(np.hypot(logdet.standard_error, logdet.quadrature_error))
    solved = system.solve(B)
    gram = to_host(B.T @ solved)
    gram = 0.5 * (gram + gram.T)
    if not derivatives:
        return Moments(logdet.value, gram, error=error)
    xp, p = array_module(B), B.shape[1]
    signs = 2 * np.random.default_rng(random_state).integers(0, 2, (n, probes)) - 1.0
    z = xp.asarray(signs)
    a, b = system.probed(z, PROBED)
    V = xp.concatenate([solved, b - a], axis=1)
    rows = vecchia_rows(sites, model.cov, neighbours, random_state)
    exact = of_rows(model, rows, noise, B, True).slopes
    squares = float((solved[:, 0] ** 2).sum())
    products = [_derivative(model, system, sites, noise, squares, *one) @ V for one in model.derivatives()]
    T = xp.stack([P[:, :p] for P in products])
    gram_slopes = -to_host(xp.einsum("ic,jid->jcd", solved, T))
    samples = np.array([to_host((a * P[:, p:]).sum(axis=0)) for P in products])
    slopes, errors = exact + samples.mean(axis=1), samples.std(axis=1, ddof=1) / probes**0.5
    information = average_information(partial(system.solve, rtol=CURVATURE[0], enough=CURVATURE[1]), T, solved, B)
    return Moments(logdet.value, gram, slopes, gram_slopes, information, error, errors)


def _derivative(model, system, sites, noise, squares, cov, nugget):
    """∂K as an operator with @; squares ‖K⁻¹ y‖²."""
    own = 0.0 if cov is None else cov.nugget
    if cov is None or cov.embedding is None:
        return _Plus(None, noise(nugget) + own)
    if model.is_itself(cov):
        return _Plus(system.product_with(sites, None, None), -noise(model.nugget) - model.cov.nugget)
    norm = Sites.of(sites, cov).norm
    rtol = float(np.clip(ERROR * len(sites) / max(norm * squares, 1e-300), *reversed(DIGITS)))
    return _Plus(system.product_with(sites, cov, rtol), noise(nugget))


class _Plus:
    """V ↦ A V + diag(d) V, A None for zero."""

    def __init__(self, A, d):
        self.A, self.d = A, d

    def __matmul__(self, V):
        d = array_module(V).asarray(np.broadcast_to(self.d, len(V)))[:, None]
        return d * V if self.A is None else self.A @ V + d * V
