"""How long does kriging take with a given covariance, and how well does it do?

Noisy values of a known smooth function at uniform random sites: fit, then means at 10,000 places, then means and
standard deviations. On a GPU each size is done twice, the first time compiles kernels.

    python -m h2gpu.apps.benchmarks.kriging [--device cpu|cuda] [--sizes 90000,1000000] [--output benchmarks/…csv]
"""

import sys

import numpy as np

from h2gpu.apps.benchmarks.compress_row import device_of, timed
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import counts
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential
from h2gpu.statistics import Kriging

TARGETS = 10_000
NOISE = 0.1
COVARIANCE, NUGGET, RTOL = Exponential(length_scale=0.2), NOISE**2, 1e-6


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.kriging", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.kriging", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sizes", type=counts, default=[90000], help="numbers of sites, separated by commas")
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    rows = []
    for n in options.sizes:
        for which in ("first", "second") if options.device == "cuda" else ("first",):
            rows.append({"n": n, "targets": TARGETS, "run": which} | measure(n, options.device))
            print(tables.text(rows[-1:]), flush=True)
    if options.output:
        tables.write(options.output, rows, tables.device_name(options.device))


def measure(n, device):
    """Seconds of each step, iterations, error of the means and the share of truths within two standard deviations."""
    (xp, synchronize, _), rng = device_of(device), np.random.default_rng(0)
    sites, targets = rng.random((n, 2)), rng.random((TARGETS, 2))
    values, truth = _function(sites) + NOISE * rng.standard_normal(n), _function(targets)
    sites, targets, values = map(xp.asarray, (sites, targets, values))
    model, fit = timed(lambda: Kriging(COVARIANCE, NUGGET, rtol=RTOL).fit(sites, values), synchronize)
    _, predict = timed(lambda: model.predict(targets), synchronize)
    (mean, std), both = timed(lambda: model.predict(targets, return_std=True), synchronize)
    mean, std = to_host(mean), to_host(std)
    row = {"fit s": fit, "predict s": predict, "predict with std s": both, "fit and predict with std s": fit + both}
    row["iterations"] = model.iterations_
    return row | {
        "rmse": float(np.sqrt(np.mean((mean - truth) ** 2))),
        "mean std": float(std.mean()),
        "within 2 std": float(np.mean(abs(mean - truth) <= 2 * std)),
    }


def _function(x):
    return np.sin(6 * x[:, 0]) + x[:, 1]


if __name__ == "__main__":
    sys.exit(main())
