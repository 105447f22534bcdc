"""Checks of what estimators are told beside the data: accuracies, a known mean, levels of intervals.

Even where few sites do not need a number, a wrong one is told.
"""

import warnings
from numbers import Integral, Real

import numpy as np

from h2gpu.covariance.checks import checked
from h2gpu.texts import brief


def check_accuracy(estimator):
    """ValueError for a wrong rtol, std_rtol, neighbours or missing, of which an estimator may lack some."""
    if checked("rtol", estimator.rtol) >= 1:
        raise ValueError(f"rtol: expected a number below 1, got {brief(estimator.rtol)}")
    checked("std_rtol", getattr(estimator, "std_rtol", 0), zero=True)
    missing = getattr(estimator, "missing", "raise")
    if missing not in ("raise", "skip"):
        raise ValueError(f'missing: expected "raise" or "skip", got {brief(missing)}')
    if not isinstance(estimator.neighbours, Integral) or estimator.neighbours < 1:
        raise ValueError(f"neighbours: expected a positive integer, got {brief(estimator.neighbours)}")


def check_mean(mean, count=1):
    """(count,) known means of one number or of one each; ValueError for others."""
    try:
        given = np.asarray(mean, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        given = np.full(1, np.nan)
    if given.shape not in ((), (count,) if count > 1 else ()) or not np.isfinite(given).all():
        each = f" or {count} of them" if count > 1 else ""
        raise ValueError(f"mean: expected a finite number{each}, got {brief(mean, 80)}")
    return np.broadcast_to(given, count)


def tell_unused_mean(trend, mean, stacklevel=5):
    """A warning where a known mean is given together with a trend, which is estimated in its place."""
    if trend is not None and np.any(np.asarray(mean) != 0):
        warnings.warn(
            f"mean: {brief(mean)} is not used, as trend={brief(trend)} is estimated; take trend=None for a known mean",
            stacklevel=stacklevel,
        )


def check_level(interval):
    """ValueError unless an interval is None or a level between 0 and 1."""
    number = isinstance(interval, Real) and not isinstance(interval, bool)
    if interval is not None and not (number and 0 < interval < 1):
        raise ValueError(f"interval: expected a level between 0 and 1, such as 0.95, got {brief(interval)}")
