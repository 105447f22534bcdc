"""How long does a direct factorization take, what does it hold, and how wrong is it, against the number of sites?

    python -m h2gpu.apps.benchmarks.direct [--cases A,C,D] [--log2 12,13,15,17] [--eta 0.01,0.001] [--peers 15]
                             [--heaton heaton2019.h5] [--kaust kaust2021.h5] [--fields NAME,…] [--device cpu|cuda]
                             [--output …csv]

A   exponential, length 0.1            C   Matérn 3/2, length 0.1, nugget 0.01           D   Matérn 3/2, length 0.02

on uniform sites of the unit square, and published fields (`benchmarks.solvers`). A line a case, size and eta: seconds,
on a CPU those of all threads too (CPU s: other work on the machine changes them less), on a GPU the median of three
runs after a first, or the second of long ones; megabytes, and the errors of log det and of the log-likelihood of
simulated data, against a dense factor for up to 8,192 sites, else against eta 1e-5.

--peers: for up to 2^so many sites, and for the fields, also the same by Vecchia's factor, the H²-matrix at the rtol
that it needs, conjugate gradients to 1e-8 and Lanczos with 16 probes; and Vecchia's likelihood by GPBoost where it is
installed.
"""

import statistics
import sys
import time
from functools import partial

import numpy as np

import h2gpu
from h2gpu import solvers
from h2gpu.apps.benchmarks import solvers as published_fields
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies.peers import gpboost_vecchia
from h2gpu.arrays import array_module, module_of_device
from h2gpu.batched.device.threads import one_blas_thread
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.covariance.sites import Sites

CASES = {
    "A": Exponential(length_scale=0.1),
    "C": Matern(length_scale=0.1, smoothness=1.5) + Nugget(0.01),
    "D": Matern(length_scale=0.02, smoothness=1.5),
}
DENSE, FINE = 8192, 1e-5
RTOL, NEIGHBOURS, PROBES = 1e-8, 30, 16
TARGETS = 10_000
RUNS, LONG = 3, 3.0  # on a GPU: runs of which the median counts, seconds of one that is not done again
MEGABYTE = 1e6


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.direct", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.direct", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--cases", default="A,C,D", help="of the unit square, separated by commas")
    parser.add_argument("--log2", default="12,13,15,17", help="log2 of numbers of sites")
    parser.add_argument("--eta", default="0.01,0.001", help="tolerances")
    parser.add_argument("--peers", type=int, default=0, help="log2 of the most sites that others are measured for, too")
    parser.add_argument("--heaton", help="HDF5 file of the Heaton et al. comparison: see published.py")
    parser.add_argument("--kaust", help="HDF5 file of the KAUST 2021 competition, likewise")
    parser.add_argument("--fields", help='names of published fields; "none" for none; default: all of the files given')
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    xp = module_of_device(options.device)
    rows, etas = [], [float(eta) for eta in options.eta.split(",")]
    for name, points, values, cov in problems(options):
        peers = values is not None or len(points) <= 2**options.peers
        for row in measured(xp.asarray(points), values, cov, etas, peers and options.peers > 0):
            rows.append({"case": name, **row})
            print({key: value for key, value in rows[-1].items() if value not in ("", None)}, flush=True)
            if options.output:  # hours may follow
                tables.write(options.output, rows, tables.device_name(options.device))
    print(tables.text(rows))


def problems(options):
    """(name, sites, values or None, covariance) of all that is asked for."""
    for log2 in map(int, options.log2.split(",")):
        for case in filter(None, options.cases.split(",")):
            yield case, np.random.default_rng(0).random((2**log2, 2)), None, CASES[case]
    if options.fields != "none":
        for name, field in published_fields.fields(options).items():
            yield name, *field


def measured(points, values, cov, etas, peers):
    """A row for each eta."""
    n, xp = len(points), array_module(points)
    unit = "CPU s" if xp is np else "s"
    truth = dense(points, cov) if n <= DENSE else solvers.skeletonize(points, cov, FINE)
    if values is None:
        values = truth.multiply_half(xp.asarray(np.random.default_rng(1).standard_normal(n)))
    y = xp.asarray(values - values.mean())[:, None]
    exact, quadratic = truth.log_determinant(), float((truth.solve_half(y) ** 2).sum())
    del truth  # as large as what is measured
    others = by_others(points, y, cov, exact, quadratic) if peers else {}
    for eta in etas:
        G, wall, used = timed(partial(solvers.skeletonize, points, cov, eta), xp)
        _, _, solve = timed(partial(G.solve, y), xp)
        targets = np.random.default_rng(2).permutation(n)[:TARGETS]
        moved = points[xp.asarray(targets)] + 1e-3 * xp.ptp(points, axis=0)
        _, _, deviations = timed(partial(G.explained, Sites.of(moved, cov, points)), xp)
        logdet, found = G.log_determinant(), float((G.solve_half(y) ** 2).sum())
        yield {
            "n": n,
            "eta": G.eta,
            "seconds": wall,
            "CPU s": used if xp is np else None,
            "MB": G.nbytes / MEGABYTE,
            "root": len(G.top),
            f"solve {unit}": solve,
            f"{unit} of 10,000 standard deviations": deviations * TARGETS / len(targets),
            "log det": logdet,
            "log det error": logdet - exact,
            "log-likelihood error": -0.5 * (logdet - exact + found - quadratic),
            "against": "dense" if n <= DENSE else f"eta {FINE:g}",
            **others,
        }
        del G
        others = {}


class Dense:
    """L Lᵀ = K."""

    def __init__(self, K):
        self.L = array_module(K).linalg.cholesky(K)

    def log_determinant(self):
        """log det K."""
        xp = array_module(self.L)
        return 2 * float(xp.log(xp.diagonal(self.L)).sum())

    def solve_half(self, y):
        """L⁻¹ y."""
        return array_module(self.L).linalg.solve(self.L, y)

    def multiply_half(self, z):
        """L z."""
        return self.L @ z


@one_blas_thread()
def dense(points, cov):
    """The Dense factor of cov at the points."""
    return Dense(cov(points))


def by_others(points, y, cov, exact, quadratic):
    """Seconds and errors of iterations with Vecchia's factor, and on the CPU of GPBoost's likelihood."""
    xp = array_module(points)
    unit = "CPU s" if xp is np else "s"
    W, _, factor = timed(partial(solvers.vecchia, points, cov, NEIGHBOURS), xp)
    rtol, _, bound = timed(partial(solvers.sufficient_rtol, points, cov, W), xp)
    A, _, build = timed(partial(h2gpu.covariance_matrix, points, cov, rtol), xp)
    solution, _, solve = timed(partial(solvers.conjugate_gradients, A, y, W, rtol=RTOL), xp)
    logdet, _, lanczos = timed(partial(solvers.log_determinant, A, W, trace=len(y), probes=PROBES), xp)
    dot = float((y[:, 0] * solution.x[:, 0]).sum())
    row = {
        f"Vecchia {unit}": factor + bound,
        f"matrix {unit}": build,
        f"CG {unit}": solve,
        "CG iterations": int(solution.iterations[0]),
        f"Lanczos {unit}": lanczos,
        "iterative log det error": logdet.value - exact,
        "±": logdet.standard_error,
        "iterative log-likelihood error": -0.5 * (logdet.value - exact + dot - quadratic),
    }
    return row if unit == "s" else row | _gpboost(points, y[:, 0], cov, exact, quadratic)


def _gpboost(points, y, cov, exact, quadratic):
    """Vecchia's likelihood by GPBoost, of one covariance and a nugget."""
    terms = getattr(cov, "terms", (cov,))
    plain = [term for term in terms if isinstance(term, (Exponential, Matern))]
    if not gpboost_vecchia.available() or len(plain) != 1 or np.ndim(plain[0].length_scale):
        return {}
    found, _, seconds = timed(partial(gpboost_vecchia.log_likelihood, points, y, plain[0], cov.nugget))
    value = -0.5 * (exact + quadratic + len(y) * np.log(2 * np.pi))
    return {"GPBoost CPU s": seconds, "GPBoost log-likelihood error": float(found - value)}


def timed(work, xp=np):
    """What work() returns, seconds, CPU seconds of all threads; on a GPU the median of some after a first, twice."""
    taken, used = [], time.process_time()
    for count in range(1 if xp is np else 1 + RUNS):
        if count > 1 and taken[-1] >= LONG:
            break
        result, begin = None, time.perf_counter()  # one goes before the next is made
        result = work()
        if xp is not np:
            xp.cuda.Device().synchronize()
        taken.append(time.perf_counter() - begin)
    wall = statistics.median(taken[1:] or taken)
    return result, wall, time.process_time() - used if xp is np else wall


if __name__ == "__main__":
    sys.exit(main())
