"""P_b A_b = L_b U_b on the GPU: by size, a launch for all matrices or a few launches a panel of columns.

"matrix": kernels/systems/lu_register.cuh, a warp or a part of one a matrix. "shared": lu_shared.cuh, a block a matrix,
all columns in shared memory or a window of the first half and then the others; lu_warp.cuh, a warp, where the table has
panels of a warp's columns.
Beyond, panel after panel in place: lu_panel.cuh (in registers, "panel"; by columns; unblocked), lu_rows.cuh
(interchanges and rows of U), lu_update.cuh (what remains; behind several panels at once). Nothing is read back.
"""

from functools import cache

import cupy
import numpy as np

from h2gpu.batched import tuning
from h2gpu.batched.classes import classes
from h2gpu.batched.launch import NULL, WARP, launch, most_shared, multiprocessors
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch

REGISTER_WARPS = 2  # of a block of method "matrix"
LEAST_LANES = 4
TURNED_PAD, CANDIDATE_BYTES = 8, 16  # of kernels/systems/block/lu_window.cuh and lu_panel.cuh
MOST_PANEL = {4: 16, 8: 8, 16: 8}  # bytes of a number: columns of a panel where rows are too long for a warp's
SHARED_SLOTS = {8: 6, 4: 8, 16: 4}  # most rows of method "shared", in warps of them
ROW_BYTES = 512  # of a lane's rows in registers, where a warp has a matrix
ALIGNED, SPREAD = 16, 4  # rows in shared memory: columns in multiples of the first, and so many more
PANEL_WARPS, GLOBAL_WARPS, GLOBAL_PANEL = 16, 8, {4: 32, 8: 32, 16: 16}
TUNED = {4: np.float32, 8: np.float64, 16: np.complex128}  # bytes of a number: whose rows of the tables are read
TOGETHER = {4: 64, 8: 64, 16: 32}  # bytes of a number: columns of the panels behind which the rest is updated at once
ROW_BUFFER = 9 * WARP  # entries, of kernels/systems/warp/panel_rows.cuh
ROW_WARPS, ROW_COLUMNS = 4, 16  # of a block of lu_rows at most, and columns of a warp
UPDATE_EDGE, UPDATE_THREADS = 64, 128  # of kernels/systems/lu_update.cuh
SUM_PAD, LEFT_PAD, RIGHT_PAD_BYTES = 8, 4, 32  # the same: behind a row of C, of L, of U
STATIC_BYTES = 2 << 10
COPY_THREADS, COPY_ENTRIES = 256, 16384  # of finite_copy, and entries a block takes
SPILL_BYTES = 56  # that the compiler may spill, around a division at most
SHARED_SPILL_BYTES = 128  # the same, of rows of panels in registers, four blocks a multiprocessor
WARP_SPILL_BYTES = 0  # the same, where a warp has a matrix
WINDOW_SPILL_BYTES = 1536  # the same, in kernels/systems/block/lu_advance.cuh: once a matrix
PANEL_SPILL_BYTES = 512  # of kernels/systems/lu_panel.cuh: 456 by NVRTC 13.5, 0 by 13.0 (float32)
MATRIX, SHARED, PANEL = range(3)


def lu_factor(A, method):
    """See h2gpu.batched.lu_factor: LU, piv, info."""
    if isinstance(A, MatrixBatch):
        info = cupy.zeros(len(A), np.int32)
        A = A.on_host()
        LU = MatrixBatch.empty(A.rows, A.columns, A.dtype, cupy)
        piv = MatrixBatch.empty(np.minimum(A.rows, A.columns), 1, np.int32, cupy)
        every = np.arange(len(A))
        for group in classes(A.rows, A.columns, lambda m, n: _keys(A.dtype, method, len(A), m, n)):
            table = group.table(A.offsets, LU.offsets, piv.offsets, A.rows, A.columns, every)
            buffers = A.buffer, LU.buffer, piv.buffer, info, table
            _run(method, group.keys[0], A.dtype, buffers, group.count, *group.shape)
        return LU, piv, info
    batch, m, n = A.shape
    LU, piv = cupy.empty_like(A), cupy.empty((batch, min(m, n)), np.int32)
    kind = _keys(A.dtype, method, batch, np.array([m]), np.array([n]))[0, 0] if A.size else None
    info = (cupy.empty if kind in (MATRIX, SHARED) else cupy.zeros)(batch, np.int32)  # who looks at it before is told 0
    if A.size:
        _run(method, kind, A.dtype, (A, LU, piv, info, NULL), batch, m, n)
    return LU, piv, info


def _keys(dtype, method, batch, m, n):
    """What matrices m × n have to agree in to be launched together: how they are done, and their size in steps."""
    window = _window(dtype, m, n)
    small, fitting = (m <= WARP) & (n <= WARP), _fits(dtype, m, n, window)
    if method == "auto":
        many = batch > _at_once(dtype.itemsize, cupy.cuda.Device().id)
        better = _in_warps(dtype, m, n) & (n > ALIGNED)
        kind = np.where(small & many & ~better, MATRIX, np.where(fitting, SHARED, PANEL))
    elif method in ("matrix", "shared"):
        kind = np.full(len(m), MATRIX if method == "matrix" else SHARED)
        suited = small if method == "matrix" else fitting
        if not suited.all():
            b = int(np.argmin(suited))
            raise ValueError(f'lu_factor: {m[b]} × {n[b]} is too large for method "{method}"; use "auto"')
    else:
        kind = np.full(len(m), PANEL)
    rows = np.where(kind == MATRIX, _lanes(m), np.where(kind == SHARED, -(-m // WARP), 0))
    step = np.where(window > 0, WARP, ALIGNED)  # all columns: in rows as long as those of the largest
    columns = np.where(kind == MATRIX, n + n % 2, np.where(kind == SHARED, -(-n // step), 0))
    return np.stack([kind, rows, columns])


@cache
def _at_once(itemsize, device):
    """Matrices of at most 32 rows, with a warp each of at most 16 columns, up to which "shared" is the faster way."""
    shape = _shape(itemsize, WARP)
    return shape["resident"] * (shape["warps"] if shape["panel"] == WARP else 1) * multiprocessors(device)


def _lanes(m):
    """The power of two that m rows need."""
    return np.maximum(LEAST_LANES, 2 ** np.ceil(np.log2(np.maximum(m, 1))).astype(np.int64))


def _run(method, kind, dtype, buffers, batch, m, n):
    if kind == MATRIX:
        _run_matrix(dtype, buffers, batch, m, n)
    elif kind == SHARED:
        _run_shared(dtype, buffers, batch, m, n)
    else:
        _run_panels(dtype, buffers, batch, m, n, method)


def _run_matrix(dtype, buffers, batch, m, n):
    lanes, columns = int(_lanes(np.array([m]))[0]), n + n % 2
    shared = REGISTER_WARPS * WARP * (columns | 1) * dtype.itemsize
    instance = dtype, columns, lanes, REGISTER_WARPS
    function = kernel("systems/lu_register.cuh", "lu_register", *instance, shared_bytes=shared)
    blocks = -(-batch // (REGISTER_WARPS * WARP // lanes))
    launch(function, blocks, REGISTER_WARPS * WARP, (*buffers, m, n, np.int64(batch)), shared)


def shared_bytes(dtype, m, n):
    """Shared memory of m rows of n entries for a block, with where they lie, and entries between them."""
    pitch = -(-n // ALIGNED) * ALIGNED + SPREAD
    return m * pitch * dtype.itemsize + 8 * m, pitch


def shared_limit(device):
    """Bytes of dynamic shared memory that a block can have, a little left for the static."""
    return most_shared(device) - STATIC_BYTES


def _shape(itemsize, m):
    """A row of method "shared": columns of a panel, its rows a lane, warps of a block, resident blocks, window.

    A panel of WARP columns: a warp a matrix, as long as its rows fit in registers.
    """
    return tuning.row("lu_shared", TUNED[itemsize], rows=m)


def _window(dtype, m, n):
    """Columns that method "shared" finishes before it reads the others; 0 where all are there at once."""
    window = _of_rows(dtype, "window", m)
    return np.where((n > window) & (n <= 2 * window), window, 0)


def _of_rows(dtype, knob, m):
    """A knob of method "shared" for every number of rows."""
    values = _knobs(dtype.itemsize, knob, cupy.cuda.Device().id)
    return values[np.minimum(-(-m // WARP), len(values) - 1)]


@cache
def _knobs(itemsize, knob, device):
    """Those of the device's table, by rows over 32."""
    slots = range(1, 1 + SHARED_SLOTS[itemsize])
    return np.array([0, *(_shape(itemsize, each * WARP)[knob] for each in slots)])


def _memory(dtype, m, n, window):
    """Shared memory of a block of method "shared", and entries between its rows."""
    places = np.where(window > 0, np.maximum(m, 2 * (m - window)), m)
    bytes_, pitch = shared_bytes(dtype, places, np.where(window > 0, window, n))
    panel, slots = np.minimum(_of_rows(dtype, "panel", m), MOST_PANEL[dtype.itemsize]), -(-m // WARP)
    team = -(-slots // np.maximum(1, _of_rows(dtype, "held", m)))
    known = panel * (team * panel + panel + TURNED_PAD * (panel % 16 == 0)) * dtype.itemsize + 4 * panel
    return bytes_ + 4 * (window > 0) * m + 2 * (known + 2 * team * max(CANDIDATE_BYTES, 2 * dtype.itemsize)), pitch


def _fits(dtype, m, n, window):
    """Whether method "shared" can take m × n matrices."""
    bytes_, _ = _memory(dtype, m, n, window)
    return (m <= SHARED_SLOTS[dtype.itemsize] * WARP) & (bytes_ <= shared_limit(cupy.cuda.Device().id))


def _run_shared(dtype, buffers, batch, m, n):
    shape, window = _shape(dtype.itemsize, m), int(_window(dtype, m, n))
    if _in_warps(dtype, m, n):
        return _run_warps(dtype, buffers, batch, m, n, shape["warps"])
    shared, pitch = (int(size) for size in _memory(dtype, m, n, window))
    slots = -(-m // WARP)
    held, warps = shape["held"], shape["warps"]
    team = -(-slots // held)
    instance = dtype, min(shape["panel"], MOST_PANEL[dtype.itemsize]), held, team, warps, shape["resident"], window
    function = kernel("systems/lu_shared.cuh", "lu_shared", *instance, shared_bytes=shared)
    launch(function, batch, warps * WARP, (*buffers, m, n, pitch), shared)


def _in_warps(dtype, m, n):
    """Whether a warp a matrix is the way of method "shared": that of the table, and rows fit in registers."""
    slots, columns, bytes_ = _warp_shape(dtype, m, n)
    fits = (slots <= 2) & (columns <= slots * WARP) & (slots * columns * dtype.itemsize <= ROW_BYTES)
    fits &= _of_rows(dtype, "warps", m) * bytes_ <= most_shared(cupy.cuda.Device().id)
    return fits & (_of_rows(dtype, "panel", m) == WARP)


def _warp_shape(dtype, m, n):
    """Rows a lane and columns in registers of a warp with a matrix, and the kernel's LUStage in bytes."""
    slots, columns = -(-m // WARP), -(-n // ALIGNED) * ALIGNED
    rows, behind = slots * WARP, np.maximum(columns - WARP, 0)
    return slots, columns, (rows * (columns + SPREAD) + WARP * (columns + behind)) * dtype.itemsize + 4 * rows


def _run_warps(dtype, buffers, batch, m, n, warps):
    slots, columns, bytes_ = _warp_shape(dtype, m, n)
    shared = warps * int(bytes_)
    function = kernel("systems/lu_warp.cuh", "lu_warp", dtype, columns, slots, warps, shared_bytes=shared)
    launch(function, -(-batch // warps), warps * WARP, (*buffers, m, n, np.int64(batch)), shared)


def _run_panels(dtype, buffers, batch, m, n, method):
    A, LU, piv, info, table = buffers
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
        _factor_panel(method, dtype, width, m - first, batch, (LU, piv, info, *place, first))
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
    if method == "column" and m * dtype.itemsize > shared_limit(cupy.cuda.Device().id):
        method = "unblocked"
    return method, GLOBAL_PANEL[dtype.itemsize]


def _factor_panel(method, dtype, width, rows, batch, arguments):
    header = "systems/lu_panel.cuh"
    if method == "panel":
        slots = 2 ** max(0, (-(-rows // (PANEL_WARPS * WARP)) - 1).bit_length())
        warps = min(PANEL_WARPS, -(-rows // WARP))
        shared = ROW_BUFFER * warps * dtype.itemsize
        function = kernel(header, "lu_panel", dtype, width, slots, PANEL_WARPS, shared_bytes=shared)
    else:
        warps, shared = GLOBAL_WARPS, rows * dtype.itemsize if method == "column" else 0
        function = kernel(header, f"lu_{method}", dtype, width, warps, shared_bytes=shared)
    launch(function, batch, warps * WARP, arguments, shared)


def update_rest(dtype, LU, info, place, batch, width, first, stop, symmetric):
    """C −= L U (symmetric: L Lᵀ) behind the `width` columns from `first` on, in columns before `stop`."""
    _, m, n = place
    begin = first + width
    down, across = (-(-(size - begin) // UPDATE_EDGE) for size in (m, min(stop, n)))
    if down <= 0 or across <= 0:
        return
    shared = _update_bytes(dtype.itemsize, width, symmetric)
    function = kernel("systems/lu_update.cuh", "lu_update", dtype, width, symmetric, shared_bytes=shared)
    launch(function, batch * down * across, UPDATE_THREADS, (LU, info, *place, first, stop, down, across), shared)


def _update_bytes(size, width, symmetric):
    """Shared memory of kernels/systems/lu_update.cuh: tiles of C, L and U (or L)."""
    left = UPDATE_EDGE * (width + LEFT_PAD)
    right = left if symmetric else width * (UPDATE_EDGE + RIGHT_PAD_BYTES // size)
    return (UPDATE_EDGE * (UPDATE_EDGE + SUM_PAD) + left + right) * size
