"""How far G Gᵀ is from C: Lanczos on B = G⁻¹ C G⁻ᵀ, which is I where the factorization is exact.

    log det C − log det G Gᵀ = tr log B = E[zᵀ log(B) z],   bᵀ C⁻¹ b − bᵀ (G Gᵀ)⁻¹ b = zᵀ (B⁻¹ − I) z,  b = G z

z of random signs: b has the covariance G Gᵀ, so that it stands for data of the field. One run of Lanczos gives both.
Success of the factorization is no certificate: it only says that G Gᵀ is positive definite.

Reference: Ubaru, Chen & Saad (2017), Fast estimation of tr(f(A)) via stochastic Lanczos quadrature.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.progress import phase
from h2gpu.solvers.lanczos import Lanczos, check_steps
from h2gpu.solvers.log_determinant import TOGETHER, signs
from h2gpu.solvers.operators import check_square
from h2gpu.solvers.whitened import whitened
from h2gpu.texts import brief

CHANGE = 0.01  # of the standard error: what further steps may change
ROUNDING = 1e-13  # of n
MOST = 100  # steps


@dataclass(frozen=True)
class Certificate:
    """What G Gᵀ makes wrong, C taken as the truth.

    log_determinant          log det G Gᵀ, a float
    error, standard_error    log det G Gᵀ − log det C, and how well the probes know it
    quadratic_error          bᵀ (G Gᵀ)⁻¹ b − bᵀ C⁻¹ b in the mean over data b of the field, whose value is about n
    quadratic_standard_error of it
    log_likelihood_error     of log-likelihoods of such data, minus half of both errors: to first order they cancel
    log_likelihood_standard_error of it
    least, largest           eigenvalues of G⁻¹ C G⁻ᵀ that Lanczos met
    probes, steps            random vectors, and products of each
    """

    log_determinant: float
    error: float
    standard_error: float
    quadratic_error: float
    quadratic_standard_error: float
    log_likelihood_error: float
    log_likelihood_standard_error: float
    least: float
    largest: float
    probes: int
    steps: int


def certified(G, C, probes, random_state):
    """The Certificate of a Skeletonization; see its method."""
    n = check_square(C, "C")
    if n != G.n:
        raise ValueError(f"C: expected shape {G.shape} as the factor has, got {C.shape}; make it of the same sites")
    if not isinstance(probes, (int, np.integer)) or probes < 2:
        raise ValueError(f"probes: expected an integer ≥ 2, got {brief(probes)}")
    rng, apply, parts, ends, steps = np.random.default_rng(random_state), whitened(C, G, 0.0, n), [], [], 0
    with phase("certificate", probes) as advance:
        for first in range(0, probes, TOGETHER):
            count = min(TOGETHER, probes - first)
            values, spectrum, taken = _quadratures(apply, signs(rng, n, count, array_module(G.data), np.float64), n)
            parts.append(values)
            ends.append(spectrum)
            steps = max(steps, taken)
            advance(count)
    logs, inverses = np.concatenate(parts, axis=1)
    errors = [part for samples in (-logs, n - inverses, 0.5 * (logs + inverses - n)) for part in _mean(samples)]
    least, largest = min(low for low, _ in ends), max(high for _, high in ends)
    return Certificate(G.log_determinant(), *errors, least, largest, int(probes), steps)


def _quadratures(apply, Z, n):
    """zᵀ log(B) z and zᵀ B⁻¹ z of every column, (2, count); the ends of the spectrum met; the steps taken."""
    run, values = Lanczos(apply, Z), np.full((2, Z.shape[1]), np.inf)
    while run.steps < MOST:
        for _ in range(check_steps(run.steps) - run.steps):
            run.step()
        theta, S = run.spectra()
        weights, before = n * S[:, 0] ** 2, values
        values = np.stack([(weights * f).sum(axis=1) for f in (np.log(theta), 1 / theta)])
        change, spread = abs((values - before).mean(axis=1)), values.std(axis=1) / sqrt(Z.shape[1])
        if (change <= np.maximum(ROUNDING * n, CHANGE * spread**2)).all():
            break
    return values, (float(theta.min()), float(theta.max())), run.steps


def _mean(samples):
    """Mean and its standard error."""
    return float(samples.mean()), float(samples.std(ddof=1) / sqrt(len(samples)))
