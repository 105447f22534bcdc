"""How well do space-time covariances tell tomorrow's wind in Ireland from the last days'?

    python -m h2gpu.apps.studies.spacetime.wind --file wind.rda [--days 120] [--ahead 60] [--output benchmarks/kriging]

The data set `wind` of the R package gstat (`wind.rda` in r-cran-gstat's folder data): daily means at twelve stations,
1961 to 1978. As published, Rosslare is left out, speeds are square roots of m/s, free of the season and of the
stations' means; season and means are of the whole series. Parameters by maximum likelihood from the first days; each
of the days after them is then predicted at all stations from the ten days before it.

Needs rdata (the extra `studies`). Reference: Haslett & Raftery (1989), Space-time modelling with long-memory
dependence: assessing Ireland's wind power resource.
"""

import re
import sys
import time
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import at_least
from h2gpu.covariance import Exponential, Gneiting, SpaceTime
from h2gpu.statistics import Kriging, scores

KNOT, YEAR, EARTH = 0.5148, 365.25, 6371.0
HARMONICS = 2
BEFORE = 10  # days that a prediction sees
ALL = ("variance", "length_scale", "time_scale", "time_exponent", "interaction", "nugget")
SEPARABLE = tuple(kind for kind in ALL if kind != "interaction")
MODELS = {  # covariance to start from, and what is estimated
    "exponential × exponential": (SpaceTime(Exponential(), Exponential()), True),
    "Gneiting, separable": (Gneiting(Exponential(), interaction=0.0), SEPARABLE),
    "Gneiting": (Gneiting(Exponential()), ALL),
}


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.spacetime.wind", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.spacetime.wind", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--file", required=True, help="wind.rda of the R package gstat")
    parser.add_argument("--days", type=at_least(BEFORE), default=120, help="to estimate from (default: 120)")
    parser.add_argument("--ahead", type=at_least(1), default=60, help="days that are predicted (default: 60)")
    parser.add_argument("--output", default="benchmarks/kriging", help="folder of the table")
    options = parser.parse_args(argv)
    places, speeds = read(options.file)
    rows = study(places, speeds, options.days, options.ahead)
    print(tables.text(rows))
    tables.write(Path(options.output) / "study_wind-cpu.csv", rows, tables.device_name("cpu"))


def read(path):
    """Stations (11, 2) in kilometres and residual square roots of speeds (days, 11)."""
    import rdata

    data = rdata.read_rda(path)
    stations = data["wind.loc"][data["wind.loc"]["Code"].astype(str) != "ROS"]
    lat, lon = (np.array([degrees(str(text)) for text in stations[name]]) for name in ("Latitude", "Longitude"))
    places = EARTH * np.deg2rad(np.column_stack([np.cos(np.deg2rad(lat.mean())) * lon, lat]))
    return places, residuals(data["wind"][list(stations["Code"].astype(str))].to_numpy(np.float64))


def degrees(text):
    """Degrees of a text such as 51d48'36"N; west and south are negative."""
    d, minutes, seconds, side = re.fullmatch(r"(\d+)d(\d+)'(?:([\d.]+)\")?([NSEW])", text).groups()
    size = int(d) + int(minutes) / 60 + float(seconds or 0) / 3600
    return -size if side in "SW" else size


def residuals(knots):
    """Square roots of speeds in m/s (days, stations), less the harmonics of the year and the stations' means."""
    V = np.sqrt(KNOT * knots)
    angle = 2 * np.pi * np.arange(len(V)) / YEAR
    waves = [f(k * angle) for k in range(1, HARMONICS + 1) for f in (np.cos, np.sin)]
    F = np.column_stack([np.ones(len(V)), *waves])
    season = F @ np.linalg.lstsq(F, V.mean(axis=1), rcond=None)[0]
    V = V - season[:, None]
    return V - V.mean(axis=0)


def study(places, speeds, days, ahead):
    """A row a model, and one of yesterday's wind."""
    X, y = stacked(places, speeds, 0, days)
    truth = speeds[days : days + ahead].ravel()
    rows = []
    for name, (cov, kinds) in MODELS.items():
        start = time.perf_counter()
        model = Kriging(cov, trend=None, fit_parameters=kinds).fit(X, y)
        seconds, found = time.perf_counter() - start, model.parameters_
        mean, std = predicted(model, places, speeds, days, ahead)
        rows.append(
            {"model": name, "observations": len(y), "log-likelihood": float(model.log_marginal_likelihood())}
            | {name.removeprefix("space."): value for name, value in found.items()}
            | scores.summary(truth, mean, std)
            | {"converged": "yes" if model.converged_ else "no", "fit s": seconds}
        )
    yesterday = speeds[days - 1 : days + ahead - 1].ravel()
    return [*rows, {"model": "yesterday's", "rmse": float(np.sqrt(np.mean((truth - yesterday) ** 2)))}]


def predicted(model, places, speeds, days, ahead):
    """Means and standard deviations (ahead · stations,) of observations, each day from those before it."""
    found = []
    for day in range(days, days + ahead):
        fixed = Kriging(model.cov_, model.nugget_, trend=None).fit(*stacked(places, speeds, day - BEFORE, day))
        found.append(fixed.predict(stacked(places, speeds, day, day + 1)[0], return_std=True, observations=True))
    return np.concatenate(found, axis=1)


def stacked(places, speeds, first, stop):
    """Sites (x, y, day) and values of some days."""
    day = np.repeat(np.arange(first, stop, dtype=np.float64), len(places))
    return np.column_stack([np.tile(places, (stop - first, 1)), day]), speeds[first:stop].ravel()


if __name__ == "__main__":
    sys.exit(main())
