"""How fast does one kernel evaluate covariances between all pairs of points of many blocks, and how far from the bound?

    python -m h2gpu.apps.benchmarks.pairwise [--edges 64,81,49,125] [--output benchmarks/pairwise.csv]

One line a covariance, dimension and precision. The bound is the larger of writing the entries (at the rate of a memset,
measured in the same run) and the operations of the FP64 pipe. Medians of CUDA events around the launch; `host` is what
preparing it takes besides, `arrays` the time of the same by array operations.
"""

import sys
import time

import numpy as np

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import counts
from h2gpu.apps.studies import published
from h2gpu.batched import MatrixBatch
from h2gpu.covariance import Exponential, Expression, Gaussian, Matern, pairwise
from h2gpu.covariance.matern_table import LAYOUTS

FP64_OPERATIONS = 34e12 / 2  # a second; a fused multiply-add is one
ROOT, DECAY = 5, 15  # operations of kernels/covariance/thread/decay.cuh
DEBYE_OPERATIONS = 130  # covariance/thread/matern.cuh: 34 powers, a logarithm, an exponential, roots, quotients
EXPRESSION_OPERATIONS = 30  # the compiler's quotient and exponential
ENTRIES = 1 << 28
POINTS = 1 << 20
COVARIANCES = {
    "exponential": (Exponential(1.0, 0.1), ROOT + DECAY + 1),
    "Matérn 3/2": (Matern(1.0, 0.1, 1.5), ROOT + DECAY + 2),
    "Matérn 5/2": (Matern(1.0, 0.1, 2.5), ROOT + DECAY + 3),
    "Gaussian": (Gaussian(1.0, 0.1), DECAY + 1),
    "Matérn 1.2": (Matern(1.0, 0.1, 1.2), ROOT + DECAY + LAYOUTS["float64"].degree + 4),
    "Matérn 25": (Matern(1.0, 0.1, 25.0), DEBYE_OPERATIONS),
    "expression": (Expression("exp(-r / length)", length=0.1), ROOT + EXPRESSION_OPERATIONS),
}


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.pairwise", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.pairwise", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument(
        "--edges", type=counts, default=[64, 81, 49, 125], help="rows and columns of the blocks, the first for all rows"
    )
    parser.add_argument("--covariances", default=",".join(COVARIANCES), help="names, from the default on")
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    (first, *others), device = options.edges, timing.gpu_name()
    chosen = published.chosen(COVARIANCES, options.covariances, "--covariances")
    rows = [
        measure(name, dim, dtype, first) for name in chosen for dim in (1, 2, 3) for dtype in (np.float64, np.float32)
    ]
    rows += [measure("exponential", 2, dtype, edge) for edge in others for dtype in (np.float64, np.float32)]
    print(tables.text(rows))
    if options.output:
        tables.write(options.output, rows, device)


def measure(name, dim, dtype, edge):
    """One row of the table: blocks of edge × edge entries at random places, ENTRIES in all."""
    import cupy

    from h2gpu.batched.device.launch import launch
    from h2gpu.covariance.pairs import cuda

    cov, operations = COVARIANCES[name]
    rng, count = np.random.default_rng(0), ENTRIES // edge**2
    X = cupy.asarray(rng.random((POINTS, dim)).astype(dtype))
    x, y = (MatrixBatch.from_rows(X, rng.integers(0, POINTS - edge, count), np.full(count, edge)) for _ in range(2))
    out = MatrixBatch.empty(np.full(count, edge), edge, dtype, cupy)
    fill = timing.device_ms(lambda _: out.buffer.data.memset_async(1, out.nbytes), [None])
    function = cov.pair_function.on_device(dim, X.dtype)
    cuda.prepared(function, x, y, out)
    begin = time.perf_counter()
    ready = cuda.prepared(function, x, y, out)
    host = 1e3 * (time.perf_counter() - begin)
    kernel = timing.device_ms(lambda _: launch(*ready), [None])
    arrays = timing.device_ms(lambda _: pairwise(cov.values, x, y, out=out), [None])
    pipe = 1e3 * out.buffer.size * (2 * dim + operations) / FP64_OPERATIONS if dtype == np.float64 else 0.0
    return {
        "covariance": name,
        "dim": dim,
        "dtype": np.dtype(dtype).name,
        "edge": edge,
        "kernel ms": kernel,
        "fill ms": fill,
        "pipe ms": pipe,
        "of bound": max(fill, pipe) / kernel,
        "TB/s": out.nbytes / kernel / 1e9,
        "host ms": host,
        "arrays ms": arrays,
        "ns an entry": 1e6 * kernel / out.buffer.size,
    }


if __name__ == "__main__":
    sys.exit(main())
