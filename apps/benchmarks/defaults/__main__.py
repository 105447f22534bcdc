"""How long does `covariance_matrix` take as users call it, and how often does a plan miss the accuracy?

Uniform random sites in the unit square, 2-D exponential covariance of length 0.1, everything chosen from rtol; several
draws, since the plan samples. A row a draw; then one a size with the seconds of each phase, the device waited for.

On a CPU, which others may use too, CPU seconds are counted as well, and those of the phases. The yardstick is the time
of 1500 singular value decompositions of 64 × 64 by LAPACK on one thread in the same run: *yardsticks* are of the whole
job by the clock, on quiet cores what other machines are compared by; *CPU yardsticks* of its CPU seconds, of all
threads. And A x of a vector, both ways.

    python -m h2gpu.apps.benchmarks.defaults [--device cpu|cuda] [--log2 17,20] [--draws 8] [--rtol 1e-7]
                                             [--output benchmarks/compression/defaults-….csv]
"""

import sys
import time

import numpy as np

import h2gpu
from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.compress_row import device_of, timed
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import at_least, positive
from h2gpu.batched.device.threads import one_blas_thread
from h2gpu.progress import PhaseTimes, watched_by

YARDSTICK = 1500, 64  # matrices, rows of each
PRODUCTS = 15  # of which the median is taken
PHASES = "plan", "cluster", "basis", "orthogonalize", "weights", "truncate", "project", "store", "check"


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.defaults", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.defaults", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--log2", default="17,20", help="log2 of the numbers of sites, comma-separated")
    parser.add_argument("--draws", type=at_least(1), default=8, help="of sites, of each number (default: 8)")
    parser.add_argument("--rtol", type=positive, default=1e-7)
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    rows = []
    for log2n in map(int, options.log2.split(",")):
        rows += measure(2**log2n, options.draws, options.rtol, options.device)
        print(tables.text(rows[-options.draws - 1 :]), flush=True)
    if options.output:
        tables.write(options.output, rows, tables.device_name(options.device))


def measure(n, draws, rtol, device):
    """A row for each draw after a first job, which loads kernels; and the phases of the last draw once more."""
    (xp, synchronize, _), rows, cov = device_of(device), [], problems.paper_covariance()
    clock = time.process_time if device == "cpu" else None
    for draw in (0, *range(draws)):
        points, tries = xp.asarray(np.random.default_rng(draw).random((n, 2))), PhaseCounts()

        def job(points=points):
            return h2gpu.covariance_matrix(points, cov, rtol)

        with watched_by(tries):
            begun = time.process_time()
            B, seconds = timed(job, synchronize)
            spent = time.process_time() - begun
        error = h2gpu.sampled_error(B, points, cov, rows=min(256, n), random_state=1) / rtol
        row = {"n": n, "draw": draw, "total s": seconds, "tries": tries.counts["check"], "MB": B.nbytes / 1e6}
        rows.append(row | {"error / rtol": error} | (on_cores(B, seconds, spent) if clock else {}))
        del B
    times = PhaseTimes(synchronize, clock)
    with watched_by(times):
        _, seconds = timed(job, synchronize)
    phases = {f"{name} s": times.seconds.get(name, 0.0) for name in PHASES}
    return [*rows[1:], {"n": n, "draw": draws - 1, "total s": seconds} | phases]


def on_cores(B, seconds, spent):
    """What a job that took so many seconds by the clock and of the CPU, and then a product, took of a CPU."""
    x = np.random.default_rng(0).random(B.shape[1])
    products = [clock_and_cpu(lambda: B @ x) for _ in range(1 + PRODUCTS)][1:]
    matrices = np.random.default_rng(0).standard_normal((YARDSTICK[0], *2 * YARDSTICK[1:]))
    unit = clock_and_cpu(lambda: np.linalg.svd(matrices))
    clock, cpu = (1e3 * np.median(products, axis=0)).tolist()
    job = {"CPU s": spent, "yardsticks": seconds / unit[0], "CPU yardsticks": spent / unit[1]}
    return job | {"A x ms": clock, "A x CPU ms": cpu}


def clock_and_cpu(work):
    """Seconds of work() by the clock and of the CPU, LAPACK on one thread."""
    with one_blas_thread():
        before = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - before[0], time.process_time() - before[1]


class PhaseCounts:
    """An observer: how often each phase has begun, in `counts` by name."""

    def __init__(self):
        self.counts = {}

    def __call__(self, name, done, total):
        if done == 0:
            self.counts[name] = self.counts.get(name, 0) + 1


if __name__ == "__main__":
    sys.exit(main())
