"""Published data sets of some hundred observations, as packages carry them: a split for fitting and one for testing.

meuse      log zinc of topsoil at 155 places, metres; five folds. Burrough & McDonnell (1998), Principles of GIS
jura       cobalt and nickel at 259 places, kilometres; tested at 100. Goovaerts (1997), Geostatistics
SIC2004    gamma dose rates at 200 places, metres, "joker" with a release; tested at 808. Dubois & Galmarini (2006)
walker     V of Walker Lake at 470 places, more of them where it is high; tested at all 77,530 other nodes of its grid.
           Isaaks & Srivastava (1989), An introduction to applied geostatistics
baltimore  log price of 211 houses sold in 1978, city grid; five folds. Dubin (1992), Spatial autocorrelation and
           neighborhood quality
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDS = 5
FILES = "meuse.rda", "jura.rda", "sic2004.rda", "walker.rda", "baltimore.geojson"


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

    meuse, jura, sic, walker = (rdata.read_rda(Path(folder) / name) for name in FILES[:4])
    soil = meuse["meuse"]
    return {
        "meuse, log zinc": folds(columns(soil, "x", "y"), np.log(columns(soil, "zinc")[:, 0])),
        **{
            f"jura, {metal}": [between(jura["jura.pred"], jura["jura.val"], "Xloc", "Yloc", metal)]
            for metal in ("Co", "Ni")
        },
        **{f"SIC2004, {day}": [between(sic["sic.val"], sic["sic.test"], "x", "y", day)] for day in ("dayx", "joker")},
        "walker, V": [lake(walker["walker"], walker["walker.exh"])],
        "baltimore, log price": folds(*houses(Path(folder) / FILES[4])),
    }


def houses(path):
    """Sites (n, 2) of a GeoJSON file of houses, and logarithms of their prices (n,)."""
    sold = [feature["properties"] for feature in json.loads(path.read_text())["features"]]
    return np.array([[one["X"], one["Y"]] for one in sold]), np.log([one["PRICE"] for one in sold])


def columns(table, *names):
    """Columns of a table as (rows, columns)."""
    return np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])


def folds(sites, values, seed=0):
    """Splits of which each tests a fifth of the observations."""
    part = np.random.default_rng(seed).permutation(len(values)) % FOLDS
    return [Split(sites[part != k], values[part != k], sites[part == k], values[part == k]) for k in range(FOLDS)]


def lake(sampled, exhaustive):
    """The Split of samples of a grid whose nodes are known, by rows from the north; sampled nodes are no targets."""
    width, height = (int(count) for count in np.asarray(getattr(exhaustive.grid, "cells.dim")))
    x, y = np.meshgrid(np.arange(1.0, width + 1), np.arange(height, 0.0, -1))
    nodes, sites = np.column_stack([x.ravel(), y.ravel()]), np.asarray(sampled.coords, dtype=np.float64)
    free = ~np.isin(nodes @ [1, 1j], sites @ [1, 1j])
    return Split(sites, columns(sampled.data, "V")[:, 0], nodes[free], columns(exhaustive.data, "V")[free, 0])


def between(fitted, tested, x, y, value):
    """The Split of two tables."""
    pairs = ((columns(table, x, y), columns(table, value)[:, 0]) for table in (fitted, tested))
    return Split(*next(pairs), *next(pairs))
