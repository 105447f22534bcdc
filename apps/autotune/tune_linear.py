"""What `tune` tries for LU, Cholesky, bidiagonal reductions, products with vectors and triangular solves.

See apps/autotune/tune_space.py.

| table | of which kernels | knobs |
|---|---|---|
| lu_shared | a block or warp a matrix in shared memory | rows a lane and columns of a panel, warps, blocks, window |
| cholesky_shared | the same | warps, blocks |
| lu_panel | a panel of columns in a block's registers | columns of the panel |
| gebrd | bidiagonal reduction in device memory | columns of V and X, twice a panel's; warps, blocks at most |
| gemv, gemv_t | products with vectors, also transposed | lanes of a team, its rows, threads of a block |
| symv | a triangle, read once | warps of a block, columns of a lane |
| trsm | triangles, a thread a right-hand side, by tiles, or cuBLAS | which; right-hand sides and warps of a block |
"""

from itertools import product

from h2gpu.apps.autotune.tune_limits import OTHER_WORDS, SLACK, WARP, itemsize, limits
from h2gpu.apps.benchmarks.routines.batched import Case

KNOBS = {
    "lu_shared": ("held", "warps", "resident", "window", "panel"),
    "cholesky_shared": ("warps", "resident"),
    "lu_panel": ("width",),
    "gebrd": ("held", "warps", "resident"),
    "gemv": ("lanes", "rows", "threads"),
    "gemv_t": ("lanes", "threads"),
    "symv": ("warps", "steps"),
    "trsm": ("method", "columns", "warps"),
}
SYMV_STEPS = 2, 4  # columns of a lane
BATCH = 500  # of the figures of Abdelfattah et al.
BLOCK_WARPS, RESIDENT = (1, 2, 4, 6, 8, 12, 16), (1, 2, 3, 4, 6, 8)  # of a block; blocks of a multiprocessor
HELD, SHARED_PANELS = (1, 2, 4), (8, 16)  # rows of a lane of a panel, its columns
LANE_BYTES = 512  # of a lane's rows, where a warp has a matrix
MATRIX_BLOCKS = {"warps": 4, "resident": 4}  # of such
WIDTHS, PANEL_THREADS = (8, 16, 32), 512  # columns of a panel; threads that share its rows
COLUMNS_HELD, REDUCING_WARPS, REDUCING_BLOCKS = (8, 16, 32, 64), (4, 8, 16), (1, 2, 3)  # of bidiagonal reductions
REDUCED, REDUCING_WORDS = 200, 64  # matrices of a batch; registers of a lane at least
PANEL_WORDS, LEAST_WARPS = 64, 4  # registers of a lane with its rows of a panel; warps of a block, one a scheduler
LEAST_REGISTERS = 64  # of a lane of a kernel that holds panels
SPREAD = 4  # entries more than columns of a row in shared memory
LARGEST_SQUARE = {8: 160, 4: 230}  # that shared memory holds, by bytes of a number
LANES, TEAM_ROWS, THREADS = (4, 8, 16, 32), (2, 4, 8), (32, 64, 128, 256)  # of products with vectors
PIECE = 16  # bytes that a lane reads together
SIDES, TILE_EDGE = (4, 8, 16, 32), 32  # right-hand sides of a block; rows of a tile of trsm
COLUMN_THREADS, VENDOR = 128, (16, 2)  # of a block, a right-hand side each; columns and warps where there is no cuBLAS
LARGEST = {"pieces": 128, "rows": 512, "columns": 64}  # that stand for unlimited ones
TALLEST = 1024  # the same, of rows that are added up
ENTRIES = 1 << 26  # of the matrices of a batch


def _fitting(row, hardware, smallest, least):
    """At `least` so many warps, and blocks of a multiprocessor, with `smallest` (rows, columns) in shared memory."""
    need = smallest[0] * (smallest[1] + SPREAD) * itemsize(row)
    for warps, resident in product(BLOCK_WARPS, RESIDENT):
        registers = LEAST_REGISTERS * warps * WARP * resident
        fits = resident == 1 or resident * need <= hardware.shared_bytes
        if least <= warps <= hardware.threads // WARP and registers <= hardware.registers and fits:
            yield {"warps": warps, "resident": resident}


def _lu_shared_space(row, hardware):
    """A warp more than those of a panel; all columns, or at first half as many as rows, fewer than any matrix has.

    And a warp a matrix, where registers hold its rows.
    """
    rows = limits(row)["rows"]
    if rows * rows * itemsize(row) <= WARP * LANE_BYTES:
        yield {"held": rows // WARP, **MATRIX_BLOCKS, "window": 0, "panel": WARP}
    for held, window, panel in product(HELD, (0, rows // 2), SHARED_PANELS):
        team, words = -(-rows // WARP // held), held * panel * itemsize(row) // 4
        if held * WARP > rows or window % 16 or window > rows - WARP or words > PANEL_WORDS:
            continue
        for shape in _fitting(row, hardware, (rows - WARP + 1, window or rows - WARP + 1), max(team + 1, LEAST_WARPS)):
            yield {"held": held, **shape, "window": window, "panel": panel}


def _cholesky_shared_space(row, hardware):
    smallest = limits(row)["rows"] - WARP + 1
    return _fitting(row, hardware, (smallest, smallest), 1)


def _lu_panel_space(row, hardware):
    slots = -(-limits(row)["rows"] // PANEL_THREADS)
    for width in WIDTHS:
        words = slots * width * itemsize(row) // 4 + OTHER_WORDS
        if words <= SLACK * min(hardware.lane_registers, hardware.registers // PANEL_THREADS):
            yield {"width": width}


def _gebrd_space(row, hardware):
    """A row and the panel's columns for each warp, and two more, and the panel's rows lie in shared memory."""
    n = limits(row)["columns"]
    for held, warps, resident in product(COLUMNS_HELD, REDUCING_WARPS, REDUCING_BLOCKS):
        shared = itemsize(row) * ((n + held) * (warps + 2) + n * held)
        registers = REDUCING_WORDS * warps * WARP * resident
        if resident * shared <= hardware.shared_bytes and registers <= hardware.registers:
            yield {"held": held, "warps": warps, "resident": resident}


def _gemv_space(row, hardware):
    for lanes, rows, threads in product(LANES, TEAM_ROWS, THREADS):
        if lanes <= threads <= hardware.threads:
            yield {"lanes": lanes, "rows": rows, "threads": threads}


def _gemv_t_space(row, hardware):
    for lanes, threads in product(LANES, THREADS):
        if threads <= hardware.threads:
            yield {"lanes": lanes, "threads": threads}


def _symv_space(row, hardware):
    n = min(limits(row)["rows"], LARGEST["rows"])
    for warps, steps in product(BLOCK_WARPS, SYMV_STEPS):
        if warps * WARP <= hardware.threads and (2 + warps) * n * itemsize(row) <= hardware.shared_bytes:
            yield {"warps": warps, "steps": steps}


def _trsm_space(row, hardware):
    size = limits(row)
    n, most = min(size["rows"], LARGEST["rows"]), size["columns"]
    yield {"method": "columns", "columns": COLUMN_THREADS, "warps": 1}
    yield {"method": "vendor", "columns": VENDOR[0], "warps": VENDOR[1]}
    for columns, warps in product(SIDES, BLOCK_WARPS):
        threads = warps * WARP
        shared = ((n + TILE_EDGE) * columns + 2 * TILE_EDGE * (TILE_EDGE + 1)) * itemsize(row)
        shares = threads % columns == 0 and TILE_EDGE * columns % threads == 0  # a thread stays in its column
        if columns <= most and shares and threads <= hardware.threads and shared <= hardware.shared_bytes:
            yield {"method": "tiles", "columns": columns, "warps": warps}


def _lu_shared_problems(dtype, size, free):
    for order in (size["rows"], size["rows"] - WARP // 2):
        if free(rows=order):
            yield Case("lu", dtype, BATCH, (order, order), method="shared")


def _cholesky_shared_problems(dtype, size, free):
    n = min(size["rows"], LARGEST_SQUARE[itemsize({"dtype": dtype})])
    for order in (n, n - WARP // 2):
        if order > WARP and free(rows=order):
            yield Case("cholesky", dtype, BATCH, (order, order))


def _lu_panel_problems(dtype, size, free):
    m = size["rows"]
    for shape in dict.fromkeys(((m, min(m, PANEL_THREADS)), (3 * m // 4, PANEL_THREADS // 2))):
        if free(rows=shape[0]):
            yield Case("lu", dtype, BATCH // 2, shape, method="panel")


def _gebrd_problems(dtype, size, free):
    n = size["columns"]
    for order in (n, 3 * n // 4):
        if free(columns=order):
            yield Case("gebrd", dtype, min(REDUCED, 2 * ENTRIES // n**2), (order, order))


def _gemv_problems(dtype, size, free):
    pieces, each = min(size["pieces"], LARGEST["pieces"]), PIECE // itemsize({"dtype": dtype})
    for n in (pieces * each, (pieces - 1) * each - 1):  # rows that begin at multiples of 16 bytes, and others
        yield Case("gemv", dtype, ENTRIES // n**2, (n, n))


def _gemv_t_problems(dtype, size, free):
    pieces, m = min(size["pieces"], LARGEST["pieces"]), min(size["rows"], TALLEST)
    n = pieces * PIECE // itemsize({"dtype": dtype})
    if free(pieces=pieces, rows=m):
        yield Case("gemv_t", dtype, ENTRIES // (m * n), (m, n))


def _symv_problems(dtype, size, free):
    n = min(size["rows"], LARGEST["rows"])
    for order in (n, n - 3):
        yield Case("symv", dtype, ENTRIES // n**2, (order, order))


def _trsm_problems(dtype, size, free):
    largest, columns = min(size["rows"], LARGEST["rows"]), min(size["columns"], LARGEST["columns"])
    for n in (largest, largest - TILE_EDGE + 1):
        if free(rows=n, columns=columns):
            yield Case("trsm", dtype, ENTRIES // (n * max(n, columns)), (n, n, columns))


SPACES = {
    "lu_shared": _lu_shared_space,
    "cholesky_shared": _cholesky_shared_space,
    "lu_panel": _lu_panel_space,
    "gebrd": _gebrd_space,
    "gemv": _gemv_space,
    "gemv_t": _gemv_t_space,
    "symv": _symv_space,
    "trsm": _trsm_space,
}
PROBLEMS = {
    "lu_shared": _lu_shared_problems,
    "cholesky_shared": _cholesky_shared_problems,
    "lu_panel": _lu_panel_problems,
    "gebrd": _gebrd_problems,
    "gemv": _gemv_problems,
    "gemv_t": _gemv_t_problems,
    "symv": _symv_problems,
    "trsm": _trsm_problems,
}
