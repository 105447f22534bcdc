"""What shall threads do that lie beyond the edge of a matrix?

Figures 3 to 9 of Nath, Tomov & Dongarra (2010): products of n × n matrices, n known at run time, whose tiles hang over.
Threads beyond read the last row once more (redirected), rows before it (mirrored), zeros (padded) or nothing at all
(conditional); beside them the kernel of ragged batches (tiles), that compiled for n (fixed), and cuBLAS.

Up to 80 a block has a whole product; beyond, tiles of 64 × 64, inner indices beyond the last zero in all ways.

    python -m h2gpu.apps.studies.edges [--sizes 8,16,17,…] [--dtype float64] [--output FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.routines import nominal
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import counts
from h2gpu.apps.studies.baselines import timed
from h2gpu.batched import MatrixBatch

BEYOND = {"redirected": 0, "mirrored": 1, "padded": 2, "conditional": 3}  # of kernels/products/block/edge_copies.cuh
SIZES = (8, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 49, 56, 63, 64, 65, 72, 79, 80)
SIZES += (81, 96, 97, 112, 113, 127, 128, 129, 144, 145, 159, 160, 1000, 1024, 1025, 2000, 2048, 2049, 3001, 4001)
HEADER, EDGE = "studies/edge_gemm.cuh", 64  # of sizes above those of run_redirected
ENTRIES, FEWEST = 1 << 24, 200  # of each factor; matrices at least, of small ones
LARGEST_FIXED = 160  # that are compiled for their size
OTHERS = "tiles", "fixed", "vendor"
TOLERANCE = 100  # units in the last place, times n


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.edges", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.edges", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--sizes", type=counts, default=SIZES, help="orders of the matrices")
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    parser.add_argument("-o", "--output", default="benchmarks/batched", help="folder for study_edges-*.csv")
    parser.add_argument("--compilers", type=int, default=16, help="processes that compile beforehand")
    options = parser.parse_args(argv)
    device = timing.gpu_name()
    small = [(n, options.dtype) for n in options.sizes if n <= LARGEST_FIXED]
    timing.side_by_side(compiled, small[::-1], options.compilers)
    path, dtype = Path(options.output) / f"study_edges-{options.dtype}.csv", np.dtype(options.dtype)
    rows = timed.kept([(n,) for n in options.sizes], lambda n: [measure(n, dtype)], path, device)
    print(conclusion(rows))


def compiled(case):
    """Every way once, after which kernels are on disk."""
    import cupy

    n, dtype = case
    for product in ways(*cupy.zeros((2, 2, n, n), dtype)).values():
        product(None)


def measure(n, dtype):
    """One row: TFLOP/s of every way, all of whose results agree."""
    import cupy

    count = max(FEWEST if n <= LARGEST_FIXED else 1, ENTRIES // n**2)
    A, B = cupy.random.default_rng(0).standard_normal((2, count, n, n), dtype=dtype.type)
    exact, row = cupy.matmul(A, B), {"n": n, "batch": count}
    work = nominal.gemm(count, n, n, n, dtype.name)
    for name, product in ways(A, B).items():
        error = float(abs(product(None) - exact).max())
        if not error <= TOLERANCE * n * np.finfo(dtype).eps:
            raise ArithmeticError(f"{name}, n = {n}: wrong by {error}")
        row[name] = work.of(timing.device_ms(product, [None]))["GFLOP/s"] / 1e3
    return row | {"bound": work.flops / work.bound_ms * 1e-9} | from_host(n, dtype)


def from_host(n, dtype):
    """Milliseconds with all data in memory of the host (figure 10), by the wall: redirected, and padded to whole tiles.

    Padded: zeros and factors are put together on the host, more bytes travel, and no tile hangs over.
    """
    import cupy

    if n <= LARGEST_FIXED:
        return {}
    A, B = np.random.default_rng(0).standard_normal((2, 1, n, n)).astype(dtype)
    whole = -(-n // EDGE) * EDGE

    def product(A, B):
        return cupy.asnumpy(in_tiles(*(M := tuple(map(cupy.asarray, (A, B)))), cupy.empty_like(M[0]), 0))

    def padded(pair):
        wide = np.zeros((2, 1, whole, whole), dtype)
        wide[..., :n, :n] = pair
        return product(*wide)[:, :n, :n]

    ways = {"redirected": lambda pair: product(*pair), "padded": padded}
    return {f"{name}, data on the host, ms": timing.call_ms(way, [(A, B)]) for name, way in ways.items()}


def ways(A, B):
    """Functions of nothing that give the products, by name."""
    import cupy

    from h2gpu.batched.products.gemm import EDGES, run_redirected

    n = A.shape[1]
    others = [name for name in OTHERS if n <= LARGEST_FIXED or name != "fixed"]
    theirs = {name: lambda _, name=name: batched.gemm(A, B, method=name) for name in others}
    if n > EDGES[-1]:
        out = cupy.empty_like(A)
        return {name: lambda _, beyond=beyond: in_tiles(A, B, out, beyond) for name, beyond in BEYOND.items()} | theirs
    ragged = [MatrixBatch.from_stack(M).resident for M in (A, B, cupy.empty_like(A))]
    lists = [M.number(0) for M in (*ragged[:2], ragged[0], ragged[2])] + [ragged[2].number(i) for i in (1, 2)]
    lists.append(ragged[0].number(2))

    def by_edges(beyond):
        buffers = ragged[0].buffer, ragged[1].buffer, np.uint64(0), ragged[2].buffer
        run_redirected(A.shape[1], A.dtype, False, False, buffers, lists, 1, 0, beyond)
        return ragged[2].buffer.reshape(A.shape)

    return {name: lambda _, beyond=beyond: by_edges(beyond) for name, beyond in BEYOND.items()} | theirs


def in_tiles(A, B, out, beyond):
    """out = A B by tiles of EDGE."""
    from h2gpu.batched.device.compiler import kernel
    from h2gpu.batched.device.launch import launch
    from h2gpu.batched.products.gemm import THREADS, shared_bytes

    (count, n, _), shared = A.shape, shared_bytes(A.dtype, (EDGE, EDGE))
    across = -(-n // EDGE)
    function = kernel(HEADER, "edge_gemm", A.dtype, EDGE, beyond, shared_bytes=shared)
    launch(function, count * across**2, THREADS, (A, B, out, n, across), shared)
    return out


def conclusion(rows):
    """A sentence a range of sizes: rates relative to redirection, in the mean over the sizes that fill no tile."""
    found = []
    for told, some in (("up to 80", [r for r in rows if r["n"] <= 80]), ("above", [r for r in rows if r["n"] > 80])):
        odd = [row for row in some if row["n"] % 16]
        names = [name for name in (*BEYOND, *OTHERS) if any(name in row for row in odd)]
        means = {name: np.mean([row[name] / row["redirected"] for row in odd if name in row]) for name in names}
        shown = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
        if odd:
            found.append(f"Rates relative to redirected, mean over {len(odd)} sizes {told} that fill no tile: {shown}.")
    return "\n".join(found)


if __name__ == "__main__":
    sys.exit(main())
