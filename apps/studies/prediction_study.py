"""Prediction of published fields by several methods: rows of a table, and maps.

| method | what it is |
|---|---|
| h2gpu | `h2gpu.statistics.Kriging`: all sites, the full covariance as an H²-matrix |
| local 60 | kriging of each target from its 60 nearest sites (`local_kriging`), at the same parameters |
| direct, iterative | the same with this solver; only where asked for |
| GPBoost | its Vecchia approximation (`gpboost_vecchia`), at the given parameters and at those it estimates itself |

Standard deviations are those of new observations: the truths held out carry the nugget too. Seconds are of processors
(CPU s) where h2gpu runs on the CPU, so that other work on the machine leaves them alone; of the wall on a GPU, once
a thinned field has brought the kernels there. Estimates are compared by their log-likelihoods, all computed in one way.
"""

import time
import warnings
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command import map_plot
from h2gpu.apps.studies import published
from h2gpu.apps.studies.peers import gpboost_vecchia
from h2gpu.apps.studies.peers.local_kriging import local_kriging
from h2gpu.arrays import module_of_device, to_host
from h2gpu.covariance import Nugget, OnSphere
from h2gpu.statistics import Kriging, log_likelihood, scores

CLOCKS = {"cpu": ("CPU s", time.process_time), "cuda": ("s", time.perf_counter)}
SHOWN = ("rmse", "mae", "crps", "interval", "coverage")
SOLVERS = "direct", "iterative"
BEFORE = 8192  # sites of the fields that run before the clock, on a GPU


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a method says of a field's targets, and how long it took.

    mean, std      (m,), (m,) of new observations
    cov, nugget    in use: the covariance without its nugget, and the nugget
    trend          (1 or 3,) coefficients of the field's mean in use: of 1, or of 1 and the two coordinates
    seconds        of fitting and of predicting, by the clock of `CLOCKS`
    more           other numbers for the table
    """

    mean: np.ndarray
    std: np.ndarray
    cov: object
    nugget: float
    trend: np.ndarray
    seconds: tuple
    more: dict


def add_options(parser):
    """What both studies can be asked."""
    parser.add_argument("--fields", help="names of the fields, separated by commas; default: all")
    parser.add_argument("--sites", type=int, help="a random subset of so many sites; default: all")
    parser.add_argument("--parameters", choices=("given", "estimated"), help="default: both")
    parser.add_argument("--trend", choices=("constant", "linear"), default="constant", help="where it is estimated")
    parser.add_argument("--methods", help="h2gpu and some of its peers, separated by commas; default: all installed")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of h2gpu")
    parser.add_argument("-o", "--output", default="benchmarks/kriging", help="folder for the table and the maps")


def study(fields, start, options, name):
    """Measure, print and write all fields; the rows.

    fields   {name: Field}
    start    Field → covariance to start the estimation from
    name     of the files to write: name-PARAMETERS-DEVICE.csv, name-FIELD-PARAMETERS.png
    """
    rows, folder = [], Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    for parameters in [options.parameters] if options.parameters else ["given", "estimated"]:
        table = []
        for field in fields.values():
            if parameters == "estimated" or field.covariance is not None:
                field = replace(field.thinned(options.sites), trend=options.trend)
                for one in compared(field, parameters, start(field), options, name):
                    table.append(one)  # written at once: a study that is stopped keeps its rows
                    path = folder / f"{name}-{parameters}-{options.device}.csv"
                    tables.write(path, table, tables.device_name(options.device))
        rows += table
    return rows


def compared(field, parameters, start, options, name):
    """The rows of one field with parameters "given" or "estimated", each as it is measured; the map of the first
    prediction is drawn."""
    estimate = parameters == "estimated"
    cov = start if estimate else field.covariance
    if options.device == "cuda":
        bring(field, cov, estimate, options)
    path = Path(options.output) / f"{name}-{field.name}-{parameters}.png"
    unit, clock = CLOCKS[options.device]
    best = cache(partial(kriging, field, cov, estimate, options.device))
    methods = {"h2gpu": best, "local 60": lambda: near_sites(field, best(), clock)}
    if gpboost_vecchia.available():
        methods["GPBoost"] = lambda: peer(field, cov, estimate, clock)
    wanted = options.methods or ",".join(methods)
    methods |= {s: partial(kriging, field, cov, estimate, options.device, s) for s in SOLVERS}
    for i, (method, predict) in enumerate(published.chosen(methods, wanted, "--methods").items()):
        found = predict()
        if i == 0:
            draw(field, found, path, f"parameters {parameters}")
        one = row(field, method, parameters, found, unit)
        if estimate and method != "local 60":
            one["log-likelihood"] = f"{likelihood(field, found, options.device):.2f}"
        print(tables.text([one]), flush=True)
        yield one


def bring(field, cov, estimate, options):
    """Compile and load what h2gpu will need of kernels, by a field of few sites."""
    few = field.thinned(min(BEFORE, len(field.sites)))
    wanted = (options.methods or "h2gpu").split(",")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a thinned field may not tell its parameters
        for solver in sorted({name if name in SOLVERS else "auto" for name in wanted}):
            kriging(few, cov, estimate, options.device, solver)


def kriging(field, cov, estimate, device="cpu", solver="auto"):
    """h2gpu's Prediction."""
    xp, (_, clock) = module_of_device(device), CLOCKS[device]
    cov, nugget = split(cov)
    more = {"fit_parameters": True} if estimate else {}
    known = field.mean is not None and not estimate
    trend = {"trend": None, "mean": field.mean} if known else {"trend": field.trend}
    begin = clock()
    model = Kriging(cov, nugget, solver=solver, **trend, **more).fit(xp.asarray(field.sites), xp.asarray(field.values))
    fitted = clock()
    mean, std = model.predict(xp.asarray(field.targets), return_std=True, observations=True)
    mean, std = to_host(mean), to_host(std)
    seconds = fitted - begin, clock() - fitted
    told = {"iterations": model.iterations_, "matrix rtol": model.rtol_, "std error": model.variance_error_.worst}
    coefficients = np.array([field.mean]) if known else to_host(model.trend_coefficients_)
    return Prediction(mean, std, model.cov_, float(model.nugget_), coefficients, seconds, told)


def near_sites(field, best, clock=time.process_time):
    """Local kriging at the parameters of another Prediction."""
    begin = clock()
    cov = best.cov + Nugget(best.nugget) if best.nugget else best.cov
    residuals = field.values - surface(field.sites, best.trend)
    mean, std = local_kriging(field.sites, residuals, field.targets, cov)
    seconds = 0.0, clock() - begin
    return Prediction(mean + surface(field.targets, best.trend), std, best.cov, best.nugget, best.trend, seconds, {})


def likelihood(field, found, device="cpu"):
    """The log-likelihood of the field's observations at the parameters of a Prediction, the trend the best one.

    By the direct solver for all methods alike: without Monte Carlo noise.
    """
    xp = module_of_device(device)
    sites, values = xp.asarray(field.sites), xp.asarray(field.values)
    return float(log_likelihood(found.cov, sites, values, found.nugget, field.trend, solver="direct"))


def surface(points, coefficients):
    """The mean of the field at (n, 2) points: (n,)."""
    return (
        coefficients[0] + points @ coefficients[1:] if len(coefficients) > 1 else np.full(len(points), coefficients[0])
    )


def peer(field, cov, estimate, clock=time.process_time):
    """GPBoost's Prediction."""
    cov, nugget = split(cov)
    return Prediction(*gpboost_vecchia.kriging(field, cov, nugget, estimate, clock), {})


def split(cov):
    """A covariance without its nugget, and the nugget."""
    parts = [term for term in getattr(cov, "terms", (cov,)) if not isinstance(term, Nugget)]
    (field,) = parts
    return field, cov.nugget


def on_surface(cov):
    """The covariance of the plane that one on the sphere takes along its distance; others as they are."""
    return cov.covariance if isinstance(cov, OnSphere) else cov


def row(field, method, parameters, prediction, unit):
    """One line of the table; unit: of its seconds."""
    p = prediction
    told = scores.summary(field.truth, p.mean, p.std)
    return {
        "field": field.name,
        "method": method,
        "parameters": parameters,
        "n": len(field.sites),
        "targets": len(field.targets),
        **{name: told[name] for name in SHOWN},
        f"fit {unit}": p.seconds[0],
        f"predict {unit}": p.seconds[1],
        "surface": "sphere" if on_surface(p.cov) is not p.cov else "plane",
        "variance": on_surface(p.cov).variance,
        "length scale": on_surface(p.cov).length_scale,
        "smoothness": getattr(on_surface(p.cov), "smoothness", 0.5),
        "nugget": p.nugget,
        "trend": " ".join(f"{c:.5g}" for c in p.trend),
        **p.more,
    }


def draw(field, prediction, path, told):
    """The maps of one prediction."""
    panels = map_plot.outcome(field.sites, field.values, field.targets, prediction.mean, prediction.std, field.truth)
    p = scores.summary(field.truth, prediction.mean, prediction.std)
    told = f"{len(field.sites):,} sites, {len(field.targets):,} targets · {told} · RMSE {p['rmse']:.4g}, "
    map_plot.draw(panels, path, f"{field.name.replace('_', ' ')} field", told + f"coverage {p['coverage']:.3f}")
