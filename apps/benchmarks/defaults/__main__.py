"""How long does `covariance_matrix` take as users call it, and how often does a plan miss the accuracy?

Uniform random sites in the unit square, 2-D exponential covariance of length 0.1, everything chosen from rtol; several
draws, since the plan samples. A row a draw; then one a size with the seconds of each phase, the device waited for.

    python -m h2gpu.apps.benchmarks.defaults [--device cpu|cuda] [--log2 17,20] [--draws 8] [--rtol 1e-7]
                                             [--output benchmarks/compression/defaults-….csv]
"""

import sys

import numpy as np

import h2gpu
from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.compress_row import device_of, timed
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.options import at_least, positive
from h2gpu.progress import PhaseTimes, watched_by

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
    for draw in (0, *range(draws)):
        points, tries = xp.asarray(np.random.default_rng(draw).random((n, 2))), PhaseCounts()

        def job(points=points):
            return h2gpu.covariance_matrix(points, cov, rtol)

        with watched_by(tries):
            B, seconds = timed(job, synchronize)
        error = h2gpu.sampled_error(B, points, cov, rows=min(256, n), random_state=1) / rtol
        row = {"n": n, "draw": draw, "total s": seconds, "tries": tries.counts["check"], "MB": B.nbytes / 1e6}
        rows.append(row | {"error / rtol": error})
        del B
    times = PhaseTimes(synchronize)
    with watched_by(times):
        _, seconds = timed(job, synchronize)
    phases = {f"{name} s": times.seconds.get(name, 0.0) for name in PHASES}
    return [*rows[1:], {"n": n, "draw": draws - 1, "total s": seconds} | phases]


class PhaseCounts:
    """An observer: how often each phase has begun, in `counts` by name."""

    def __init__(self):
        self.counts = {}

    def __call__(self, name, done, total):
        if done == 0:
            self.counts[name] = self.counts.get(name, 0) + 1


if __name__ == "__main__":
    sys.exit(main())
