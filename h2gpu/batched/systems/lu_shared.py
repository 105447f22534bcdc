"""LU in shared memory, a block a matrix: kernels/systems/lu_shared.cuh.

All columns lie there, or a window of the first half and then the others. The tuning table tells the shape for each
number of rows.
"""

from functools import cache

import cupy
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, Ready
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit

TURNED_PAD, CANDIDATE_BYTES = 8, 16  # of kernels/systems/block/lu_window.cuh and lu_panel.cuh
MOST_PANEL = {4: 16, 8: 8, 16: 8}  # bytes of a number: columns of a panel where rows are too long for a warp's
SHARED_SLOTS = {8: 6, 4: 8, 16: 4}  # most rows of method "shared", in warps of them
ALIGNED, SPREAD = 16, 4  # rows in shared memory: columns in multiples of the first, and so many more
TUNED = {4: np.float32, 8: np.float64, 16: np.complex128}  # bytes of a number: whose rows of the tables are read
SHARED_SPILL_BYTES = 128  # the same, of rows of panels in registers, four blocks a multiprocessor
WINDOW_SPILL_BYTES = 1536  # the same, in kernels/systems/block/lu_advance.cuh: once a matrix


def pitch_of(n):
    """Entries between rows of n in shared memory."""
    return -(-n // ALIGNED) * ALIGNED + SPREAD


def shared_bytes(dtype, m, n):
    """Shared memory of m rows of n entries for a block, with where they lie, and entries between them."""
    pitch = pitch_of(n)
    return m * pitch * dtype.itemsize + 8 * m, pitch


def shape_of(itemsize, m):
    """A row of method "shared": columns of a panel, its rows a lane, warps of a block, resident blocks, window.

    A panel of WARP columns: a warp a matrix, as long as its rows fit in registers.
    """
    return tuning.row("lu_shared", TUNED[itemsize], rows=m)


def window_of(dtype, m, n):
    """Columns that method "shared" finishes before it reads the others; 0 where all are there at once."""
    window = of_rows(dtype, "window", m)
    return np.where((n > window) & (n <= 2 * window), window, 0)


def of_rows(dtype, knob, m):
    """A knob of method "shared" for every number of rows."""
    values = _knobs(dtype.itemsize, knob, cupy.cuda.Device().id)
    return values[np.minimum(-(-m // WARP), len(values) - 1)]


@cache
def _knobs(itemsize, knob, device):
    """Those of the device's table, by rows over 32."""
    slots = range(1, 1 + SHARED_SLOTS[itemsize])
    return np.array([0, *(shape_of(itemsize, each * WARP)[knob] for each in slots)])


def memory(dtype, m, n, window):
    """Shared memory of a block of method "shared", and entries between its rows."""
    places = np.where(window > 0, np.maximum(m, 2 * (m - window)), m)
    bytes_, pitch = shared_bytes(dtype, places, np.where(window > 0, window, n))
    panel, slots = np.minimum(of_rows(dtype, "panel", m), MOST_PANEL[dtype.itemsize]), -(-m // WARP)
    team = -(-slots // np.maximum(1, of_rows(dtype, "held", m)))
    known = panel * (team * panel + panel + TURNED_PAD * (panel % 16 == 0)) * dtype.itemsize + 4 * panel
    return bytes_ + 4 * (window > 0) * m + 2 * (known + 2 * team * max(CANDIDATE_BYTES, 2 * dtype.itemsize)), pitch


def fits(dtype, m, n, window):
    """Whether method "shared" can take m × n matrices."""
    bytes_, _ = memory(dtype, m, n, window)
    return (m <= SHARED_SLOTS[dtype.itemsize] * WARP) & (
        bytes_ <= shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES)
    )


def ready(dtype, batch, m, n):
    """The launch for a batch of m × n matrices, or of none larger."""
    shape, window = shape_of(dtype.itemsize, m), int(window_of(dtype, m, n))
    shared, pitch = (int(size) for size in memory(dtype, m, n, window))
    slots = -(-m // WARP)
    held, warps = shape["held"], shape["warps"]
    team = -(-slots // held)
    instance = dtype, min(shape["panel"], MOST_PANEL[dtype.itemsize]), held, team, warps, shape["resident"], window
    function = kernel("systems/lu_shared.cuh", "lu_shared", *instance, shared_bytes=shared)
    return Ready(function, batch, warps * WARP, shared, (m, n, pitch))
