"""The picture of a variogram: γ by distance, the size of a point its number of pairs, and the fitted model.

Needs matplotlib (the extra `plots`).
"""

import numpy as np

SMALLEST, LARGEST = 12, 120  # areas of points
SHOWN = 200  # points of the model's line


def axes_or_new(ax):
    """The axes, new ones for None. Raises ImportError with advice where matplotlib is missing."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("a picture needs matplotlib; install it with: pip install 'h2gpu[plots]'") from None
    return pyplot.subplots(layout="constrained")[1]


def variogram(empirical, fit, ax, units, value_units):
    """See `EmpiricalVariogram.plot`."""
    ax = axes_or_new(ax)
    area = SMALLEST + (LARGEST - SMALLEST) * empirical.count / empirical.count.max()
    told = f"{empirical.estimator}, {empirical.count.sum():,} pairs"
    ax.scatter(empirical.distance, empirical.value, s=area, label=told)
    if fit is not None:
        h = np.linspace(0, 1.05 * empirical.distance[-1], SHOWN)[1:]
        name = type(fit.cov).__name__ if not hasattr(fit.cov, "terms") else "model"
        ax.plot(h, fit.gamma(h), color="C1", label=f"{name}, nugget {fit.nugget + fit.cov.nugget:.3g}")
    ax.set_xlabel("distance" + (f" [{units}]" if units else ""))
    ax.set_ylabel("semivariance" + (f" [{value_units}²]" if value_units else ""))
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax
