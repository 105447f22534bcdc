"""What a run of h2krige tells: a dictionary for the JSON report, attributes of the output, and lines to read."""

import json
import re

import numpy as np

from h2gpu.apps.command.report import aligned, covariance_text, second_lines, versions
from h2gpu.arrays import to_host
from h2gpu.memory import peak_memory, readable
from h2gpu.texts import plain

SCORES = {
    "rmse": "RMSE",
    "mae": "MAE",
    "crps": "CRPS",
    "interval": "interval score",
    "coverage": "coverage of 95 %",
}


def report_of(job, seconds):
    """Everything about a run, ready for JSON.

    job       the `h2krige` job, done
    seconds   {phase: seconds}
    """
    a, model = job.arguments, job.model
    return {
        "input": a.input,
        "targets": a.targets,
        "output": str(job.output),
        "n": len(job.sites),
        "m": len(job.targets),
        "dim": job.sites.shape[1],
        **model_of(job),
        "estimated": estimated(model),
        "rtol": {"asked": a.rtol, "matrix": model.rtol_},
        "iterations": model.iterations_,
        "processes": job.comm.size,
        "device": {"kind": job.device.kind, "name": job.device.name},
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "peak_memory": {
            "estimated": job.estimated_peak,
            "process": peak_memory(),
            "device": job.device.peak_memory(),
        },
        "scores": job.scores or None,
        "versions": versions(),
    }


def model_of(job):
    """Covariance, nugget and trend in use."""
    model = job.model
    return {
        "covariance": model.cov_.parameters(),
        "nugget": np.asarray(model.nugget_).tolist(),
        "trend": {"kind": job.arguments.trend, "coefficients": to_host(model.trend_coefficients_).tolist()},
    }


def attributes(job):
    """What is kept in the output beside the predictions: numbers as such, all else of the model as JSON."""
    found = model_of(job).items()
    told = {name: value if isinstance(value, (int, float)) else json.dumps(value) for name, value in found}
    system = {} if job.crs is None else {"crs": job.crs.to_wkt()}
    scores = job.scores
    if job.mean.ndim == 2:
        scores = {f"{name}_{of}": value for of, own in scores.items() for name, value in own.items()}
    return told | {"n": len(job.sites), "source": plain(job.arguments.input)} | system | scores


def summary(report):
    """The report as lines to read."""
    yield f"{report['n']:,} sites in {report['dim']}D · {report['m']:,} targets · {report['device']['kind']}" + (
        f" · {report['processes']} processes" if report["processes"] > 1 else ""
    )
    how = "estimated" if report["estimated"] else "given"
    nuggets = ", ".join(f"{nugget:.4g}" for nugget in np.ravel(report["nugget"]))
    yield f"covariance    {covariance_in_short(report['covariance'])}, nugget {nuggets} ({how})"
    coefficients = ", ".join(f"{c:.6g}" for c in np.ravel(report["trend"]["coefficients"]))
    yield f"trend         {report['trend']['kind']}" + (f": {coefficients}" if coefficients else "")
    if report["estimated"]:
        yield ""
        found = report["estimated"]["parameters"].items()
        rows = [
            (f"  {name}", f"{p['value']:.4g}", _number(p["error"]), *map(_number, p["interval"])) for name, p in found
        ]
        yield from aligned(("estimated", "value", "error", "from", "to (95 %)"), rows)
        yield f"  log-likelihood {report['estimated']['log_likelihood']:.6g}"
        yield ""
    if report["iterations"]:
        yield f"solve         {report['iterations']} iterations, matrix of rtol {report['rtol']['matrix']:.2g}"
    if report["scores"]:
        yield ""
        of = report["scores"] if isinstance(next(iter(report["scores"].values())), dict) else {"": report["scores"]}
        rows = [(f"  {told}", *(f"{own[name]:.4g}" for own in of.values())) for name, told in SCORES.items()]
        yield from aligned(("scores", *of), rows)
        yield ""
    yield f"peak          {readable(report['peak_memory']['process'] or 0)} of this process"
    yield ""
    yield from second_lines(report["seconds"])


def _number(value):
    return "" if value is None else f"{value:.3g}"


def covariance_in_short(parameters):
    """A covariance's parameters in words, numbers with four digits."""
    return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.4g}", covariance_text(parameters))


def estimated(model):
    """Logarithm of the largest likelihood, and the parameters there with their standard errors; None where given."""
    if model.estimation_ is None:
        return None
    rates = {free.name: free.rate for free in model.estimation_.model.free}
    errors = {name: rates[name] * error for name, error in model.parameter_errors_.items()}
    ends = model.parameter_intervals_
    found = {
        name: {"value": float(v), "error": errors.get(name), "interval": list(ends.get(name, (None, None)))}
        for name, v in model.parameters_.items()
    }
    return {"log_likelihood": float(model.estimation_.value), "parameters": found}
