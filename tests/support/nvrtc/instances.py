"""Every kernel instance that SVD and QR by columns launch, found by running their host code without a GPU.

CuPy is the stand-in of tests/support/standin, kernels do nothing, and nobody writes numbers. The public functions
are called with sizes of every class, and what they ask `modules.kernel` for is printed. Run as a program, so that
nothing of this stays behind in the process of the tests:

    python tests/support/nvrtc/instances.py   →   lines of header, name, and 1 if widest of a row of svd.csv, else 0
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "standin"))
import cupy
from cupy.arrays import device_array

SIZES = [*range(1, 33), *range(40, 1025, 8)]  # columns and ranks; those between lead to the same instances
DTYPES = (np.float64, np.float32)
ELSEWHERE = (
    "gemm",
    "gather",
    "blocked_qr",
    "tree_qr",
    "blocked_chain",
    "triangle_chain",
)  # headers: see test_kernels_compile.py
METHODS = ("auto", "register", "shared", "block-gram", "block-direct")


def untouched(shape, dtype=np.float64):
    """cupy.empty without numbers: batches are larger than memory."""
    return device_array(np.empty(shape, dtype))


def idle(grid, block, arguments, shared_mem):
    """A kernel that does nothing."""


def install(asked):
    """Take the places of the compiler and the launches before other modules look there.

    asked   receives (header, name expression) of every instance
    """
    cupy.empty = untouched
    from h2gpu.batched.device import compiler, launch

    def kernel(header, name, *arguments, shared_bytes=0):
        if Path(header).stem not in ELSEWHERE:
            asked.add((header, compiler.expression(name, *arguments)))
        return idle

    compiler.kernel = launch.kernel = kernel
    launch.launch = lambda *_: None


def batch(count, m, n, dtype):
    """A ragged batch of `count` matrices m × n, whose entries nobody reads."""
    from h2gpu.batched import MatrixBatch

    return MatrixBatch(device_array(np.zeros(1, dtype)), np.zeros(count, int), np.full(count, m), np.full(count, n))


def around(*columns):
    """The limits in columns of tables, and the next number beyond each."""
    from h2gpu.batched.device import tuning

    limits = {int(row[column]) for routine, column in columns for row in tuning.rows(routine) if column in row}
    return sorted({1, *(limit + beyond for limit in limits if limit < 10**9 for beyond in (0, 1))})


def call_qr():
    """Every number of columns, heights and batches on either side of the tables' limits."""
    from h2gpu import batched

    heights = around(("qr", "max_rows"), ("qr_blocked", "max_rows"))
    counts = around(*((table, "max_matrices") for table in ("qr", "qr_tall", "qr_blocked")))
    for n in SIZES:
        for dtype, count, m in product(DTYPES, counts if n <= 128 else [1], {n, 4 * n, 5000, *heights}):
            for mode in ("reduced", "r"):
                batched.qr(batch(count, m, n, dtype), mode)


def call_svd():
    """Every rank by every method, of squares and of what is taller: within a warp, and beyond shared memory."""
    from h2gpu import batched

    for dtype, k, vectors, method in product(DTYPES, SIZES, ("left", "both"), METHODS):
        for m in {k, *(max(k, edge) for edge in (8, 16, 32, 4000))} if method == "auto" else {k}:
            batched.svd(batch(1, m, k, dtype), vectors, method)


def call_widest_svd():
    """The largest rank of every row of the table, left vectors as in the measurements of its rate."""
    from h2gpu import batched
    from h2gpu.batched.device import tuning

    for row in tuning.rows("svd"):
        k = min(int(row["max_rank"]), SIZES[-1])
        batched.svd(batch(1, k, k, row["dtype"]), "left")


def main():
    asked = set()
    install(asked)
    from h2gpu.batched.svd import blocks

    blocks.GRAM_SWEEPS = blocks.DIRECT_SWEEPS = 1  # they ask for the same instance again and again
    call_widest_svd()
    widest = {(header, name) for header, name in asked if name.startswith("svd")}
    call_svd()
    call_qr()
    for header, name in sorted(asked):
        print(header, name, int((header, name) in widest), sep="\t")


if __name__ == "__main__":
    main()
