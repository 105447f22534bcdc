"""Shared memory of factorizations of systems and their solutions: see shared_memory.py."""

from itertools import product

import numpy as np
from shared_texts import DTYPES, FIELDS, sizeof

from h2gpu.batched.device import compiler
from h2gpu.batched.device.launch import WARP
from h2gpu.batched.systems import lu_registers, lu_shared, lu_warps, rank_update, solutions, triangles
from h2gpu.batched.systems.cholesky import CHOLESKY_LANES, CHOLESKY_WARPS
from h2gpu.batched.systems.cholesky import register_bytes as cholesky_register_bytes
from h2gpu.batched.systems.cholesky import shared_bytes as cholesky_bytes
from h2gpu.batched.systems.trsm import columns_bytes, trsm_bytes


def systems():
    for dtype, n, columns in product(DTYPES, (1, 31, 32, 200), (8, 16, 32)):
        host = trsm_bytes(dtype, n, columns)
        yield "systems/trsm.cuh", f"trsm_bytes<{compiler.NAMES[dtype]}, {columns}>({n})", host
        host = columns_bytes(dtype, n, columns)
        yield "systems/trsm.cuh", f"trsm_columns_bytes<{compiler.NAMES[dtype]}>({n}, {columns})", host
    for dtype in map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)):
        for m in (1, 8, 32, 33, 64, 100, 128, 150, 190):
            if m <= lu_shared.SHARED_SLOTS[dtype.itemsize] * WARP:
                yield from lu(dtype, m)
    yield from small_systems()
    yield from panels_of_systems()
    for dtype, n in product(DTYPES, (33, 64, 100, 160)):
        memory = f"CholeskyMemory<{compiler.NAMES[dtype]}>(nullptr, {n}, {lu_shared.pitch_of(n)})"
        host = cholesky_bytes(dtype, n)
        yield "systems/cholesky_shared.cuh", f"reinterpret_cast<long long>({memory}.rows + {n})", host


def small_systems():
    """Matrices in registers, and solutions."""
    for dtype, n in product(FIELDS, range(2, WARP + 2, 2)):
        scalar, lanes = compiler.NAMES[dtype], int(lu_registers.lanes_of(np.array(n)))
        stages = f"{lu_registers.REGISTER_WARPS} * WARP / {lanes} * SmallStage<{scalar}, {n}, {lanes}, 1, false>"
        host = lu_registers.register_bytes(dtype, n)
        yield "systems/lu_register.cuh", f"{stages}::ENTRIES * sizeof({scalar})", host
        unknowns, size = -(-n // solutions.UNKNOWNS) * solutions.UNKNOWNS, f"sizeof({scalar})"
        for sides in (1, 16, unknowns):
            each = f"solve_entries<{scalar}, {unknowns}, {sides}, {lanes}>()"
            entries = f"{solutions.SOLVE_WARPS} * WARP / {lanes} * {each}"
            yield "systems/solve_register.cuh", f"{entries} * {size}", solutions.shared_bytes(dtype, unknowns, sides)
        small = f"{triangles.SMALL_WARPS} * {n} * small_pitch({n}) * sizeof({scalar})"
        yield "systems/solve_small.cuh", small, triangles.small_bytes(dtype, n)
    for dtype, n in product(DTYPES, range(2, WARP + 2, 2)):
        for lanes, slots in ((CHOLESKY_LANES, -(-n // CHOLESKY_LANES)), (int(lu_registers.lanes_of(np.array(n))), 1)):
            stage = f"SmallStage<{compiler.NAMES[dtype]}, {n}, {lanes}, {slots}, true>::ENTRIES"
            stages = f"{CHOLESKY_WARPS} * WARP / {lanes} * {stage} * sizeof({compiler.NAMES[dtype]})"
            yield "systems/cholesky_register.cuh", stages, cholesky_register_bytes(dtype, n, lanes, slots)
    for dtype, n, columns in product(FIELDS, (1, 33, 500), (1, triangles.SOLVE_COLUMNS)):
        entries = f"({n} * {columns} + WARP * TRIANGLE_PITCH) * sizeof({compiler.NAMES[dtype]})"
        host = triangles._solve_bytes(dtype, n, columns)
        yield "systems/solve_triangles.cuh", f"{entries} + {n} * sizeof(int)", host


def panels_of_systems():
    """Panels in place, and what is behind them."""
    for dtype, warps in product(FIELDS, (1, 5, 16)):
        rows = f"{warps} * ROW_BUFFER * sizeof({compiler.NAMES[dtype]})"
        for name in ("lu_panel", "cholesky_panel"):
            yield f"systems/{name}.cuh", rows, rank_update.rows_bytes(dtype, warps)
    for dtype, width, symmetric in product(FIELDS, (8, 16, 32, 64), (False, True)):
        right = f"UPDATE_EDGE * LEFT_PITCH<{width}>" if symmetric else f"{width} * RIGHT_PITCH<{compiler.NAMES[dtype]}>"
        entries = f"UPDATE_EDGE * SUM_PITCH + UPDATE_EDGE * LEFT_PITCH<{width}> + {right}"
        host = rank_update.update_bytes(dtype.itemsize, width, symmetric)
        yield "systems/lu_update.cuh", f"({entries}) * sizeof({compiler.NAMES[dtype]})", host


def lu(dtype, m):
    shape = lu_shared.shape_of(dtype.itemsize, m)
    panel, slots = min(shape["panel"], lu_shared.MOST_PANEL[dtype.itemsize]), -(-m // WARP)
    team = -(-slots // shape["held"])
    for n in (m, m + shape["window"] // 2 if shape["window"] else m + 5):
        window = int(lu_shared.window_of(dtype, np.array(m), np.array(n)))
        if team < shape["warps"] and (not window or m > window):
            host, pitch = (int(x) for x in lu_shared.memory(dtype, np.array(m), np.array(n), window))
            knobs = panel, shape["held"], team, shape["warps"], shape["resident"], window
            pitch = window + lu_shared.SPREAD if window else pitch
            yield (
                "systems/lu_shared.cuh",
                f"{compiler.expression('SharedLU', dtype, *knobs)}::bytes({m}, {pitch})",
                host,
            )
    for columns in (16, 32, 48, 64):
        slots, held, host = lu_warps._warp_shape(dtype, m, columns)
        if slots <= 2 and held <= slots * WARP:
            yield "systems/lu_warp.cuh", sizeof("LUStage", dtype, int(held), int(slots)), int(host)
