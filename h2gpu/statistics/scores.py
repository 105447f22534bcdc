"""How good are predictions with uncertainties?  y the truth, N(μ, s²) its prediction, z = (y − μ)/s, Φ and φ the normal
distribution and density; l, u = μ ± z_(1−α/2) s the interval of level 1 − α:

    CRPS = s [z (2Φ(z) − 1) + 2φ(z) − 1/√π]
    interval score = (u − l) + 2/α (l − y)₊ + 2/α (y − u)₊
    log score = ½ log(2π s²) + ½ z²

All are averages in units of the data (the log score: nats), smaller is better; as proper scores they are smallest in
expectation for the true distribution. Coverage is the part of the truths inside the interval: 1 − α is right.

Reference: Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102.

>>> import numpy as np
>>> told = summary(np.array([0.0, 1.0]), np.array([0.0, 0.0]), np.array([1.0, 1.0]))
>>> {name: round(value, 3) for name, value in told.items()}
{'rmse': 0.707, 'mae': 0.5, 'crps': 0.418, 'interval': 3.92, 'coverage': 1.0}
"""

import math
from importlib import import_module

import numpy as np
from scipy.special import ndtr, ndtri

from h2gpu.arrays import array_module, to_host
from h2gpu.texts import brief

LEVEL = 0.95


def rmse(truth, mean):
    """√ of the mean squared error of predictions (n,) of truths (n,). Raises ValueError for other shapes and NaN."""
    truth, mean = _checked(truth=truth, mean=mean)
    return math.sqrt(np.mean((truth - mean) ** 2))


def mae(truth, mean):
    """Mean absolute error of predictions (n,) of truths (n,). Raises ValueError for other shapes and NaN."""
    truth, mean = _checked(truth=truth, mean=mean)
    return float(np.mean(np.abs(truth - mean)))


def r_squared(truth, mean, weights=None):
    """R² by scikit-learn's `r2_score`; its module is imported on first use, which takes 0.08 s."""
    return import_module("sklearn.metrics").r2_score(truth, mean, sample_weight=weights)


def crps(truth, mean, std):
    """Continuous ranked probability score of normal predictions, all (n,); where std is 0, the absolute error.

    Raises ValueError for other shapes, NaN and negative standard deviations.
    """
    truth, mean, std = _checked(truth=truth, mean=mean, std=std)
    error = truth - mean
    z = np.divide(error, std, out=np.zeros_like(error), where=std > 0)
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    each = error * (2 * ndtr(z) - 1) + std * (2 * density - 1 / math.sqrt(math.pi))
    return float(np.mean(np.where(std > 0, each, np.abs(error))))


def log_score(truth, mean, std):
    """Negative logarithm of the predicted density at the truth, all (n,), averaged.

    Raises ValueError for other shapes, NaN and standard deviations that are not positive.
    """
    truth, mean, std = _checked(truth=truth, mean=mean, std=std)
    if not (std > 0).all():
        raise ValueError("std: expected positive numbers, got 0; a certain prediction has no density")
    return float(np.mean(0.5 * np.log(2 * math.pi * std**2) + 0.5 * ((truth - mean) / std) ** 2))


def interval(mean, std, level=LEVEL):
    """Lower and upper ends of the central intervals of N(mean, std²), each (n,). Raises ValueError for a bad level."""
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, got {brief(level)}")
    half = ndtri(0.5 + level / 2) * std
    return mean - half, mean + half


def interval_score(truth, mean, std, level=LEVEL):
    """Width of the interval, and 2/α times the distance of truths outside, averaged; all (n,).

    Raises ValueError for other shapes, NaN, negative standard deviations and a level outside (0, 1).
    """
    truth, mean, std = _checked(truth=truth, mean=mean, std=std)
    lower, upper = interval(mean, std, level)
    outside = np.maximum(lower - truth, 0) + np.maximum(truth - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - level) * outside))


def coverage(truth, mean, std, level=LEVEL):
    """The part of truths within the central interval of the level, its ends included; all (n,).

    Raises ValueError for other shapes, NaN, negative standard deviations and a level outside (0, 1).
    """
    truth, mean, std = _checked(truth=truth, mean=mean, std=std)
    lower, upper = interval(mean, std, level)
    return float(np.mean((lower <= truth) & (truth <= upper)))


def summary(truth, mean, std, level=LEVEL):
    """What studies report, by name: rmse, mae, crps, interval (the score at the level), coverage."""
    return {
        "rmse": rmse(truth, mean),
        "mae": mae(truth, mean),
        "crps": crps(truth, mean, std),
        "interval": interval_score(truth, mean, std, level),
        "coverage": coverage(truth, mean, std, level),
    }


def _checked(**arrays):
    """The arrays as float64 on the host: equally many finite numbers in each, a std not negative; else ValueError."""
    found, n = [], None
    for name, values in arrays.items():
        a = np.asarray(values if array_module(values) is np else to_host(values), dtype=np.float64)
        n = len(a) if n is None and a.ndim == 1 else n
        if a.ndim != 1 or len(a) != n or n == 0:
            raise ValueError(f"{name}: expected shape ({n or 'n'},), one number a prediction, got {a.shape}")
        if not np.isfinite(a).all():
            raise ValueError(f"{name}: expected finite numbers, got NaN or infinity; leave those places out")
        if name == "std" and (a < 0).any():
            raise ValueError(f"std: expected numbers ≥ 0, got {a.min():.3g}; give standard deviations")
        found.append(a)
    return found
