"""What does each step from a kernel a stage to a matrix in registers gain for batched LU?

Figures 3 to 7 of Abdelfattah, Tomov & Dongarra (2019), 500 square matrices. All but the last two are recursive (half of
the columns, interchanges, triangular solve, product, the other half) and differ in how a panel is done:

    generic      a kernel a stage: search, interchange, scaling, rank-one update of every column
    unblocked    the same in one launch a panel, the panel in device memory
    column       one launch a panel, a column at a time in shared memory, looking left
    panel        one launch a panel, in registers: 16 columns, or 32
    matrix       one launch a matrix of at most 32 × 32, in registers
    auto         what `lu_factor` does today

Shares of stages (figure 4) are those of the generic way, each stage's launches timed without the others. Products
(figure 3) have 16 inner indices, n × n ("wide") and n × 16 ("tall") results; "in place" is the kernel of the recursive
ways, which also reads what it subtracts from. Launches are CUDA graphs: times are the device's.

    python -m h2gpu.apps.studies.baselines.lu [--device cpu|cuda] [--output FOLDER]
"""

import sys
from itertools import product

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks.routines import nominal, spot_checks
from h2gpu.apps.command.command import run
from h2gpu.apps.studies.baselines import lu_stages, study, timed
from h2gpu.arrays import array_module

BATCH = {"cpu": 20, "cuda": 500}
SIZES = {"cpu": (8, 16, 32, 64, 96), "cuda": (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)}
WAYS = {  # how panels are done, and their columns
    "generic": ("generic", 16),
    "unblocked": ("unblocked", 16),
    "column": ("column", 16),
    "panel of 16": ("panel", 16),
    "panel of 32": ("panel", 32),
}
WHOLE = {"matrix": 32, "auto": 10**9}  # methods of lu_factor, and their largest sizes
INNER = lu_stages.SOLVED
PRODUCTS = "fixed", "tiles", "vendor"


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.baselines.lu", _work, argv)


def _work(argv):
    found = study.measured(
        "lu",
        __doc__.splitlines()[0],
        argv,
        SIZES,
        lambda dtype, n, where, xp: rows(problems((BATCH[where], n, n), dtype, xp)),
        compiled,
    )
    print("\n".join(conclusion(found)))


def problems(shape, dtype, xp):
    """Independent normal entries, drawn where they are needed."""
    return xp.random.default_rng(0).standard_normal(shape, dtype=np.dtype(dtype).type)


def compiled(case):
    """Everything once on a few matrices, after which kernels are on disk."""
    import cupy

    dtype, n = case
    A = problems((2, n, n), dtype, cupy)
    for way in ways(A).values():
        way(A)
    for work, inputs in products(A).values():
        work(inputs[0])


def rows(A):
    """The lines of the table for some matrices: methods, shares, products."""
    yield from methods(A)
    yield from shares(A)
    yield from product_rates(A)


def ways(A):
    """{method: function of such matrices to (LU, pivots)}, those that the size and the device admit."""
    n = A.shape[-1]
    found = {name: recursive(A, *way) for name, way in WAYS.items() if array_module(A) is not np or name == "generic"}
    for method, largest in WHOLE.items():
        if n <= largest and (method == "auto" or array_module(A) is not np):
            found[method] = lambda A, method=method: batched.lu_factor(A, method, return_info=True)[:2]
    return found


def recursive(A, way, leaf):
    """A function of matrices like A, to LU and pivots."""
    stages = lu_stages.stages(array_module(A).empty_like(A))
    stages.LU[...] = A
    work = timed.on_copy(stages.LU, lambda: lu_stages.factor(stages, way, leaf))
    return lambda A: (work(A), stages.pivots)


def methods(A):
    """A line a method, all of whose results satisfy LAPACK's criterion. Raises ArithmeticError where one does not."""
    xp, work = array_module(A), nominal.lu(*A.shape, A.dtype.name)
    for name, factor in ways(A).items():
        error = spot_checks.lu(A, *factor(A))
        if not error < 1:
            raise ArithmeticError(f"{name}, n = {A.shape[-1]}: {error:.3g} of the allowed error")
        ms = timed.milliseconds(factor, timed.in_turn(A), xp)
        figure = {"matrix": "7", "auto": "8, 9"}.get(name, "5, 6, 7")
        yield described(A, figure, name) | {"ms": ms} | timed.rates(work, ms, xp) | {"of allowed error": error}


def shares(A):
    """A line a stage of the generic way: its launches alone, and its part of the sum of all stages'."""
    xp, times = array_module(A), {}
    for stage in lu_stages.STAGES[:-1] if xp is not np else ():
        stages = lu_stages.stages(A.copy())
        lu_stages.factor(stages, *WAYS["generic"])  # pivots as they are met
        stages.only = stage
        again = timed.recorded(lambda stages=stages: lu_stages.factor(stages, *WAYS["generic"]))
        times[stage] = timed.milliseconds(lambda _, again=again: again(), [None], xp)
    for stage, ms in times.items():
        yield described(A, "4", "generic") | {"stage": stage, "ms": ms, "share": ms / sum(times.values())}


def products(A):
    """{(shape, way): (work, inputs in turn)} of the products that LU of such matrices makes, 16 inner indices."""
    xp, (batch, n, _), found = array_module(A), A.shape, {}
    for shape, columns in (("wide", n), ("tall", INNER)):
        left, right = (problems((batch, *size), A.dtype, xp) for size in ((n, INNER), (INNER, columns)))
        pairs = list(zip(timed.in_turn(left), timed.in_turn(right)))
        for way in PRODUCTS if xp is not np else ("auto",):
            found[shape, way] = (lambda pair, way=way: batched.gemm(*pair, method=way)), pairs
        if xp is not np and columns <= n:
            places = 0, INNER, INNER, INNER + n, INNER, INNER + columns
            larger = problems((batch, n + INNER, n + INNER), A.dtype, xp)
            in_turn = pairs if shape == "tall" else timed.in_turn(larger)  # tall: more, the cache holds part of each
            work = lambda stages, places=places: stages.product(*places)  # noqa: E731
            found[shape, "in place"] = work, [lu_stages.stages(larger.copy()) for _ in in_turn]
    return found


def product_rates(A):
    """A line a shape and way."""
    xp, (batch, n, _) = array_module(A), A.shape
    for (shape, way), (work, inputs) in products(A).items():
        ms = timed.milliseconds(work, inputs, xp)
        counted = nominal.gemm(batch, n, n if shape == "wide" else INNER, INNER, A.dtype.name)
        yield described(A, "3", way) | {"stage": f"GEMM, {shape}", "ms": ms} | timed.rates(counted, ms, xp)


def described(A, figure, method):
    """The columns that say what was measured."""
    return {"figure": figure, "dtype": A.dtype.name, "batch": len(A), "n": A.shape[-1], "method": method}


def conclusion(rows):
    """A sentence a precision and step: the least and the largest gain over the sizes."""
    steps = ("generic", "column"), ("column", "panel of 32"), ("panel of 32", "matrix"), ("generic", "auto")
    return gains([r for r in rows if r["figure"] not in ("3", "4")], steps)


def gains(rows, steps):
    """Sentences: how many times as long the first method of a step takes as the second, at least and at most."""
    times = {(r["dtype"], r["n"], r["method"]): r["ms"] for r in rows}
    for dtype, (before, after) in product(study.DTYPES, steps):
        found = {
            n: times[dtype, n, before] / ms
            for (kind, n, method), ms in times.items()
            if (kind, method) == (dtype, after) and (dtype, n, before) in times
        }
        if found:
            bounds = (f"{found[n]:.2f} (n = {n})" for n in (min(found, key=found.get), max(found, key=found.get)))
            yield f"{dtype}: {before} takes {' to '.join(bounds)} times as long as {after}"


if __name__ == "__main__":
    sys.exit(main())
