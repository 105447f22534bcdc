"""Maps of a fitted `Kriging`: mean and standard deviation on a grid around its sites, the sites marked.

Needs matplotlib (the extra `plots`).
"""

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.statistics.variography.plots import axes_or_new

BEYOND = 0.02  # of the sites' box, shown around it
MOST_MARKED = 5000  # sites


def maps(kriging, pixels, ax, units, value_units):
    """See `Kriging.plot`. Raises ValueError unless there are two coordinates and no columns beside them."""
    sites, trend = kriging._equations.sites, kriging._trend
    if sites.shape[1] != 2 or trend.covariates:
        raise ValueError(
            f"plot: maps are of two coordinates, got {sites.shape[1]} and {len(trend.covariates)} trend columns of X; "
            "predict at places of your own"
        )
    axes = (ax, None) if ax is not None and np.ndim(ax) == 0 else ax
    axes = [axes_or_new(None), axes_or_new(None)] if axes is None else list(axes)
    x, grid, shape, extent = _grid(to_host(sites), pixels)
    found = kriging.predict(array_module(sites).asarray(grid), return_std=axes[1] is not None)
    images = found if axes[1] is not None else (found,)
    for one, image, title in zip(axes, images, ("mean", "standard deviation")):
        drawn = one.imshow(to_host(image).reshape(shape), origin="lower", extent=extent, aspect="equal")
        label = title + (f" [{value_units}]" if value_units else "")
        one.figure.colorbar(drawn, ax=one, label=label)
        one.plot(*x.T, "k.", markersize=1)
        one.set_title(title)
        names = ("longitude [°]", "latitude [°]") if hasattr(kriging.cov_.embedding, "radius") else ("x", "y")
        told = f" [{units}]" if units and names[0] == "x" else ""
        one.set_xlabel(names[0] + told)
        one.set_ylabel(names[1] + told)
    return axes if axes[1] is not None else axes[0]


def _grid(x, pixels):
    """Sites to mark, grid points (rows · columns, 2), (rows, columns), and the picture's extent."""
    low, high = x.min(axis=0), x.max(axis=0)
    room = BEYOND * (high - low) + (high == low)
    low, high = low - room, high + room
    columns, rows = np.maximum(2, np.round(pixels * (high - low) / (high - low).max())).astype(int)
    sides = [np.linspace(a, b, 2 * n + 1)[1::2] for a, b, n in zip(low, high, (columns, rows))]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    return x[:: -(-len(x) // MOST_MARKED)], grid, (rows, columns), (low[0], high[0], low[1], high[1])
