"""Published benchmark fields with parts held out. Their licences forbid or leave open a copy here: give the files.

heaton   Heaton et al. (2019), A case study competition among methods for analyzing large spatial data, JABES 24;
         github.com/finnlindgren/heatoncomparison, Data/: both data frames as one HDF5 file of lon, lat, sim_masked,
         sat_masked, sim_true, sat_true, each (150000,), NaN in *_masked at the sites held out
kaust    KAUST competition 2021, sub-competition 1 (Huang et al. 2021, JABES 26), github.com/ecrc/ExaGeoStatR, data/:
         an HDF5 group a field with train_points (n, 2), train_values (n,), test_points (m, 2), test_values (m,) and
         attributes sigma2, beta, nu, has_nugget

One is here: elevations, data/jacksboro.h5 of the repository, an HDF5 file of points (n, 2) and elevation (n,) in
metres, of which nothing is held out.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np

from h2gpu.apps.command.command import InputError
from h2gpu.covariance import Covariance, Exponential, Matern, Nugget

KAUST_NUGGET = 0.27  # not published; estimated


@dataclass(frozen=True, eq=False)
class Field:
    """Observed sites, and targets whose truth is known.

    sites, values    (n, 2), (n,)
    targets, truth   (m, 2), (m,)
    covariance       that of the simulation, None for measurements
    mean             that of the simulation, None for measurements
    trend            "constant" or "linear": what is estimated where the mean is not known
    """

    name: str
    sites: np.ndarray
    values: np.ndarray
    targets: np.ndarray
    truth: np.ndarray
    covariance: Covariance | None
    mean: float | None
    trend: str = "constant"

    def thinned(self, count, seed=0):
        """The same with at most `count` sites and a ninth as many targets, chosen at random."""
        rng, most = np.random.default_rng(seed), count or len(self.sites)
        some = np.sort(rng.permutation(len(self.sites))[:most])
        seen = np.sort(rng.permutation(len(self.targets))[: max(1, most // 9) if count else None])
        return replace(
            self,
            sites=self.sites[some],
            values=self.values[some],
            targets=self.targets[seen],
            truth=self.truth[seen],
        )


def heaton(path):
    """The simulated field and the satellite's land-surface temperatures: {name: Field}; InputError without them."""
    with opened(path) as file:
        points = np.column_stack([file["lon"][:], file["lat"][:]])
        columns = {name: (file[f"{name}_masked"][:], file[f"{name}_true"][:]) for name in ("sim", "sat")}
    truths = {"sim": (Exponential(16.40771, 4 / 3) + Nugget(0.05), 44.49105), "sat": (None, None)}
    found = {}
    for short, name in (("sim", "simulated"), ("sat", "satellite")):
        masked, true = columns[short]
        here, held = np.isfinite(masked), ~np.isfinite(masked) & np.isfinite(true)
        found[name] = Field(name, points[here], masked[here], points[held], true[held], *truths[short])
    return found


def kaust(path):
    """The fields with a truth held out: {name: Field}; InputError without them."""
    found = {}
    with opened(path) as file:
        names = sorted(name for name in file if isinstance(file[name], h5py.Group) and "train_values" in file[name])
        if not names:
            raise KeyError("no group with train_values")
        for name in names:
            group, truth = file[name], file[name].attrs
            cov = Matern.from_range(truth["sigma2"], truth["beta"], truth["nu"])
            if truth["has_nugget"]:
                cov += Nugget(KAUST_NUGGET)
            columns = (group[part][:] for part in ("train_points", "train_values", "test_points", "test_values"))
            found[name] = Field(name, *columns, cov, 0.0)
    return found


def elevations(path):
    """Sites (n, 2) and elevations (n,), metres; InputError without them."""
    with opened(path) as file:
        return file["points"][:], file["elevation"][:].astype(float)


def chosen(found, names, option="--fields"):
    """Those of the names, separated by commas; all for None. InputError for a name that is not there."""
    wanted = names.split(",") if names else list(found)
    unknown = [name for name in wanted if name not in found]
    if unknown:
        raise InputError(f"{option}: expected some of {', '.join(found)}, got {', '.join(unknown)}")
    return {name: found[name] for name in wanted}


@contextmanager
def opened(path):
    """The HDF5 file, open to be read. InputError where it cannot be opened, or is another than the block expects."""
    where = "h2gpu.apps.studies.published tells where such a file comes from"
    if not Path(path).is_file():
        raise InputError(f"{path}: {'expected a file' if Path(path).exists() else 'no such file'}; {where}")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, ValueError, TypeError) as error:
        words = " ".join(str(error).split())
        raise InputError(f"{path}: expected an HDF5 file with the fields, got “{words:.160}”; {where}") from None
