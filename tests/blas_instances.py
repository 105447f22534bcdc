"""Instances of the products compiled for one size, and of gemv, symv, syrk, trsm and axpy, for test_kernels_compile.py:
(header, name expression, spilled bytes it claims).
"""

from itertools import product

import numpy as np

from h2gpu.batched import fixed_plans, modules

REAL, COMPLEX = (np.float64, np.float32), (np.complex64, np.complex128)
SIZES = (1, 5, 9, 12, 13, 16, 32, 33, 48, 64, 65, 72, 73, 97, 127, 128, 129, 157, 160)
TURNED_SIZES = (7, 33, 64, 129)  # those also with transposes


def fixed():
    """Products of one size, of every method."""
    for dtype, transa, transb in product(REAL + COMPLEX, (False, True), (False, True)):
        for n in TURNED_SIZES if transa or transb else SIZES:
            plan = fixed_plans.plan(dtype, n, n, n, transa, transb)
            name = modules.expression(plan.kernel, dtype, n, n, n, transa, transb, *plan.arguments)
            yield f"batched/{plan.kernel}.cuh", name, fixed_plans.SPILL_BYTES[dtype]


def blas(constants):
    """gemv, symv, syrk, trsm and axpy; constants: of a launching module by its name."""
    knobs = constants("cuda_blas")
    for dtype in REAL + COMPLEX:
        each = knobs["PIECE"] // np.dtype(dtype).itemsize
        for lanes, aligned in product(knobs["GEMV_LANES"], (False, True)):
            name = modules.expression("gemv_rows", dtype, knobs["GEMV_THREADS"], lanes, knobs["GEMV_ROWS"], aligned)
            yield "batched/gemv.cuh", name, 0
        for lanes, threads, count in product(knobs["GEMV_LANES"], knobs["COLUMN_THREADS"], {1, each}):
            yield "batched/gemv.cuh", modules.expression("gemv_columns", dtype, threads, lanes, count), 0
    for dtype, lower in product(REAL, (False, True)):
        yield "batched/symv.cuh", modules.expression("symv", dtype, knobs["SYMV_WARPS"], lower), knobs["SPILL_BYTES"]
        for edge, trans in product(constants("cuda_gemm")["EDGES"], (False, True)):
            yield "batched/syrk.cuh", modules.expression("syrk", dtype, edge, trans, lower), 0
        for columns, *flags in product(knobs["TRSM_COLUMNS"], *[(False, True)] * 3):
            name = modules.expression("trsm", dtype, columns, knobs["TRSM_WARPS"], flags[0], lower, *flags[1:])
            yield "batched/trsm.cuh", name, knobs["SPILL_BYTES"]
    for dtype in REAL:
        yield "batched/axpy.cuh", modules.expression("axpy", dtype), 0
