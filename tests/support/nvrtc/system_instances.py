"""Instances of LU, Cholesky and solutions of systems."""

from itertools import product

import blas_instances
import numpy as np
from instance_sources import COMPLEX, constants, rows

from h2gpu.batched.device import compiler

WARP = 32
LU_KNOBS = "held", "warps", "resident", "window", "panel"


def linear_instances(dtype):
    """LU, Cholesky and solutions: the largest of each kind, and one of odd shape."""
    lu, chol, size = (
        constants(
            "batched/systems/lu",
            "batched/systems/lu_registers",
            "batched/systems/lu_shared",
            "batched/systems/lu_warps",
            "batched/systems/lu_panels",
            "batched/systems/rank_update",
        ),
        constants("batched/systems/cholesky", "batched/systems/triangles", "batched/systems/determinant"),
        np.dtype(dtype).itemsize,
    )
    spills, solve = lu["SPILL_BYTES"], constants("batched/systems/solutions")
    warps = lu["REGISTER_WARPS"]
    for columns, lanes in ((32, 32), (16, 16), (6, 8)):
        yield "systems/lu_register.cuh", compiler.expression("lu_register", dtype, columns, lanes, warps), spills
    tuned = {4: np.float32, 8: np.float64, 16: np.complex128}[size]
    for row in blas_instances.of(tuned, rows("lu_shared")):
        slots, (held, *shape, window, panel) = -(-int(row["max_rows"]) // WARP), (int(row[knob]) for knob in LU_KNOBS)
        for columns in range(lu["ALIGNED"], slots * WARP + 1, lu["ALIGNED"]) if panel == WARP else ():
            if slots * columns * size <= lu["ROW_BYTES"]:
                name = compiler.expression("lu_warp", dtype, columns, slots, shape[0])
                yield "systems/lu_warp.cuh", name, lu["WARP_SPILL_BYTES"]
        panel = min(panel, lu["MOST_PANEL"][size])
        for columns in sorted({0, window}):
            knobs = panel, held, -(-slots // held), *shape, columns
            claim = lu["WINDOW_SPILL_BYTES" if columns else "SHARED_SPILL_BYTES"]
            yield "systems/lu_shared.cuh", compiler.expression("lu_shared", dtype, *knobs), claim
    for row in blas_instances.of(tuned, rows("lu_panel")):
        width, most = int(row["width"]), -(-int(row["max_rows"]) // (lu["PANEL_WARPS"] * WARP))
        for slots in (1, most):
            name = compiler.expression("lu_panel", dtype, width, slots, lu["PANEL_WARPS"])
            yield "systems/lu_panel.cuh", name, lu["PANEL_SPILL_BYTES"]
        yield "systems/lu_rows.cuh", compiler.expression("lu_rows", dtype, width, lu["ROW_WARPS"]), 0
        yield "systems/lu_update.cuh", compiler.expression("lu_update", dtype, width, False), 0
    yield "systems/lu_rows.cuh", compiler.expression("lu_rows", dtype, lu["TOGETHER"][size], lu["ROW_WARPS"]), 0
    yield "systems/lu_update.cuh", compiler.expression("lu_update", dtype, lu["TOGETHER"][size], False), 0
    width = lu["GLOBAL_PANEL"][size]
    for name in ("lu_column", "lu_unblocked"):
        yield "systems/lu_panel.cuh", compiler.expression(name, dtype, width, lu["GLOBAL_WARPS"]), spills
    for unknowns, sides, lanes in ((4, 1, 4), (16, 16, 16), (20, 4, 32), (32, 8, 32), (32, 16, 32)):
        name = compiler.expression("solve_register", dtype, unknowns, sides, lanes, solve["SOLVE_WARPS"], False)
        yield "systems/solve_register.cuh", name, solve["SPILL_BYTES"][size]
    for unknowns, lanes in ((4, 4), (16, 16), (28, 32), (32, 32)):
        if 2 * unknowns * size > solve["HELD_BYTES"]:
            continue
        name = compiler.expression("solve_register", dtype, unknowns, unknowns, lanes, solve["SOLVE_WARPS"], True)
        yield "systems/solve_register.cuh", name, solve["SPILL_BYTES"][size]
    name = compiler.expression("permuted_rows", dtype, chol["PERMUTE_THREADS"])
    yield "systems/solve_triangles.cuh", name, 0
    yield "systems/finite_copy.cuh", compiler.expression("finite_copy", dtype, lu["COPY_THREADS"]), 0
    name = compiler.expression("lu_determinant", dtype, chol["DETERMINANT_WARPS"])
    yield "systems/lu_determinant.cuh", name, 0
    for symmetric, columns in product((False, True)[: 2 - (dtype in COMPLEX)], (1, chol["SOLVE_COLUMNS"])):
        name = compiler.expression("solve_triangles", dtype, columns, chol["SOLVE_WARPS"], symmetric)
        yield "systems/solve_triangles.cuh", name, 64
    for symmetric, most in product((False, True)[: 2 - (dtype in COMPLEX)], (2, 30, 32)):
        name = compiler.expression("solve_small", dtype, most, chol["SMALL_WARPS"], symmetric)
        yield "systems/solve_small.cuh", name, 0
    if dtype not in COMPLEX:
        yield from cholesky_instances(dtype, chol, spills)
        for row in blas_instances.of(dtype, rows("cholesky_shared")):
            slots, *shape = -(-int(row["max_rows"]) // WARP), int(row["warps"]), int(row["resident"])
            name = compiler.expression("cholesky_shared", dtype, chol["SHARED_PANEL"][size], slots, *shape)
            yield "systems/cholesky_shared.cuh", name, spills


def cholesky_instances(dtype, knobs, spills):
    """Of matrices in registers and by panels."""
    few, width = knobs["CHOLESKY_LANES"], knobs["CHOLESKY_PANEL"]
    for columns, lanes, slots in ((32, 32, 1), (8, 8, 1), (32, few, 4), (30, few, 4), (12, few, 2)):
        name = compiler.expression("cholesky_register", dtype, columns, lanes, slots, knobs["CHOLESKY_WARPS"])
        yield "systems/cholesky_register.cuh", name, 0
    yield (
        "systems/cholesky_panel.cuh",
        compiler.expression("cholesky_panel", dtype, width, knobs["PANEL_WARPS"]),
        spills,
    )
    for inner in (
        width,
        constants("batched/systems/rank_update")["TOGETHER"][np.dtype(dtype).itemsize],
    ):
        yield "systems/lu_update.cuh", compiler.expression("lu_update", dtype, inner, True), 0
