"""Published data sets of some hundred observations, as R packages carry them: a split for fitting and one for testing.

meuse      log zinc of topsoil at 155 places, metres; five folds. Burrough & McDonnell (1998), Principles of GIS
jura       cobalt and nickel at 259 places, kilometres; tested at 100. Goovaerts (1997), Geostatistics
SIC2004    gamma dose rates at 200 places, metres, "joker" with a release; tested at 808. Dubois & Galmarini (2006)
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDS = 5
FILES = "meuse.rda", "jura.rda", "sic2004.rda"


@dataclass(frozen=True, eq=False)
class Split:
    """Sites (n, 2) with values (n,) to fit, targets (m, 2) with truth (m,) to predict."""

    sites: np.ndarray
    values: np.ndarray
    targets: np.ndarray
    truth: np.ndarray


def read(folder):
    """{name: list of Splits} of FILES in a folder; ImportError without rdata."""
    import rdata

    meuse, jura, sic = (rdata.read_rda(Path(folder) / name) for name in FILES)
    soil = meuse["meuse"]
    return {
        "meuse, log zinc": folds(columns(soil, "x", "y"), np.log(columns(soil, "zinc")[:, 0])),
        **{
            f"jura, {metal}": [_between(jura["jura.pred"], jura["jura.val"], "Xloc", "Yloc", metal)]
            for metal in ("Co", "Ni")
        },
        **{f"SIC2004, {day}": [_between(sic["sic.val"], sic["sic.test"], "x", "y", day)] for day in ("dayx", "joker")},
    }


def columns(table, *names):
    """Columns of a table as (rows, columns)."""
    return np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])


def folds(sites, values, seed=0):
    """Splits of which each tests a fifth of the observations."""
    part = np.random.default_rng(seed).permutation(len(values)) % FOLDS
    return [Split(sites[part != k], values[part != k], sites[part == k], values[part == k]) for k in range(FOLDS)]


def _between(fitted, tested, x, y, value):
    """The Split of two tables."""
    pairs = ((columns(table, x, y), columns(table, value)[:, 0]) for table in (fitted, tested))
    return Split(*next(pairs), *next(pairs))
