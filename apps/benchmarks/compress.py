"""How long and how much memory from points to the compressed covariance matrix?

The problem of Boukaram et al., section 8.3: 2-D exponential covariance of length 0.1 on a perturbed grid, rtol 1e-7;
with 8×8 points at eta 1, and at eta 1.5, which admits nearly the blocks of H2Opus's rule (distance of centres, its eta
0.9: interpolation error 3e-7), and with the parameters that the one accuracy knob chooses. On the CPU
every row is a process of its own, so that its peak memory is its own; on a GPU the memory pool tells.

    python -m h2gpu.apps.benchmarks.compress [--device cpu|cuda] [--largest 17] [--rtol 1e-7] [--output benchmarks/…csv]

With --stored: compression alone of a matrix whose couplings are stored, which is what H2Opus measures; at eta 1.5, in
both precisions and without rounding parts of the result; also with all products by tiles, as before there were kernels
for small matrices of many sizes.
"""

import json
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np

import h2gpu
from h2gpu import batched
from h2gpu.apps.benchmarks import compress_row, problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import at_least, positive
from h2gpu.progress import PhaseTimes, watched_by

PARAMETERS = {
    "paper": {"leaf_size": 64, "eta": 1.0, "order": 8},
    "H2Opus": {"leaf_size": 64, "eta": 1.5, "order": 8},
    "one knob": {},
}
SMALLEST = 14  # log2 of the first n
STORED_RTOL = {"float64": 1e-7, "float32": 1e-5}
RUNS = 5


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.compress", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.compress", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--largest", type=at_least(SMALLEST), default=17, help="log2 of the largest n")
    parser.add_argument("--rtol", type=positive, default=1e-7)
    parser.add_argument("--stored", action="store_true", help="compression alone of stored couplings")
    parser.add_argument("-o", "--output", help="CSV file to write")
    parser.add_argument(
        "--row", nargs=3, metavar=("LOG2N", "PARAMETERS", "RTOL"), help="measure one row, print it as JSON"
    )
    options = parser.parse_args(argv)
    if options.row:
        log2n, name, rtol = options.row
        print(json.dumps(measure(int(log2n), name, float(rtol), options.device)))
        return
    rows = []
    for log2n in range(SMALLEST, options.largest + 1):
        for name in STORED_RTOL if options.stored else PARAMETERS:
            words = log2n, name, options.rtol
            if options.stored:
                rows.append(compression(log2n, name, options.device))
            elif options.device == "cpu":
                rows.append(compress_row.of_own_process("h2gpu.apps.benchmarks.compress", options.device, *words))
            else:
                rows.append(measure(*words, options.device))
            print(tables.text(rows[-1:]), flush=True)
    print(tables.text(rows))
    if options.output:
        tables.write(options.output, rows, tables.device_name(options.device))


def measure(log2n, name, rtol, device):
    """One row of the table; on a GPU a first run loads its kernels."""
    points = problems.perturbed_grid(2**log2n)
    row = compress_row.measure(points, problems.paper_covariance(), PARAMETERS[name], rtol, device, points)
    return {"n": row["n"], "parameters": name} | row


def compression(log2n, dtype, device):
    """A row of --stored: the median of some runs after a first; phases, each waited for, of another."""
    (xp, synchronize, _), rtol = compress_row.device_of(device), STORED_RTOL[dtype]
    points = xp.asarray(problems.perturbed_grid(2**log2n).astype(dtype))
    A = h2gpu.build(points, problems.paper_covariance(), **PARAMETERS["H2Opus"])

    def work():
        return h2gpu.compress(A, rtol, storage="full")

    ms = median_ms(work, synchronize)
    with products_by("tiles"):
        by_tiles = median_ms(work, synchronize)
    phases = PhaseTimes(synchronize)
    with watched_by(phases):
        B = work()
    x = xp.ones(2**log2n, dtype)
    row = {"n": 2**log2n, "dtype": dtype, "rtol": rtol, "compress ms": ms, "compress by tiles alone ms": by_tiles}
    row["A x ms"] = median_ms(lambda: B @ x, synchronize)
    row |= {f"{name} ms": 1e3 * phases.seconds[name] for name in ("orthogonalize", "weights", "truncate", "project")}
    return row | {"coupling before MB": A.memory["coupling"] / 1e6, "total after MB": B.memory["total"] / 1e6}


def median_ms(work, synchronize):
    """Of some runs after a first."""
    work()
    return 1e3 * float(np.median([compress_row.timed(work, synchronize)[1] for _ in range(RUNS)]))


@contextmanager
def products_by(method):
    """Within the block `batched.gemm` takes this method where none is asked for."""
    product = batched.gemm
    batched.gemm = partial(product, method=method)
    try:
        yield
    finally:
        batched.gemm = product


if __name__ == "__main__":
    sys.exit(main())
