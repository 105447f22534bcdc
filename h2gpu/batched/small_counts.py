"""Counts of the kernels of h2gpu.batched.small: one problem a thread, one problem a block.

Of a block, every step of a factorization has one barrier, as in kernels/block/cyclic_factor.cuh; the tile of a thread
shrinks panel by panel. Instructions beside multiply-adds are those of the SASS for sm_90: so many for every entry
moved, every row and column of a tile, every step. Anderson, Sheffield & Keutzer (2012), sections IV and V.D.
"""

from math import ceil, log2

import numpy as np

from h2gpu.batched.counts import SCALARS, WARP, WORKING_WORDS, Counts, Field, added
from h2gpu.batched.layouts import THREAD

PIECE = 32  # entries of a matrix that kernels/warp/small_exchange.cuh takes at a time
INT = 4  # bytes of info
ELIMINATION_WORDS = 24  # registers beside the tile that LU and Gauss-Jordan work with
SECTOR = 32  # bytes that memory is written by
HELD_WORDS = 235  # of a thread's registers that a matrix may take before some of it goes to local memory

# instructions for each entry that passes through SmallExchange, either way, by its words and whether it is complex
EXCHANGED = {(1, 1): 5, (2, 1): 8, (2, 4): 12}
SCALED = 3  # for each word, of looking for the largest and scaling
STEP, REFLECTED, SOLVED, BOUNDED = 30, 45, 30, 20  # of a step in a thread: a pivot, more for a reflection, …
LOADED, STORED, BLOCK = 4, 2, 60  # for each entry of a tile; of a block
COMPLEX_STEP = 25  # more for a complex pivot
# of a step in a block for each row and column of the tile, and beside those
TILE = {"lu": (6, 3, 55), "gauss-jordan": (5, 7, 35), "qr": (5, 3, 75), "substitution": (5, 7, 65)}
TILE |= {"solve": TILE["lu"], "lstsq": TILE["qr"]}


def small(routine, dtype, m, n, k, grid):
    """lu, cholesky, solve, gauss-jordan, qr (LAPACK's form) or lstsq of m × n with k right-hand sides, in a layout."""
    field = Field.of(dtype)
    stored = {"lu": n * n, "cholesky": n * n, "qr": m * n}.get(routine, n * k)
    loaded = m * n + (m * k if routine in ("solve", "gauss-jordan", "lstsq") else 0)
    entries = loaded + stored + (min(m, n) if routine == "qr" else 0)
    width = n + k
    if grid == THREAD:
        return _in_thread(routine, field, (m, n, k), loaded, stored, entries)
    height, across = grid.tile(m, width)
    tile, mirrored = height * across, routine in ("qr", "lstsq")
    passes = LOADED + STORED + SCALED * mirrored
    moved = Counts(
        nbytes=entries * field.size + INT,
        issued=(BLOCK + tile * passes * _wide(field)) * grid.threads / WARP,
        global_trips=1,
        threads=grid.threads,
        words=(tile + height + across) * field.words + (WORKING_WORDS if mirrored else ELIMINATION_WORDS),
    )
    steps = [_block_step(routine, field, grid, s, m, width) for s in range(min(m, n))]
    if routine in ("solve", "lstsq"):
        steps += [_substitution_step(field, grid, s, n, k) for s in range(n)]
    return added(moved, *steps)


def thread_products(routine, m, n, k):
    """Multiply-adds and quotients of a whole problem: of the elimination, and of the substitution if there is one."""
    s = np.arange(min(m, n))
    below, right = m - 1 - s, n + k - 1 - s
    if routine == "cholesky":
        products = below + below * (below + 1) / 2
    elif routine == "gauss-jordan":
        products = right + (n - 1) * right + below
    elif routine in ("qr", "lstsq"):
        products = 2 * below + right * (2 * below + 1)
    else:
        products = below + below * right
    extra = k * n * (n + 1) / 2 if routine in ("solve", "lstsq") else 0
    if routine == "lstsq":
        extra += 2 * n * (n + 1) / 2  # the bound on the condition
    return float(np.sum(products)) + extra


def torn_sectors(entries, size):
    """Sectors of one matrix that are written in parts, on average: pieces begin wherever the matrix before ends."""
    starts = range(0, entries, PIECE)
    if len(starts) == 1:  # all matrices of a warp pass together, as one run
        return 0
    torn = sum((matrix * entries + start) * size % SECTOR > 0 for matrix in range(SECTOR) for start in starts)
    return torn / SECTOR


def spilled_bytes(routine, field, m, n, k):
    """Of a problem in a thread: what registers do not hold, as often as steps pass over it, there and back."""
    words = m * (n + k) * field.words
    passed = {"cholesky": n / 3, "lu": 2 * n / 3, "solve": 2 * n / 3}.get(routine, n)
    beyond = max(0, (words / 2 if routine == "cholesky" else words) - HELD_WORDS)
    return beyond * INT * passed * (1.4 if field.products > 1 else 1)


def _in_thread(routine, field, shape, loaded, stored, entries):
    m, n, k = shape
    steps, products = min(m, n), field.products * thread_products(routine, m, n, k)
    solved = n if routine in ("solve", "lstsq") else 0
    bounded = n if routine == "lstsq" else 0
    mirrored = steps if routine in ("qr", "lstsq") else 0
    below = sum(m - 1 - s for s in range(steps))
    spilled = spilled_bytes(routine, field, m, n, k)
    beside = entries * EXCHANGED[field.words, field.products] + (SCALED * loaded * field.words if mirrored else 0)
    beside += STEP * steps + REFLECTED * mirrored + SOLVED * solved + BOUNDED * bounded + spilled / field.size
    return Counts(
        flops=2 * products,
        # a torn sector is read and written once more for either part
        nbytes=entries * field.size + INT + 4 * SECTOR * torn_sectors(stored, field.size),
        spilled=spilled,
        issued=(products + beside) / WARP,
        shared_bytes=2 * entries * field.size,
        dependent=2 * below + SCALARS * mirrored + 2 * solved + bounded * n / 2 if mirrored else 2 * (steps + solved),
        roots=steps if routine in ("cholesky", "qr", "lstsq") else 0,
        divisions=steps + solved + bounded,
        shared_trips=ceil(entries / PIECE),
        global_trips=ceil(m * n / PIECE) + ceil(m * k / PIECE),
        threads=1,
        words=m * (n + k) * field.words + WORKING_WORDS,
    )


def _wide(field):
    return 2 if field.products > 1 else 1


def _instructions(kind, field, height, across):
    """Of one step beside its multiply-adds, by one warp."""
    row, column, step = TILE[kind]
    return _wide(field) * (row * height + column * across) + step + (COMPLEX_STEP if field.products > 1 else 0)


def _block_step(routine, field, grid, s, m, width):
    """One step of LU, Gauss-Jordan or QR: publish a column and a row, then update."""
    panel = s // grid.columns
    height, across = grid.tile(m, width)
    height -= 0 if routine == "gauss-jordan" else panel * grid.columns // grid.rows
    across -= panel
    mirrored = routine in ("qr", "lstsq")
    products = field.products * (height * across * (2 if mirrored else 1) + 2 * height)
    trips = log2(min(grid.rows, WARP)) if mirrored else 0
    sums = trips * (across + 1) * field.words
    wide = mirrored and grid.rows > WARP
    warps = grid.threads / WARP
    exchanged = 2 * (height + across) + 1  # numbers that a thread writes or reads, and the pivot
    return Counts(
        flops=2 * products * grid.threads,
        issued=warps * (field.products * height * across * (2 if mirrored else 1) + 2 * sums)
        + warps * _instructions(routine, field, height, across),
        shared_bytes=grid.threads * exchanged * field.size,
        shuffles=sums * warps,
        dependent=height + SCALARS + trips if mirrored else 2,
        barriers=2 if wide else 1,
        roots=1 if mirrored else 0,
        divisions=1,
        shared_trips=2 if wide else 1,
        shuffle_trips=trips,
    )


def _substitution_step(field, grid, s, n, k):
    """One step from the last row up: its unknowns to all, then the rows above."""
    height, across = s // grid.rows + 1, ceil((n + k) / grid.columns) - n // grid.columns
    products, warps = field.products * height * (across + 2), grid.threads / WARP
    return Counts(
        flops=2 * products * grid.threads,
        issued=warps * (products + _instructions("substitution", field, height, across)),
        shared_bytes=grid.threads * (2 * height + across + 2) * field.size,
        dependent=2,
        barriers=1,
        divisions=1,  # two that wait for the same number
        shared_trips=1,
    )
