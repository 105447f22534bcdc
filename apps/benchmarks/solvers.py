"""How many iterations of conjugate gradients, with Vecchia's preconditioner and without, and in how many seconds?

    python -m h2gpu.apps.benchmarks.solvers [--heaton heaton2019.h5] [--kaust kaust2021.h5] [--fields NAME,…]
                                       [--sites N] [--neighbours 30] [--output benchmarks/solvers-cpu.csv]

A line a field: the covariance matrix at the rtol that its smallest eigenvalue asks for, one solve for the centred data
to 1e-8, the log-determinant from 16 probes. Always the elevations in data/; the published benchmarks where their files
are given, as `published` describes them.

Without preconditioner the iterations end at --unpreconditioned; the residual beside tells how far they came.
"""

import sys
import time

import numpy as np

import h2gpu
from h2gpu import solvers
from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import published
from h2gpu.covariance import Exponential, Matern, Nugget

ROUNDED = 1 / 12  # variance of what rounding to whole metres adds
RTOL = 1e-8
MEGABYTE = 1e6
SHOWN = "n", "rtol", "factor s", "matrix s", "iterations", "residual", "solve s"  # while the table is not complete


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.solvers", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.solvers", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--heaton", help="HDF5 file of the Heaton et al. comparison: see published.py")
    parser.add_argument("--kaust", help="HDF5 file of the KAUST 2021 competition, likewise")
    parser.add_argument("--fields", help="names of the fields to measure, separated by commas; default: all")
    parser.add_argument("--sites", type=int, help="a random subset of so many sites; default: all")
    parser.add_argument("--neighbours", type=int, default=30, help="of the preconditioner")
    parser.add_argument("--rtol", type=float, help="of the matrix; default: what its smallest eigenvalue asks for")
    parser.add_argument("--unpreconditioned", type=int, default=200, help="most iterations without preconditioner")
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    rows = []
    for name, (points, values, cov) in fields(options).items():
        rows.append({"field": name, **measure(points, values, cov, options), "covariance": cov})
        print(name, {key: rows[-1][key] for key in SHOWN}, flush=True)
    print(tables.text(rows))
    if options.output:
        tables.write(options.output, rows, tables.device_name("cpu"))


def fields(options):
    """Name → sites, values, covariance, of the files given."""
    found = jacksboro()
    if options.heaton:
        found |= heaton(options.heaton)
    if options.kaust:
        found |= kaust(options.kaust)
    return published.chosen(found, options.fields)


def jacksboro():
    """Elevations of the file in data/, as a smooth field without nugget and a rough one with."""
    points, values = published.elevations(problems.JACKSBORO)
    return {name: (points, values, cov) for name, cov in of_elevations(values.var()).items()}


def of_elevations(variance):
    """The covariances of both fields of elevations, {name: covariance}; variance: of the field, square metres."""
    return {
        "jacksboro": Matern(variance, 2000.0, 1.0),
        "jacksboro_nugget": Exponential(variance, 5000.0) + Nugget(ROUNDED),
    }


def heaton(path):
    """The simulated field with its true covariance; the satellite's with the same correlation and its own variance."""
    simulated, satellite = published.heaton(path).values()
    own = float(satellite.values.var()) / simulated.covariance.variance_at_zero * simulated.covariance
    return {
        "heaton_simulated": (simulated.sites, simulated.values, simulated.covariance),
        "heaton_satellite": (satellite.sites, satellite.values, own),
    }


def kaust(path):
    """The fields with their true covariances."""
    return {f"kaust_{name}": (f.sites, f.values, f.covariance) for name, f in published.kaust(path).items()}


def measure(points, values, cov, options):
    """One row of the table."""
    if options.sites and options.sites < len(points):
        some = np.sort(np.random.default_rng(0).permutation(len(points))[: options.sites])
        points, values = points[some], values[some]
    b = values - values.mean()
    W, factor_s = timed(lambda: solvers.vecchia(points, cov, options.neighbours))
    rtol, rtol_s = timed(lambda: options.rtol or solvers.sufficient_rtol(points, cov, W))
    A, build_s = timed(lambda: h2gpu.covariance_matrix(points, cov, rtol))
    good, good_s = timed(lambda: solvers.conjugate_gradients(A, b, W, rtol=RTOL))
    if good.message:
        print(good.message, flush=True)
    none, none_s = timed(lambda: solvers.conjugate_gradients(A, b, rtol=RTOL, maximum=options.unpreconditioned))
    logdet, logdet_s = timed(lambda: solvers.log_determinant(A, W, trace=len(b)))
    return {
        "n": len(b),
        "smallest eigenvalue": max(solvers.smallest_eigenvalue(W), cov.nugget),
        "rtol": rtol,
        "matrix MB": A.nbytes / MEGABYTE,
        "factor MB": W.nbytes / MEGABYTE,
        "factor s": factor_s,
        "rtol s": rtol_s,
        "matrix s": build_s,
        "iterations": int(good.iterations[0]),
        "residual": float(good.residuals[0]),
        "solve s": good_s,
        "iterations without": f"{'' if none.converged[0] else '> '}{none.iterations[0]}",
        "residual without": float(none.residuals[0]),
        "solve without s": none_s,
        "log det": logdet.value,
        "± log det": logdet.standard_error,
        "log det steps": logdet.steps,
        "log det s": logdet_s,
    }


def timed(work):
    """What work() returns, and its seconds."""
    begin = time.perf_counter()
    return work(), time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
