"""Instances of the products compiled for one size, and of gemv, symv, syrk, trsm and axpy, for test_kernels_compile.py:
(header, name expression, spilled bytes it claims).
"""

from itertools import product

import numpy as np

from h2gpu.batched.device import compiler
from h2gpu.batched.products import fixed_plans
from h2gpu.batched.products.fixed_layout import LOWER, UPPER

REAL, COMPLEX = (np.float64, np.float32), (np.complex64, np.complex128)
SIZES = (1, 5, 9, 12, 13, 16, 32, 33, 48, 64, 65, 72, 73, 97, 127, 128, 129, 157, 160)
TURNED_SIZES = (7, 33, 64, 129)  # those also with transposes
FRINGED_SIZES = (34, 65, 73, 129, 145)  # with last rows and columns by themselves
EVERY_MEASURED = 5  # rows of fixed_gemm.csv


def fixed(rows):
    """Products of one size, of every method, and some of the measured plans; rows: of all tables of a routine."""
    for dtype, transa, transb in product(REAL + COMPLEX, (False, True), (False, True)):
        for n in TURNED_SIZES if transa or transb else SIZES:
            plan = fixed_plans.plan(dtype, n, n, n, transa, transb)
            name = compiler.expression(plan.kernel, dtype, n, n, n, transa, transb, *plan.arguments)
            yield f"products/{plan.kernel}.cuh", name, fixed_plans.SPILL_BYTES[dtype]
    for dtype, n in product(REAL, FRINGED_SIZES):
        for family in fixed_plans.families(dtype, n, n, n, False, False):
            plan = family[0][1]
            if plan.fringe:
                name = compiler.expression(plan.kernel, dtype, n, n, n, False, False, *plan.arguments)
                yield f"products/{plan.kernel}.cuh", name, fixed_plans.MEASURED_SPILL_BYTES
    for row in list(rows("fixed_gemm"))[::EVERY_MEASURED]:
        dtype, n = np.dtype(row["dtype"]).type, int(row["size"])
        plan = fixed_plans.Plan.of({knob: int(row[knob]) for knob in fixed_plans.KNOBS}, dtype, n)
        name = compiler.expression(plan.kernel, dtype, n, n, n, False, False, *plan.arguments)
        yield f"products/{plan.kernel}.cuh", name, fixed_plans.MEASURED_SPILL_BYTES


def of(dtype, rows):
    """Those rows of a table that are of a precision."""
    return [row for row in rows if row["dtype"] == np.dtype(dtype).name]


def blas(constants, rows):
    """gemv, symv, syrk, trsm and axpy.

    constants   of a launching module by its name
    rows        of all tables of a routine by its name
    """
    knobs = constants("batched/products/vendor", "batched/products/vectors", "batched/systems/trsm")
    for dtype in REAL + COMPLEX:
        size = np.dtype(dtype).itemsize
        tuned = "float32" if size == 4 else "float64"
        shapes = {tuple(int(row[knob]) for knob in ("threads", "lanes", "rows")) for row in of(tuned, rows("gemv"))}
        threads = knobs["GEMV_THREADS"]
        shapes |= {(threads, lanes, 1) for lanes in (threads, *(shape[1] for shape in shapes))}
        for shape, aligned in product(sorted(shapes), (False, True)):
            yield "products/gemv.cuh", compiler.expression("gemv_rows", dtype, *shape, aligned), 0
        shapes = {(int(row["threads"]), int(row["lanes"])) for row in of(tuned, rows("gemv_t"))}
        shapes |= {(half // 2, lanes) for half, lanes in shapes if half > threads}
        for shape, count in product(sorted(shapes), sorted({1, knobs["PIECE"] // size})):
            yield "products/gemv.cuh", compiler.expression("gemv_columns", dtype, *shape, count), 0
        for way in range(4 if dtype in REAL else 2):  # rows, columns; lower and upper triangles
            yield "products/gemv_run.cuh", compiler.expression("gemv_run", dtype, knobs["RUN_THREADS"], way), 0
    for dtype, lower in product(REAL, (False, True)):
        for row in of(dtype, rows("symv")):
            yield (
                "products/symv.cuh",
                compiler.expression("symv", dtype, int(row["warps"]), int(row["steps"]), lower),
                knobs["SPILL_BYTES"],
            )
        for edge, trans, one in product(constants("batched/products/gemm")["EDGES"], *[(False, True)] * 2):
            yield "products/syrk.cuh", compiler.expression("syrk", dtype, edge, trans, lower, one), 0
        for trans, in_rows in product((False, True), repeat=2):
            yield "products/syrk_entries.cuh", compiler.expression("syrk_entries", dtype, trans, lower, in_rows), 0
        for n, trans in product(TURNED_SIZES, (False, True)):
            plan = fixed_plans.plan(dtype, n, n, n, trans, not trans)
            plan, same = fixed_plans.of_one(plan, dtype, n, n, trans)
            parts = (LOWER if lower else UPPER, *([same] if same else []))
            instance = dtype, n, n, n, trans, not trans, *plan.arguments, *parts
            name = compiler.expression(plan.kernel, *instance)
            yield f"products/{plan.kernel}.cuh", name, fixed_plans.SPILL_BYTES[dtype]
        shapes = {
            (int(row["columns"]), int(row["warps"])) for row in of(dtype, rows("trsm")) if row["method"] != "columns"
        }
        for right, trans, unit in product(*[(False, True)] * 3):
            for shape in sorted(shapes):
                name = compiler.expression("trsm", dtype, *shape, right, lower, trans, unit)
                yield "systems/trsm.cuh", name, knobs["SPILL_BYTES"]
            yield (
                "systems/trsm.cuh",
                compiler.expression("trsm_columns", dtype, right, lower, trans, unit),
                knobs["SPILL_BYTES"],
            )
    for dtype in REAL:
        for name in ("axpy", "axpy_flat"):
            yield "products/axpy.cuh", compiler.expression(name, dtype), 0
