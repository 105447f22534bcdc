"""Instances of small problems in registers, a thread or a thread block each."""

import numpy as np
from instance_sources import constants

from h2gpu.batched.device import compiler
from h2gpu.batched.registers.layouts import THREAD, THREAD_EDGE, layout

SMALL_SPILLS = {
    np.float32: (8, 1200),
    np.float64: (8, 15400),
    np.complex64: (48, 15500),
}  # at the edge of "auto"; at 16 × 16
BLOCK_SPILLS = 40
SMALL_BLOCKS = (
    *((dtype, n, n, "2d") for dtype in (np.float32, np.float64, np.complex64) for n in (5, 17, 32, 56, 64)),
    *((np.float32, n, n, kind) for n, kind in ((32, "row"), (32, "column"), (48, "column"))),
    *((np.float32, n, n, "2d") for n in (96, 112, 128)),
    *((np.complex64, m, n, "2d") for m, n in ((80, 16), (240, 66), (192, 96))),
)


def small_instances():
    """Problems in registers: the largest that a layout takes by itself, those of the studies, 16 × 16."""
    warps = constants("batched/registers/cuda")["WARPS"]
    for dtype, (edge_spills, spills) in SMALL_SPILLS.items():
        edges = [max(n for n in range(1, THREAD_EDGE + 1) if layout(dtype, n, n + k) == THREAD) for k in (0, 1)]
        tall = max(m for m in range(1, THREAD_EDGE + 1) if layout(dtype, m, 5) == THREAD)
        for n, k, claim in ((1, 1, 0), *((edges[k], k, edge_spills) for k in (0, 1)), (THREAD_EDGE, 1, spills)):
            systems = ("least_squares", (n, n, 1)), ("solve", (n, 1, False)), ("solve", (n, 1, True))
            for routine, sizes in (("lu", (n,)), ("cholesky", (n,)), ("qr", (n, n)), *systems[: 3 * k]):
                name = compiler.expression(f"thread_{routine}", dtype, *sizes, warps)
                yield "registers/small_thread.cuh", name, claim
        for routine, sizes in (("least_squares", (tall, 4, 1)), ("qr", (4, tall))):
            name = compiler.expression(f"thread_{routine}", dtype, *sizes, warps)
            yield "registers/small_thread.cuh", name, edge_spills
    for dtype, m, n, kind in SMALL_BLOCKS:
        for routine, sizes, width in block_routines(m, n):
            grid = layout(dtype, m, width, kind)
            if grid is not None:
                name = compiler.expression(f"block_{routine}", dtype, *sizes, *grid)
                yield "registers/small_block.cuh", name, BLOCK_SPILLS


def block_routines(m, n):
    """Routine, sizes and columns in all of the kernels for a problem a block."""
    yield "qr", (m, n), n
    yield "least_squares", (m, n, 1), n + 1
    if m == n:
        yield "lu", (n,), n
        yield "solve", (n, 1, False), n + 1
        yield "solve", (n, 1, True), n + 1
