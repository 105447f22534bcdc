"""Files like those of the published benchmarks, of a few hundred sites: exact simulations by dense Cholesky."""

import h5py
import numpy as np

from h2gpu.covariance import Exponential, Matern, Nugget

MEAN = 44.49105


def simulated(points, cov, seed=0):
    """A field of that covariance at the points, (n,)."""
    z = np.random.default_rng(seed).standard_normal(len(points))
    return np.linalg.cholesky(cov(points)) @ z


def heaton(path, side=15, held=45):
    """A grid of side² sites, `held` of them held out; the path."""
    lon, lat = (a.ravel() for a in np.meshgrid(np.linspace(-96, -91, side), np.linspace(34, 37, side)))
    values = MEAN + simulated(np.column_stack([lon, lat]), Exponential(16.40771, 4 / 3) + Nugget(0.05))
    masked = values.copy()
    masked[np.random.default_rng(1).permutation(side**2)[:held]] = np.nan
    with h5py.File(path, "w") as file:
        file["lon"], file["lat"] = lon, lat
        for name in ("sim", "sat"):
            file[f"{name}_masked"], file[f"{name}_true"] = masked, values
    return path


def kaust(path, sites=200, targets=40):
    """A rough field with a nugget and a smooth one without; the path."""
    points = np.random.default_rng(2).random((sites + targets, 2))
    with h5py.File(path, "w") as file:
        for name, beta, nu, nugget in (("rough", 0.2475, 0.6, 0.27), ("smooth", 0.0632, 1.5, 0.0)):
            cov = Matern.from_range(1.5, beta, nu) + Nugget(nugget)
            values, group = simulated(points, cov), file.create_group(name)
            group["train_points"], group["train_values"] = points[:sites], values[:sites]
            group["test_points"], group["test_values"] = points[sites:], values[sites:]
            group.attrs.update({"sigma2": 1.5, "beta": beta, "nu": nu, "has_nugget": nugget > 0})
    return path
