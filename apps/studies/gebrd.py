"""Where does the time of a bidiagonal reduction go, from 16 × 16 to 512 × 512, and does the model say so beforehand?

Figure 6 of Dong, Haidar, Tomov & Dongarra (2018), whose components were kernels of their own: products with the square
matrix (here W r and aᵀ W), with the wide and tall ones (with V, X, Y, U, that are put off), and the update, theirs
GEMM. Our reduction is one launch: instances that read the clock at the borders of these parts
(common/thread/stopwatch.cuh) tell, averaged over the first warps of all blocks. A part has the waiting for what it
needs: W r that for the rows of W, the reflections that for other warps. Predictions: h2gpu.batched.model.bidiagonal.

    python -m h2gpu.apps.studies.gebrd [--dtypes float64,float32] [--output FOLDER] [--draw]
"""

import sys
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import small_plots
from h2gpu.batched import model
from h2gpu.batched.bidiagonal import plans
from h2gpu.batched.device.threads import thread_count
from h2gpu.batched.model import bidiagonal as bidiagonal_counts

PARTS = (*bidiagonal_counts.PARTS, "clock")  # as in kernels/bidiagonal/block/bidiagonal.cuh
HEADER = "studies/bidiagonalize_cycles.cuh"
SHARED_LIMIT = 223 << 10  # bytes of a block that predictions suppose


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.gebrd", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.gebrd", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--dtypes", default=",".join(bench_cases.DTYPES), metavar="NAME[,NAME]")
    parser.add_argument("-o", "--output", type=Path, default="benchmarks/batched", help="folder for study_gebrd.csv")
    parser.add_argument("--draw", action="store_true", help="the picture too (needs matplotlib)")
    parser.add_argument("--compilers", type=int, default=thread_count(), help="processes that compile beforehand")
    options = parser.parse_args(argv)
    device, found = timing.gpu_name(), []
    cases = [(dtype, batch, n) for dtype in options.dtypes.split(",") for batch, n in bench_cases.GEBRD_ORDERS]
    timing.side_by_side(compiled, cases[::-1], options.compilers)
    for case in cases:
        found += rows(*case, device)
    print(tables.text(found), flush=True)
    tables.write(options.output / "study_gebrd.csv", found, device)
    if options.draw:
        small_plots.draw(options.output)


def rows(dtype, batch, n, device):
    """A line a part, one for the kernel: cycles of an average block, shares, milliseconds without and with clocks."""
    from h2gpu.batched.bidiagonal.stacks import factor_stack

    A = problems(dtype, batch, n)
    measured, whole = cycles(A)
    predicted = foretold(dtype, batch, n, device)
    common = {"dtype": dtype, "batch": batch, "n": n, "plan": kind(A.dtype.itemsize, n)}
    found, sums = [], [sum(numbers.values()) for numbers in (measured, predicted)]
    for part, number in measured.items():
        if number:
            theirs = predicted.get(part)
            line = {"part": part, "cycles": number, "share": number / sums[0], "predicted cycles": theirs}
            line |= {"predicted share": theirs and theirs / sums[1], "predicted / measured": theirs and theirs / number}
            found.append(common | line)
    inputs = timing.rotation(A)
    plain = timing.device_ms(lambda A: factor_stack(A, keep=True), inputs)
    times = {"ms": plain, "ms with clocks": timing.device_ms(launched, inputs)}
    return [*found, common | {"part": "kernel", "cycles": whole, "predicted cycles": sums[1] or None} | times]


def kind(itemsize, n):
    """Where the matrix lies."""
    plan = plans.plan(itemsize, n, n, SHARED_LIMIT)
    return "registers" if isinstance(plan, plans.Tile) else "device memory" if plan.held else "shared memory"


def problems(dtype, batch, n):
    import cupy

    return cupy.asarray(np.random.default_rng(0).standard_normal((batch, n, n)).astype(dtype))


def compiled(case):
    """One small call of either kernel, after which they are on disk."""
    from h2gpu.batched.bidiagonal.stacks import factor_stack

    dtype, _, n = case
    A = problems(dtype, 2, n)
    launched(A)
    factor_stack(A, keep=True)


def cycles(A):
    """{part: cycles} of an average block, and those of the kernel."""
    launched(A)  # loads the code
    numbers = launched(A).mean(axis=0).get()
    return dict(zip(PARTS, map(float, numbers))), float(numbers[-1])


def launched(A):
    """(batch, numbers) that the blocks of the kernel with clocks wrote. A: (batch, n, n), reflectors are kept."""
    import cupy

    from h2gpu.batched.device.compiler import kernel
    from h2gpu.batched.device.launch import NULL, WARP, Steps, launch
    from h2gpu.batched.device.launch import tables as tables_of
    from h2gpu.batched.device.limits import shared_limit

    (batch, n, _), size = A.shape, A.dtype.itemsize
    plan, shared = plans.plan(size, n, n, shared_limit(cupy.cuda.Device().id)), 0
    (table,) = tables_of(batch, (Steps(n * n), Steps(n * n), Steps(n * n), Steps(n), Steps(n - 1), n, n))
    V, U = (cupy.empty_like(A) for _ in range(2))
    d, e, tau_v, tau_u = (cupy.empty((batch, n), A.dtype) for _ in range(4))
    found = cupy.empty((batch, len(PARTS) + 1), np.int64)
    name, memory = "bidiagonalize_cycles", ()
    if isinstance(plan, plans.Rows):
        name, stride = "bidiagonalize_large_cycles", n * (plans.pitch(size, n, plan.across) + plan.held)
        shared = plans.shared_bytes(size, n, n, plan.across, plan.vectors, plan.warps, plan.held)
        memory = cupy.empty(batch * stride, A.dtype) if plan.held else NULL, np.int64(stride)
    function = kernel(HEADER, name, A.dtype, *plan, shared_bytes=shared)
    launch(function, batch, plan.warps * WARP, (A, V, U, d, e, tau_v, tau_u, table, *memory, found), shared)
    return found


def foretold(dtype, batch, n, device):
    """{part: cycles} by the model, empty where the device's constants are not known."""
    try:
        constants = model.Constants.of(device)
        names, parts = zip(*bidiagonal_counts.parts(dtype, n, n, SHARED_LIMIT))
        seconds, clock = model.wave(parts, dtype, constants, batch), constants("clock")
    except (ValueError, LookupError):
        return {}
    found = dict.fromkeys(bidiagonal_counts.PARTS, 0.0)
    for name, time in zip(names, seconds):
        found[name] += time * clock
    return found


if __name__ == "__main__":
    sys.exit(main())
