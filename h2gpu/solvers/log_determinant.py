"""Logarithm of the determinant, by stochastic Lanczos quadrature.

    log det (A + nugget I) = tr log B − 2 Σ log w_ii,     B = W (A + nugget I) Wᵀ
    tr log B = E[zᵀ log(B) z],   zᵀ log(B) z ≈ n Σ_k (first entry of eigenvector k of T)² log θ_k,   z of random signs

The closer B is to I, the fewer steps and the smaller the spread. Where tr B is known (it is n for W made from A itself,
and the diagonal's sum without W), zᵀ B z − tr B, which the first step gives, explains the part of the spread that is
linear in B; it is taken out by regression.

Reference: Ubaru, Chen & Saad (2017), Fast estimation of tr(f(A)) via stochastic Lanczos quadrature.
"""

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Any

import numpy as np

from h2gpu.covariance.checks import checked
from h2gpu.progress import phase
from h2gpu.solvers.lanczos import Lanczos, check_steps
from h2gpu.solvers.operators import check_square, column_dots, module_of
from h2gpu.solvers.whitened import whitened
from h2gpu.texts import brief
from h2gpu.typing import Operator, Seed

TOGETHER = 16  # probes of one block
NEGLIGIBLE = 0.1  # of the standard error: what quadrature may add
ROUNDING = 1e-12  # of n: quadrature that changes less is exact
FEWEST = 4  # probes for a regression


@dataclass(frozen=True)
class LogDeterminant:
    """An estimate and its error.

    value             of log det (A + nugget I)
    standard_error    of value over the probes; with the usual 16 probes and more, the truth lies within two of them
                      in about 19 of 20 estimates
    quadrature_error  by how much the last third of the steps changed value
    probes, steps     random vectors, and products of each

    Raises nothing: a value that `log_determinant` returns. Source: Ubaru, Chen & Saad (2017).

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> told = solvers.log_determinant(K, solvers.vecchia(sites, cov), trace=400)
    >>> told.standard_error >= 0 and told.probes > 0
    True
    """

    value: float
    standard_error: float
    quadrature_error: float
    probes: int
    steps: int

    def __float__(self):
        return self.value


def log_determinant(
    A: Operator,
    preconditioner: Operator | None = None,
    *,
    nugget: float = 0.0,
    atol: float | None = None,
    probes: int = 16,
    most: int = 1024,
    maximum: int = 300,
    trace: Any = None,
    random_state: Seed = 0,
) -> "LogDeterminant":
    """log det (A + nugget I) of a symmetric positive definite matrix: a LogDeterminant.

    A               with shape and @: H2Matrix, array, sparse matrix, LinearOperator
    preconditioner  `vecchia(…)` or `block_jacobi(…)`, or None
    nugget          added to the diagonal of A
    atol            wanted standard error: blocks of probes are added until it is reached, or `most` of them are used;
                    None: `probes` of them, whatever the error
    maximum         of Lanczos steps of a probe
    trace           tr B where it is known: n for a preconditioner made from this very matrix, nugget included. Without
                    a preconditioner it is found from A.diagonal()
    random_state    seed of the probes: the same seed gives the same result, and smooth differences between matrices

    Raises ValueError for bad arguments, LinAlgError for a matrix that is not positive definite.
    Source: Ubaru, Chen & Saad (2017); Hutchinson (1990) for the probes.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> told = solvers.log_determinant(K, solvers.vecchia(sites, cov), trace=400)
    >>> bool(abs(told.value - np.linalg.slogdet(K)[1]) <= 5 * told.standard_error + 1e-6)
    True
    """
    n = check_square(A)
    for name, value in (("probes", probes), ("most", most), ("maximum", maximum)):
        if not isinstance(value, (int, np.integer)) or value < 2:
            raise ValueError(f"{name}: expected an integer ≥ 2, got {brief(value)}")
    atol = 0.0 if atol is None else checked("atol", atol)
    apply = whitened(A, preconditioner, nugget, n)
    if trace is None and preconditioner is None and hasattr(A, "diagonal"):
        trace = float(A.diagonal().sum(dtype=np.float64)) + n * nugget
    xp, dtype = module_of(A, getattr(preconditioner, "W", None)), getattr(A, "dtype", np.float64)
    rng, limit = np.random.default_rng(random_state), most if atol else probes
    logs, linear, change, steps = np.empty(0), np.empty(0), 0.0, 0
    error = np.inf
    with phase("log-determinant", limit) as advance:
        while len(logs) < min(probes, limit) or (len(logs) < limit and hypot(error, change) > atol):
            Z = signs(rng, n, min(TOGETHER, limit - len(logs)), xp, dtype)
            new, first, last_change, taken = quadrature(apply, Z, n, atol, maximum)
            logs, linear = np.append(logs, new), np.append(linear, first)
            change, steps = max(change, last_change), max(steps, taken)
            value, error = mean_of(logs, linear, trace)
            advance(len(new))
    return LogDeterminant(value + _known(preconditioner), error, change, len(logs), steps)


def _known(preconditioner):
    """log det of what the preconditioner approximates, which factors tell."""
    known = getattr(preconditioner, "log_determinant", 0.0)
    return known() if callable(known) else known


def signs(rng, n, count, xp, dtype):
    """Random signs (n, count); the same for one seed, however they are grouped."""
    Z = np.stack([2 * rng.integers(0, 2, n, dtype=np.int8) - 1 for _ in range(count)], axis=1)
    return xp.asarray(Z.astype(dtype))


def quadrature(apply, Z, n, atol, maximum, dots=column_dots):
    """zᵀ log(B) z and zᵀ B z of every column of order n, the last change of the mean of the former, the steps taken."""
    count = Z.shape[1]
    run, values, change = Lanczos(apply, Z, dots=dots), np.full(count, np.inf), np.inf
    while run.steps < maximum:
        for _ in range(min(check_steps(run.steps), maximum) - run.steps):
            run.step()
        theta, S = run.spectra()
        before, values = values, n * (S[:, 0] ** 2 * np.log(theta)).sum(axis=1)
        change = abs(float((values - before).mean()))
        if change <= max(ROUNDING * n, NEGLIGIBLE * max(atol, float(values.std()) / sqrt(count))):
            break
    return values, n * run.first, change, run.steps


def mean_of(values, linear, trace):
    """Mean and its standard error, the part that is linear in `linear`, of known mean `trace`, taken out."""
    count = len(values)
    if count < 2:
        return float(values.mean()), float("inf")
    residual, freedom, mean = values - values.mean(), count - 1, float(values.mean())
    d = linear - linear.mean()
    if trace is not None and count >= FEWEST and d @ d > 0:
        slope = float(d @ residual / (d @ d))
        mean -= slope * (float(linear.mean()) - trace)
        residual, freedom = residual - slope * d, freedom - 1
    return mean, sqrt(float(residual @ residual) / freedom / count)
