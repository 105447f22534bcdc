"""LU in place, panel after panel, of matrices that do not fit on the chip.

lu_panel.cuh (in registers, "panel"; by columns; unblocked), lu_rows.cuh (interchanges and rows of U), lu_update.cuh
(what remains; behind several panels at once). Nothing is read back.
"""

import cupy
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, launch
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit
from h2gpu.batched.systems.lu_shared import TUNED
from h2gpu.batched.systems.rank_update import TOGETHER, rows_bytes, update_rest

PANEL_WARPS, GLOBAL_WARPS, GLOBAL_PANEL = 16, 8, {4: 32, 8: 32, 16: 16}
ROW_WARPS, ROW_COLUMNS = 4, 16  # of a block of lu_rows at most, and columns of a warp
COPY_THREADS, COPY_ENTRIES = 256, 16384  # of finite_copy, and entries a block takes
PANEL_SPILL_BYTES = 512  # of kernels/systems/lu_panel.cuh: 456 by NVRTC 13.5, 0 by 13.0 (float32)


def run(dtype, batch, m, n, method, *buffers):
    """All launches for a batch of m × n matrices, or of none larger."""
    A, LU, piv, info, _, table = buffers
    place = table, m, n
    pieces = max(1, min(-(-m * n // COPY_ENTRIES), np.iinfo(np.int32).max // batch))
    copy = kernel("systems/finite_copy.cuh", "finite_copy", dtype, COPY_THREADS)
    launch(copy, batch * pieces, COPY_THREADS, (A, LU, info, *place, pieces))
    method, width = _panel(dtype, method, m)
    together, steps = TOGETHER[dtype.itemsize], min(m, n)
    rest = LU, info, place, batch
    for first in range(0, steps, width):
        start = first // together * together
        stop, end = start + together, first + width
        factor_panel(method, dtype, width, m - first, batch, (LU, piv, info, *place, first))
        moved = LU, piv, info, place, batch
        _move_rows(dtype, moved, width, (first, end, start, stop), True)
        if end < min(stop, steps):
            update_rest(dtype, *rest, width, first, stop, False)
        else:
            _move_rows(dtype, moved, together, (start, end, start, stop), False)
            update_rest(dtype, *rest, together, start, n, False)


def _move_rows(dtype, arrays, width, panels, inside):
    """Interchanges and rows of U of the panels from `first` to `end`, in columns inside start … stop, or outside."""
    LU, piv, info, place, batch = arrays
    first, end, start, stop = panels
    table, m, n = place
    own = min(end, m, n) - first if table is NULL else 0
    left, right = (first - start, min(stop, n) - first - own) if inside else (start, n - stop)
    strips = sum(-(-max(0, columns) // ROW_COLUMNS) for columns in (left, right))
    if strips == 0:
        return
    warps = min(ROW_WARPS, strips)
    blocks = -(-strips // warps)
    function = kernel("systems/lu_rows.cuh", "lu_rows", dtype, width, ROW_WARPS)
    launch(function, batch * blocks, warps * WARP, (LU, piv, info, *place, *panels, int(inside), blocks))


def _panel(dtype, method, m):
    """How panels are done, and their columns: as few rows as registers hold by "panel", more by columns."""
    if method in ("auto", "panel"):
        try:
            return "panel", tuning.row("lu_panel", TUNED[dtype.itemsize], rows=m)["width"]
        except LookupError:  # more than registers hold
            method = "column"
    if method == "column" and m * dtype.itemsize > shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES):
        method = "unblocked"
    return method, GLOBAL_PANEL[dtype.itemsize]


def factor_panel(method, dtype, width, rows, batch, arguments):
    header = "systems/lu_panel.cuh"
    if method == "panel":
        slots = 2 ** max(0, (-(-rows // (PANEL_WARPS * WARP)) - 1).bit_length())
        warps = min(PANEL_WARPS, -(-rows // WARP))
        shared = rows_bytes(dtype, warps)
        function = kernel(header, "lu_panel", dtype, width, slots, PANEL_WARPS, shared_bytes=shared)
    else:
        # compiled loads take 16 bytes at a time, of which the last may lie beyond the last row
        warps, shared = GLOBAL_WARPS, -(-rows * dtype.itemsize // 16) * 16 if method == "column" else 0
        function = kernel(header, f"lu_{method}", dtype, width, warps, shared_bytes=shared)
    launch(function, batch, warps * WARP, arguments, shared)
