"""Observations that are not Gaussian: simulated ones, whose parameters are known, and small published data sets.

simulated   an exponential field of variance 1 and length 0.1 on the unit square
lime        whether topsoil of the Meuse was limed, 155 places, metres; data of the R package sp
SIDS        infant deaths of 100 counties of North Carolina, 1974–78, births the exposure, kilometres; Cressie (1993),
            section 6.2; shapes of spData
rainfall    of June to August at 1,720 stations of North America, 1950–2010, a tenth of a millimetre, stereographic
            coordinates; data of fields
coal ash    percent of the Robena mine, one outlier among 208; Cressie (1993), section 2.2; data of gstat
joker       gamma dose rates with a release, 200 places and 808 tests, metres; Dubois & Galmarini (2006); data of gstat
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from h2gpu.apps.studies.classics import data as classics
from h2gpu.covariance import Exponential
from h2gpu.statistics import simulate

FILES = "meuse.rda", "sids.dbf", "NorthAmericanRainfall.rda", "coalash.rda", "sic2004.rda"
TRIALS, SHAPE, SCALE, DF = 10, 2.0, 0.3, 4.0
STATIONS = 1000  # of the rainfall's, to fit; the others are targets


@dataclass(frozen=True, eq=False)
class Case:
    """Observations y (n,) at sites (n, 2) to fit, truth (m,) at targets (m, 2) to predict; size, target_size: exposure
    or trials of each."""

    likelihood: str
    sites: np.ndarray
    y: np.ndarray
    size: np.ndarray
    targets: np.ndarray
    truth: np.ndarray
    target_size: np.ndarray

    @classmethod
    def of(cls, likelihood, split, size=None, target_size=None):
        """From a `classics.data.Split`; sizes of 1 unless given."""
        size = np.ones(len(split.values)) if size is None else size
        target_size = np.ones(len(split.truth)) if target_size is None else target_size
        return cls(likelihood, split.sites, split.values, size, split.targets, split.truth, target_size)


def simulated(sites, targets, seed=0):
    """{name: list of one Case} of every likelihood."""
    rng = np.random.default_rng(seed)
    X = rng.random((sites + targets, 2))
    eta = 1 + simulate(Exponential(1.0, 0.1), X, random_state=seed)[:, 0]
    rate, share = np.exp(eta), 1 / (1 + np.exp(-eta))
    drawn = {
        "Poisson": ("poisson", rng.poisson(rate), 1.0),
        "Bernoulli": ("binomial", rng.binomial(1, share), 1.0),
        "binomial": ("binomial", rng.binomial(TRIALS, share), float(TRIALS)),
        "gamma": ("gamma", rng.gamma(SHAPE, rate / SHAPE), 1.0),
        "Student-t": ("student-t", eta + SCALE * rng.standard_t(DF, len(eta)), 1.0),
    }
    return {
        f"simulated, {name}": [
            Case.of(kind, _parted(X, y, np.arange(sites)), np.full(sites, size), np.full(targets, size))
        ]
        for name, (kind, y, size) in drawn.items()
    }


def published(folder):
    """{name: list of Cases} of FILES in a folder; ImportError without rdata and geopandas."""
    import geopandas
    import rdata

    meuse, _, rain, coal, sic = (
        None if name.endswith("dbf") else rdata.read_rda(Path(folder) / name) for name in FILES
    )
    soil, ash, rain = meuse["meuse"], coal["coalash"], rain["NorthAmericanRainfall"]
    counties = geopandas.read_file(Path(folder) / "sids.dbf", ignore_geometry=True)
    lime = np.asarray(soil["lime"]).astype(np.float64)
    deaths, births = (classics.columns(counties, name)[:, 0] for name in ("SID74", "BIR74"))
    stations = np.random.default_rng(0).permutation(len(rain["precip"]))[:STATIONS]
    joker = {"x": "x", "y": "y", "value": "joker"}
    return {
        "lime": [Case.of("binomial", split) for split in classics.folds(classics.columns(soil, "x", "y"), lime)],
        "SIDS": counted(classics.columns(counties, "x", "y"), deaths, births),
        "rainfall": [Case.of("gamma", _parted(np.asarray(rain["x.s"]), np.asarray(rain["precip"]), stations))],
        "coal ash": [
            Case.of("student-t", split)
            for split in classics.folds(classics.columns(ash, "x", "y"), classics.columns(ash, "coalash")[:, 0])
        ],
        "joker": [Case.of("student-t", classics.between(sic["sic.val"], sic["sic.test"], *joker.values()))],
    }


def counted(sites, counts, exposure):
    """Cases of counts with their exposure, of which each tests a fifth."""
    parts = zip(classics.folds(sites, counts), classics.folds(sites, exposure))
    return [Case.of("poisson", split, size.values, size.truth) for split, size in parts]


def _parted(X, y, fitted):
    """The Split that fits some rows."""
    held = np.setdiff1d(np.arange(len(y)), fitted)
    y = np.asarray(y, np.float64)
    return classics.Split(X[fitted], y[fitted], X[held], y[held])
