"""How good are predicted distributions of observations that are not Gaussian?

    CRPS = ∫ (F(t) − 1{y ≤ t})² dt,   F(t) = ∫ F(t | η) N(η; m, v)       of counts Σ_k (F(k) − 1{y ≤ k})²

F is 0 and 1 beyond the quantiles of TAIL. Between them the first counts are summed; more are integrated as the smooth
function that they are samples of, by the midpoint rule. Integrals by Gauss and Legendre, of positive observations in
the logarithm of t, of others in arsinh t, so that long tails cost nothing.

Reference: Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation, section 4.2.
"""

import numpy as np

from h2gpu.statistics.generalized import predictive

TAIL = 1e-6
SUMMED = 128  # counts that are summed one by one: beyond, the midpoint rule is right to some 1e-5 of the score
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
CHUNK = 32  # targets at a time: each has hundreds of values of F, each an integral over η
SMALLEST = 1e-8  # of the highest value: what lies between 0 and it counts nothing


def crps(likelihood, y, m, v, size):
    """The continuous ranked probability score of observations y (targets,), each in units of y; smaller is better.

    m, v   (targets,) means and variances of the predictor
    size   (targets,) exposure or trials
    """
    v, found = np.maximum(v, 1e-14), np.empty(len(y))
    for first in range(0, len(y), CHUNK):
        i = slice(first, first + CHUNK)
        given = likelihood, m[i], v[i], size[i]
        low, high = (predictive.quantile(likelihood, level, *given[1:]) for level in (TAIL, 1 - TAIL))
        rule = _of_counts if likelihood.discrete else _of_amounts
        found[i] = rule(y[i], low, high, *given)
    return found


def _of_amounts(y, low, high, *given):
    """∫ F² below y and ∫ (1 − F)² above."""
    middle = np.clip(y, low, high)
    return _parts(low, middle, high, *given) + abs(y - middle)


def _of_counts(y, low, high, *given):
    """Σ F² below y and Σ (1 − F)² from y on; the term k is the integral from k − ½ to k + ½."""
    count = int(min((high - low).max() + 1, SUMMED))
    k = low[:, None] + np.arange(count)
    terms = (_distribution(k, *given) - (y[:, None] <= k)) ** 2
    found = np.where(k <= high[:, None], terms, 0).sum(axis=1)
    found += np.maximum(low - y, 0) + np.maximum(y - 1 - high, 0)
    rest = low + count
    many = np.flatnonzero(rest <= high)
    if len(many):
        start, stop = rest[many] - 0.5, high[many] + 0.5
        likelihood, *numbers = given
        numbers = [number[many] for number in numbers]
        found[many] += _parts(start, np.clip(y[many] - 0.5, start, stop), stop, likelihood, *numbers, smooth=True)
    return found


def _parts(low, middle, high, likelihood, *given, smooth=False):
    """∫ F² from low to middle and ∫ (1 − F)² from there to high."""
    kind = likelihood, given[0]
    below = _quadrature(lambda t: _distribution(t, likelihood, *given, smooth) ** 2, low, middle, *kind)
    above = _quadrature(lambda t: (1 - _distribution(t, likelihood, *given, smooth)) ** 2, middle, high, *kind)
    return below + above


def _distribution(t, likelihood, m, v, size, smooth=False):
    """F at t (targets, values)."""
    wide = (np.repeat(x, t.shape[1]) for x in (m, v, size))
    return predictive.cdf(likelihood, t.ravel(), *wide, smooth).reshape(t.shape)


def _quadrature(f, low, high, likelihood, m):
    """∫ f from low to high (targets,), in coordinates s with t = m + scale sinh s, or t = exp s."""
    if likelihood.link == "identity":
        width = likelihood.scale
        forth = lambda t: np.arcsinh((t - m) / width)  # noqa: E731
        back = lambda s: (m[:, None] + width * np.sinh(s), width * np.cosh(s))  # noqa: E731
    else:
        low = np.maximum(low, SMALLEST * high)
        forth, back = np.log, lambda s: (np.exp(s), np.exp(s))
    a, b = forth(low), forth(np.maximum(high, low))
    s = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * NODES
    t, slope = back(s)
    return 0.5 * (b - a) * ((f(t) * slope) @ WEIGHTS)
