"""Counts of the kernels of h2gpu.batched.registers: one problem a thread, one problem a block.

Of a block, every step of a factorization has one barrier, as in registers/block/cyclic_factor.cuh; the tile of a thread
shrinks panel by panel. Instructions beside multiply-adds are those of the SASS for sm_90: so many for every entry
moved, every row and column of a tile, every step. Anderson, Sheffield & Keutzer (2012), sections IV and V.D.
"""

from math import ceil, log2

import numpy as np

from h2gpu.batched.model.counts import SCALARS, WARP, WORKING_WORDS, Counts, Field, added
from h2gpu.batched.registers.layouts import THREAD

PIECE = 32  # entries of a matrix that kernels/registers/warp/small_exchange.cuh takes at a time
INT = 4  # bytes of info
ELIMINATION_WORDS = 24  # registers beside the tile that LU and Gauss-Jordan work with
SECTOR = 32  # bytes that memory is written by
HELD_WORDS = 235  # of a thread's registers that a matrix may take before some of it goes to local memory
# times as many bytes go there of complex matrices: by ptxas for LU and solutions, others by the fit to their times
COMPLEX_SPILLED, COMPLEX_FITTED = {"lu": 2.1, "solve": 2.0}, 1.4

# instructions for each entry that passes through SmallExchange, either way, by its words and whether it is complex
EXCHANGED = {(1, 1): 5, (2, 1): 8, (2, 4): 12}
SCALED = 3  # for each word, of looking for the largest and scaling
STEP, REFLECTED, SOLVED, BOUNDED = 30, 45, 30, 20  # of a step in a thread: a pivot, more for a reflection, …
LOADED, STORED, BLOCK = 4, 2, 60  # for each entry of a tile; of a block
COMPLEX_STEP = 25  # more for a complex pivot
# for each entry of a tile, one after another: cycles from its comparison past the branch that leaves at NaN or Inf
DECIDED = {"lu": 18, "qr": 18, "solve": 10, "gauss-jordan": 10}
COMPLEX_DECIDED = 43  # of all these
SCALINGS = {"qr": 1, "lstsq": 2}  # of matrix and right-hand sides by a power of two, with two barriers each
VERDICTS = {"qr": 1, "lstsq": 0}  # barriers of what info says; two where the least broken step is sought
# of the parts of a step in a block, for each row and column of the tile, and beside those
TILE = {
    "lu": {"publish": (1, 1, 15), "update": (5, 2, 40)},
    "gauss-jordan": {"publish": (1, 1, 15), "update": (4, 6, 20)},
    "qr": {"publish": (1, 1, 12), "products": (2, 0, 4), "reflection": (0, 2, 43), "update": (2, 0, 16)},
    "substitution": (5, 7, 65),
}
TILE |= {"solve": TILE["lu"], "lstsq": TILE["qr"]}
LOAD, SOLUTION, STORE = "load", "solution", "store"  # panels beside those of a factorization, in their order


def small(routine, dtype, m, n, k, grid):
    """lu, cholesky, solve, gauss-jordan, qr (LAPACK's form) or lstsq of m × n with k right-hand sides, in a layout."""
    field = Field.of(dtype)
    if grid != THREAD:
        return added(*(work for *_, work in block_parts(routine, dtype, m, n, k, grid)))
    return _in_thread(routine, field, (m, n, k), *_entries(routine, m, n, k))


def block_parts(routine, dtype, m, n, k, grid):
    """(panel, part of a step, Counts) of a problem a block, step by step: LOAD, panels 0 …, SOLUTION, STORE."""
    field, width, mirrored = Field.of(dtype), n + k, routine in ("qr", "lstsq")
    loaded, _, entries = _entries(routine, m, n, k)
    height, across = grid.tile(m, width)
    each = height * across * _wide(field) * grid.threads / WARP  # instructions for one in every entry
    words = (height * across + height + across) * field.words + (WORKING_WORDS if mirrored else ELIMINATION_WORDS)
    scaled, verdict = 2 * SCALINGS.get(routine, 0), VERDICTS.get(routine, 2)
    decided = DECIDED.get(routine, 0) and (COMPLEX_DECIDED if field.products > 1 else DECIDED[routine])
    load = Counts(
        nbytes=loaded * field.size,
        issued=(LOADED + SCALED * mirrored) * each + BLOCK * grid.threads / WARP,
        barriers=scaled,
        shared_trips=scaled,
        global_trips=2 if k and decided else 1,  # b is asked for once A has been looked at
        stalls=decided * height * across,
        threads=grid.threads,
        words=words,
    )
    yield LOAD, "", load
    for s in range(min(m, n)):
        for part, work in _block_step(routine, field, grid, s, m, width):
            yield s // grid.columns, part, work
    for s in range(n if routine in ("solve", "lstsq") else 0):
        yield SOLUTION, "", _substitution_step(field, grid, s, m, n, k)
    told = {"barriers": verdict, "shared_trips": verdict, "threads": grid.threads}
    yield STORE, "", Counts(nbytes=(entries - loaded) * field.size + INT, issued=STORED * each, **told)


def _entries(routine, m, n, k):
    """Numbers that are loaded, that a result has, and all that pass."""
    stored = {"lu": n * n, "cholesky": n * n, "qr": m * n}.get(routine, n * k)
    loaded = m * n + (m * k if routine in ("solve", "gauss-jordan", "lstsq") else 0)
    return loaded, stored, loaded + stored + (min(m, n) if routine == "qr" else 0)


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
    return beyond * INT * passed * (COMPLEX_SPILLED.get(routine, COMPLEX_FITTED) if field.products > 1 else 1)


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


def _instructions(of_tile, field, height, across):
    """Of one step beside its multiply-adds, by one warp."""
    row, column, step = of_tile
    return _wide(field) * (row * height + column * across) + step


def _block_step(routine, field, grid, s, m, width):
    """(part, Counts) of one step of LU, Gauss-Jordan or QR: publish a column and a row, then update."""
    panel, mirrored = s // grid.columns, routine in ("qr", "lstsq")
    height, across = grid.tile(m, width)
    height -= 0 if routine == "gauss-jordan" else panel * grid.columns // grid.rows
    across -= panel
    trips = log2(min(grid.rows, WARP)) if mirrored else 0
    sums = trips * (across + 1) * field.words
    wide = mirrored and grid.rows > WARP
    warps, each = grid.threads / WARP, field.products * height
    scalars = {"dependent": SCALARS if mirrored else 2, "roots": mirrored, "divisions": 1}
    complex_step = COMPLEX_STEP if field.products > 1 else 0

    def part(name, products=0, issued=0, exchanged=0, **more):
        issued += _instructions(TILE[routine][name], field, height, across)
        more |= {"flops": 2 * products * grid.threads, "issued": warps * issued, "threads": grid.threads}
        return name, Counts(shared_bytes=grid.threads * exchanged * field.size, **more)

    yield part("publish", exchanged=height + across, barriers=1, shared_trips=1)
    if not mirrored:
        yield part("update", each * (across + 2), each * across + complex_step, height + across + 1, **scalars)
        return
    summed = {"dependent": height + trips, "shuffles": sums * warps, "shuffle_trips": trips}
    summed |= {"barriers": wide, "shared_trips": wide}
    yield part("products", each * (across + 1), each * across + 2 * sums, height, **summed)
    yield part("reflection", issued=complex_step, exchanged=across + 1, **scalars)
    yield part("update", each * (across + 1), each * across)


def _substitution_step(field, grid, s, m, n, k):
    """One step from the last row up: its unknowns to all, then the rows that its panel's last row has above."""
    last = min(m, (s // grid.columns + 1) * grid.columns) - 1
    height, across = last // grid.rows + 1, ceil((n + k) / grid.columns) - n // grid.columns
    products, warps = field.products * height * (across + 2), grid.threads / WARP
    complex_step = COMPLEX_STEP if field.products > 1 else 0
    return Counts(
        flops=2 * products * grid.threads,
        issued=warps * (products + complex_step + _instructions(TILE["substitution"], field, height, across)),
        shared_bytes=grid.threads * (2 * height + across + 2) * field.size,
        dependent=2,
        barriers=1,
        divisions=1,  # two that wait for the same number
        shared_trips=1,
        threads=grid.threads,
    )
