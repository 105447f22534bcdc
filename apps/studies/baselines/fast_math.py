"""What do quotients and roots to the last bit cost small problems in registers?

Anderson, Sheffield & Keutzer (2012) compile with --use_fast_math, by which quotients and roots have 22 bits; without it
problems a thread take 5.6 % longer in their median (section IV), problems a block 30 % (section V). Here every instance
is compiled as we have it and with that flag. Of ours, Cholesky, reflections of float32 and least squares take the
library's quotients and roots; LU divides by a reciprocal that is refined once, whatever the flag.

    python -m h2gpu.apps.studies.baselines.fast_math [--figures IV,V] [--output FOLDER]

`difference`: of the results for one problem, in units in the last place of the largest.
"""

import statistics
import sys
from functools import cache
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import small
from h2gpu.apps.studies.baselines import timed
from h2gpu.batched.registers.layouts import THREAD

FLAG = "-use_fast_math"
DTYPE = "float32"  # the flag leaves float64 alone
WARP, WARPS = 32, 4  # of a block of problems a thread, as in h2gpu.batched.registers.cuda
SIZES = {"IV": small.THREAD_SIZES, "V": (16, 32, 48, 56, 64, 80, 96)}
LAYOUTS = {"IV": ("thread", small.THREAD_BATCH), "V": ("2d", small.BLOCK_BATCH)}
ROUTINES = {"IV": ("lu", "qr", "cholesky", "lstsq"), "V": ("lu", "qr", "lstsq")}


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.baselines.fast_math", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.baselines.fast_math", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--figures", default=",".join(SIZES), metavar="NAME[,NAME]", help="sections of the paper")
    parser.add_argument("--compilers", type=int, default=16, help="processes that compile beforehand")
    parser.add_argument("-o", "--output", type=Path, default="benchmarks/batched", help="folder for the table")
    options = parser.parse_args(argv)
    title, chosen = timing.gpu_name(), [case for case in cases() if case.figure in options.figures.split(",")]
    timing.side_by_side(compiled, chosen[::-1], options.compilers)
    path = options.output / "study_fast_math-cuda.csv"
    rows = timed.kept([(case,) for case in chosen], lambda case: [row(case)], path, title)
    print("\n".join(conclusion(rows)))


def cases():
    """Every line of the table that a layout holds."""
    for figure, sizes in SIZES.items():
        for routine in ROUTINES[figure]:
            found = (small.Case(figure, routine, LAYOUTS[figure][0], DTYPE, LAYOUTS[figure][1], n, n) for n in sizes)
            yield from (case for case in found if small.grid_of(case) is not None)


def compiled(case):
    """Both instances, after which they are on disk."""
    for function in both(case):
        launched(function, case, *arrays(case._replace(batch=2)))


def row(case):
    """A line of the table."""
    A, rest = arrays(case)
    inputs, times, results = timing.rotation(A), [], []
    for function in both(case):
        times.append(timing.device_ms(lambda A, function=function: launched(function, case, A, rest), inputs))
        launched(function, case, A, rest)
        results.append(rest[result_of(case)][0].get())
    exact, fast = results
    common = {"figure": case.figure, "routine": case.routine, "layout": case.layout, "dtype": DTYPE}
    common |= {"batch": case.batch, "n": case.n, "ms": times[0], "fast math ms": times[1]}
    difference = abs(exact - fast).max() / (abs(exact).max() * np.finfo(DTYPE).eps)
    return common | {"penalty": times[0] / times[1] - 1, "difference": float(difference)}


def both(case):
    """The instance as we have it, and with the flag."""
    from h2gpu.batched.device.compiler import kernel

    return kernel(*instance(case)), hurried(*instance(case))


def instance(case):
    """Header, name and template arguments of a kernel."""
    routine, grid = {"lstsq": "least_squares"}.get(case.routine, case.routine), small.grid_of(case)
    sizes = {"qr": (case.m, case.n), "lstsq": (case.m, case.n, 1)}.get(case.routine, (case.n,))
    kind, last = ("thread", (WARPS,)) if grid is THREAD else ("block", tuple(grid))
    return f"registers/small_{kind}.cuh", f"{kind}_{routine}", np.dtype(DTYPE), *sizes, *last


@cache
def hurried(header, *instance):
    """The same kernel, compiled with the flag."""
    import cupy

    from h2gpu.batched.device import compiler

    name = compiler.qualified(header, compiler.expression(*instance))
    options = *compiler.options(header), FLAG
    module = cupy.RawModule(code=compiler.program(header), options=options, name_expressions=(name,))
    return module.get_function(name)


def arrays(case):
    """A, and what the kernel takes behind it: right-hand sides, then results."""
    import cupy

    A, b = small.problems(case)
    batch, numbers = len(A), lambda *shape, dtype=DTYPE: cupy.empty((case.batch, *shape), dtype)
    if case.routine == "lstsq":
        return A, (b, numbers(case.n), numbers())
    tau = [numbers(case.n)] if case.routine == "qr" else []
    return A, (cupy.empty_like(A), *tau, cupy.empty(batch, np.int32))


def result_of(case):
    """Which of the arrays behind A has the result."""
    return 1 if case.routine == "lstsq" else 0


def launched(function, case, A, rest):
    """All problems of A."""
    from h2gpu.batched.device.launch import launch

    grid = small.grid_of(case)
    if grid is THREAD:
        launch(function, -(-len(A) // (WARPS * WARP)), WARPS * WARP, (A, *rest, np.int64(len(A))))
    else:
        launch(function, len(A), grid.threads, (A, *rest))


def conclusion(rows):
    """A sentence a section and one a routine: the median and the largest penalty."""
    for figure in dict.fromkeys(r["figure"] for r in rows):
        some = [r for r in rows if r["figure"] == figure]
        for name in ("all", *dict.fromkeys(r["routine"] for r in some)):
            found = [r["penalty"] for r in some if name in ("all", r["routine"])]
            yield f"section {figure}, {name}: {statistics.median(found):.1%} in the median, {max(found):.1%} at most"


if __name__ == "__main__":
    sys.exit(main())
