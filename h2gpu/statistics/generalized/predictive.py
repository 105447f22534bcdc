"""Distributions of new observations, from that of the predictor, η ~ N(m, v).

    E y = ∫ μ(η) N(η),   var y = ∫ (V(η) + μ(η)²) N(η) − (E y)²,   P(y ≤ t) = ∫ F(t | η) N(η),   p(y) = ∫ p(y | η) N(η)

The log link's moments are those of a lognormal variable. Others by the trapezoidal rule on a standard normal variable;
densities and distribution functions by it too, but centred at the integrand's mode and where F falls, with nodes
η̂ + τ sinh x, which reach as far as they are fine.

Reference: Rasmussen & Williams (2006), section 3.4.2.
"""

import numpy as np
from scipy.special import ndtri

NODES = np.linspace(-8, 8, 161)
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
WIDE = np.linspace(-7, 7, 281)
STEEP, FAR = np.linspace(-1, 1, 201), 8.0  # nodes of distribution functions; standard deviations that they reach
CHUNK = 4096  # targets at a time
STEPS = 30  # to an integrand's mode
BISECTIONS = 80


def moments(likelihood, m, v, size):
    """Means of μ(η), variances of μ(η) and means of var(y | η), (targets,) each."""
    if likelihood.link == "identity":
        return m, v, likelihood.variance(m, size)
    if likelihood.link == "log":
        mean, spread = likelihood.response(m + v / 2, size), np.expm1(np.minimum(v, 300.0))
        within = mean if likelihood.discrete else mean**2 * (1 + spread) / likelihood.shape
        return mean, mean**2 * spread, within
    mean = _integral(likelihood.response, m, v, size)
    square = _integral(lambda eta, size: likelihood.response(eta, size) ** 2, m, v, size)
    return mean, np.maximum(square - mean**2, 0), _integral(likelihood.variance, m, v, size)


def cdf(likelihood, t, m, v, size, smooth=False):
    """P(y ≤ t), (targets,); smooth: of counts the function of all t that has these values at whole ones."""
    t, found, F = np.broadcast_to(t, m.shape), np.empty(len(m)), likelihood.smooth_cdf if smooth else likelihood.cdf
    v = np.maximum(v, 1e-14)
    for first in range(0, len(m), CHUNK):
        some = slice(first, first + CHUNK)
        found[some] = _cdf(F, likelihood, t[some], m[some], v[some], size[some])
    return np.clip(found, 0, 1)


def _cdf(F, likelihood, t, m, v, size):
    """∫ F(t | η) N(η), with nodes as close around where F falls as it is steep there: η_t + τ sinh x."""
    std = np.sqrt(v)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = t if likelihood.link == "identity" else np.clip(t, 0, size if likelihood.link == "logit" else np.inf)
        eta = likelihood.start(y, size)
    eta = np.clip(np.where(np.isfinite(eta), eta, m), m - FAR * std, m + FAR * std)
    tau = np.minimum(std, 1 / np.sqrt(likelihood.weight(y, eta, size)))
    x = np.arcsinh(2 * FAR * std / tau)[:, None] * STEEP
    z = ((eta - m) / std)[:, None] + (tau / std)[:, None] * np.sinh(x)
    weights = np.exp(-0.5 * z**2) * np.cosh(x)
    return (F(t[:, None], m[:, None] + std[:, None] * z, size[:, None]) * weights).sum(axis=1) / weights.sum(axis=1)


def quantile(likelihood, level, m, v, size):
    """The least t with P(y ≤ t) ≥ level, (targets,); whole numbers where y is one."""
    std, z = np.sqrt(v), 8.0
    start = likelihood.response(m, size)
    low = np.minimum(start, 0.0) - 1.0
    high = np.maximum(likelihood.response(m + z * std, size), 1.0) + 1.0
    if likelihood.discrete:
        low, high = np.floor(low), np.ceil(high)
    for _ in range(60):  # until they enclose it
        far = cdf(likelihood, high, m, v, size) < level
        near = cdf(likelihood, low, m, v, size) >= level if likelihood.link == "identity" else np.zeros(len(m), bool)
        if not (far.any() or near.any()):
            break
        high, low = np.where(far, 2 * high + 1, high), np.where(near, 2 * low - 1, low)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if likelihood.discrete:
            middle = np.floor(middle)
        above = cdf(likelihood, middle, m, v, size) >= level
        low, high = np.where(above, low, middle), np.where(above, middle, high)
        if (high - low <= (1.0 if likelihood.discrete else 1e-9 * (1 + abs(high)))).all():
            break
    return np.floor(high) if likelihood.discrete else high


def field_quantile(likelihood, level, m, v, size):
    """The quantile of μ(η), which rises with η: (targets,)."""
    return likelihood.response(m + ndtri(level) * np.sqrt(v), size)


def log_density(likelihood, y, m, v, size):
    """log p(y), (targets,)."""
    found = np.empty(len(y))
    for first in range(0, len(y), CHUNK):
        some = slice(first, first + CHUNK)
        found[some] = _log_density(likelihood, y[some], m[some], np.maximum(v[some], 1e-14), size[some])
    return found


def _log_density(likelihood, y, m, v, size):
    def joint(eta):
        shape = (-1, *[1] * (eta.ndim - 1))
        yy, mm, vv, ss = (np.reshape(x, shape) for x in (y, m, v, size))
        return likelihood.log_density(yy, eta, ss) - 0.5 * (eta - mm) ** 2 / vv - 0.5 * np.log(2 * np.pi * vv)

    own = likelihood.start(y, size)
    eta = np.where(joint(own) > joint(m), own, m)
    for _ in range(STEPS):
        curvature = likelihood.weight(y, eta, size) + 1 / v
        step = (likelihood.slope(y, eta, size) - (eta - m) / v) / curvature
        worse = joint(eta + step) < joint(eta)
        eta = eta + np.where(worse, 0.25, 1.0) * step
    tau = 1 / np.sqrt(likelihood.weight(y, eta, size) + 1 / v)
    values = joint(eta[:, None] + tau[:, None] * np.sinh(WIDE)) + np.log(tau[:, None] * np.cosh(WIDE))
    top = values.max(axis=1)
    return top + np.log(np.exp(values - top[:, None]).sum(axis=1) * (WIDE[1] - WIDE[0]))


def _integral(f, m, v, size):
    """∫ f(η, size) N(η; m, v), (targets,)."""
    found = np.empty(len(m))
    std = np.sqrt(v)
    for first in range(0, len(m), CHUNK):
        some = slice(first, first + CHUNK)
        eta = m[some, None] + std[some, None] * NODES
        found[some] = f(eta, np.broadcast_to(size, len(m))[some, None]) @ WEIGHTS
    return found
