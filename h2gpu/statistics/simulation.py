"""Simulation of Gaussian fields, free and given data.

    free          Z = S x,   S Sᵀ = C,   x of independent standard normal numbers
    given data    Z_c = Ẑ(y) + Z − Ẑ(Z_sites + ε):   a kriging error of simulated data, added to the prediction

S is a Cholesky factor for few sites, else W⁻¹ (W C Wᵀ)^½ by Lanczos (`solvers.square_root`). The error
Z − Ẑ(Z_sites + ε) is independent of the data, and of the covariance of kriging errors, the trend's estimation included.

Reference: Journel & Huijbregts (1978), Mining geostatistics, chapter 7; Chow & Saad (2014).
"""

from typing import Any

import numpy as np

from h2gpu.arrays import any_array, array_module, as_array, to_host
from h2gpu.covariance.checks import as_points, checked
from h2gpu.progress import phase
from h2gpu.statistics.inputs import covariance_of, seed_of, seeds
from h2gpu.statistics.systems import covariance_system
from h2gpu.statistics.tables import table
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Seed


@any_array
def simulate(
    cov: Any,
    X: ArrayLike,
    n_samples: int = 1,
    random_state: Seed = None,
    *,
    nugget: float = 0.0,
    mean: float = 0.0,
    rtol: float = 1e-6,
    neighbours: int = 30,
) -> Array:
    """Samples of the field at X (n, dim): (n, n_samples), on the device of X.

    cov            `h2gpu.covariance` value, scikit-learn kernel or GSTools model
    random_state   None, a seed, a NumPy Generator or RandomState
    nugget         variance of measurement errors that are added, one an observation; rows of X at the same place share
                   the field
    mean           of the field, a number or (n,)
    rtol           of the H²-matrix, at most, for more than 4,096 places

    A covariance that is singular to rounding, as smooth ones are on dense sites, gets the least nugget with which it is
    not; a warning is logged. Raises ValueError for bad arguments, LinAlgError for a covariance that is not positive
    definite. Source: Journel & Huijbregts (1978), chapter 7; Chow & Saad (2014).

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential
    >>> sites = np.random.default_rng(0).random((300, 2))
    >>> fields = simulate(Exponential(variance=2.0, length_scale=0.2), sites, n_samples=500, random_state=0)
    >>> fields.shape, bool(abs(fields.var() - 2.0) < 0.2)
    ((300, 500), True)
    """
    cov, nugget = covariance_of(cov), checked("nugget", nugget, zero=True)
    X = table(X)
    X = as_points(as_array(X)).astype(np.float64)
    n_samples, rng = checked_count(n_samples), generator(random_state)
    Z = field_samples(cov, X, n_samples, rng, rtol, neighbours)
    xp = array_module(X)
    if nugget:
        Z += nugget**0.5 * xp.asarray(rng.standard_normal(Z.shape))
    mean = xp.asarray(mean, dtype=np.float64)
    if mean.shape not in ((), (len(X),)):
        raise ValueError(f"mean: expected a number or one for each of {len(X)} rows of X, got shape {mean.shape}")
    return Z + (mean[:, None] if mean.ndim else mean)


def field_samples(cov, X, count, rng, rtol, neighbours, system_of=covariance_system):
    """Samples (n, count) of the field of mean zero at X (n, dim); the same at the same place. system_of: who makes the
    covariance system."""
    xp = array_module(X)
    _, first, place = np.unique(to_host(X), axis=0, return_index=True, return_inverse=True)
    sites = X if len(first) == len(X) else X[xp.asarray(first)]
    place = np.arange(len(X)) if len(first) == len(X) else place.ravel()
    with phase("simulation"):
        system = system_of(sites, cov, 0.0, rtol, neighbours, 0, stabilized=True)
        Z = system.sample(xp.asarray(rng.standard_normal((len(sites), count))))
    return Z[xp.asarray(place)]


def conditional_samples(equations, X, count, rng, neighbours):
    """Samples (m, count) of the field at X given the data of solved `equations.Equations`, trend included."""
    n = len(equations.sites)
    both = array_module(X).concatenate([equations.sites, equations.trend.sites(X)])
    Z = field_samples(equations.cov, both, count, rng, equations.rtol, neighbours)
    return given_data(equations, X, Z[:n], Z[n:], rng)


def given_data(equations, X, Z, Z_targets, rng):
    """Samples given the data, of free ones at the sites (n, count) and at X (m, count)."""
    xp, (n, count) = array_module(Z), Z.shape
    noise = np.broadcast_to(equations.noise, n) ** 0.5
    observed = Z + xp.asarray(noise[:, None] * rng.standard_normal((n, count)))
    return equations.means(X) + Z_targets - equations.means_of(X, observed)


def generator(random_state):
    """A NumPy Generator from what scikit-learn calls random_state; a Generator is used as it is."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(seed_of(random_state))
    return random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(seeds(random_state))


def checked_count(n_samples):
    """A positive integer; ValueError for others."""
    if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ValueError(f"n_samples: expected a positive integer, got {brief(n_samples)}")
    return int(n_samples)
