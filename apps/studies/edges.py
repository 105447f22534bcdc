"""What shall threads do that lie beyond the edge of a matrix?

Figures 3 to 9 of Nath, Tomov & Dongarra (2010): products of n × n matrices, n known at run time, whose tiles hang over.
Threads beyond read the last row once more (redirected), rows before it (mirrored), zeros (padded) or nothing at all
(conditional); beside them the kernel of ragged batches (tiles), that compiled for n (fixed), and cuBLAS.

    python -m h2gpu.apps.studies.edges [--sizes 8,16,17,…] [--dtype float64] [--output FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines import nominal
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.options import counts
from h2gpu.batched import MatrixBatch

BEYOND = {"redirected": 0, "mirrored": 1, "padded": 2, "conditional": 3}  # of kernels/products/block/edge_copies.cuh
SIZES = (8, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 49, 56, 63, 64, 65, 72, 79, 80)
ENTRIES = 1 << 24  # of each factor
TOLERANCE = 100  # units in the last place, times n


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.edges", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.edges", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--sizes", type=counts, default=SIZES, help="up to 80")
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    parser.add_argument("-o", "--output", default="benchmarks/batched", help="folder for study_edges-*.csv")
    options = parser.parse_args(argv)
    device = timing.gpu_name()
    rows = [measure(n, np.dtype(options.dtype)) for n in options.sizes]
    print(tables.text(rows))
    tables.write(Path(options.output) / f"study_edges-{options.dtype}.csv", rows, device)
    print(conclusion(rows))


def measure(n, dtype):
    """One row: TFLOP/s of every way, all of whose results agree."""
    import cupy

    count = max(200, ENTRIES // n**2)
    A, B = cupy.random.default_rng(0).standard_normal((2, count, n, n), dtype=dtype.type)
    exact, row = cupy.matmul(A, B), {"n": n, "batch": count}
    work = nominal.gemm(count, n, n, n, dtype.name)
    for name, product in ways(A, B).items():
        error = float(abs(product(None) - exact).max())
        if not error <= TOLERANCE * n * np.finfo(dtype).eps:
            raise ArithmeticError(f"{name}, n = {n}: wrong by {error}")
        row[name] = work.of(timing.device_ms(product, [None]))["GFLOP/s"] / 1e3
    return row | {"bound": work.flops / work.bound_ms * 1e-9}


def ways(A, B):
    """Functions of nothing that give the products, by name."""
    import cupy

    from h2gpu.batched.products.gemm import run_redirected

    ragged = [MatrixBatch.from_stack(M).resident for M in (A, B, cupy.empty_like(A))]
    lists = [M.number(0) for M in (*ragged[:2], ragged[0], ragged[2])] + [ragged[2].number(i) for i in (1, 2)]
    lists.append(ragged[0].number(2))

    def by_edges(beyond):
        buffers = ragged[0].buffer, ragged[1].buffer, np.uint64(0), ragged[2].buffer
        run_redirected(A.shape[1], A.dtype, False, False, buffers, lists, 1, 0, beyond)
        return ragged[2].buffer.reshape(A.shape)

    found = {name: lambda _, beyond=beyond: by_edges(beyond) for name, beyond in BEYOND.items()}
    return found | {name: lambda _, name=name: batched.gemm(A, B, method=name) for name in ("tiles", "fixed", "vendor")}


def conclusion(rows):
    """One sentence: the ways' rates relative to redirection, in the mean over the sizes that fill no tile."""
    odd = [row for row in rows if row["n"] % 16]
    means = {
        name: np.mean([row[name] / row["redirected"] for row in odd]) for name in (*BEYOND, "tiles", "fixed", "vendor")
    }
    told = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
    return f"Rates relative to redirected, mean over {len(odd)} sizes that fill no tile: {told}."


if __name__ == "__main__":
    sys.exit(main())
