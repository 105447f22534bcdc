"""Counts of the bidiagonal reductions, part by part: kernels/bidiagonal/bidiagonalize.cuh and bidiagonalize_large.cuh.

One problem, one block; columns one after another. Sizes of what a lane holds shrink as the kernels' do; instructions
beside multiply-adds and exchanges are estimates, so many for every number of a tile, of its edges, of a step.
Half of the work is W r and aᵀ W, as Dong et al. (2018) count GEMV, half the update, as they count GEMM.
"""

from math import ceil, log2

from h2gpu.batched.bidiagonal import plans
from h2gpu.batched.model.counts import SCALARS, WARP, Counts, Field

PARTS = "A comes", "reflections", "W r", "update", "aᵀ W", "products with V X Y U"
READ, REFLECT, ROW_PRODUCT, UPDATE, COLUMN_PRODUCT, PUT_OFF = PARTS
LOADED = 8  # instructions for each entry that comes
EDGE, REFLECTION, SAVED = 10, 160, 3  # for each column of a lane, of the two reflections of a step, for a number kept
ROW, ROUND = 6, 30  # for each row of a lane, and of a pass over some rows
SUMMED = 4  # for each exchange of lanes that adds


def parts(dtype, m, n, shared_limit):
    """(part, Counts) of an m × n matrix, m ≥ n, whose reflectors are kept."""
    field = Field.of(dtype)
    plan = plans.plan(field.size, m, n, shared_limit)
    threads = plan.warps * WARP
    occupied = {"threads": threads, "words": plans.BLOCK_WORDS // (threads * plan.resident)}
    tile = isinstance(plan, plans.Tile)
    workspace = 2 if not tile and plan.held else 1  # A is copied there
    each = LOADED * m * n / WARP
    yield READ, Counts(nbytes=workspace * m * n * field.size, issued=each, global_trips=1, barriers=2, **occupied)
    steps = _tile_steps if tile else _row_steps
    for name, counts in steps(field, plan, m, n):
        yield name, Counts(**counts, threads=threads)


def _part(name, field, warps, products=0, exchanges=0, issued=0, numbers=0, **more):
    """Of one step: multiply-adds, exchanges of numbers, instructions by every warp; numbers by way of shared memory."""
    shuffles = exchanges * field.words
    more["flops"] = 2 * products * WARP * warps
    more["issued"] = warps * (products + SUMMED * shuffles + issued)
    return name, more | {"shuffles": shuffles * warps, "shared_bytes": numbers * WARP * warps * field.size}


def _reflections(field, warps, m, n, exchanged, issued, rounds, trips=0):
    """Both of a step: the sums of all warps come, two chains of scalars, V and U go to memory."""
    kept = (m + n) / (WARP * warps)
    knobs = {"barriers": rounds, "roots": 2, "divisions": 2, "dependent": 2 * SCALARS, "shared_trips": rounds}
    knobs["global_trips"] = trips
    issued += REFLECTION + SAVED * kept
    return _part(REFLECT, field, warps, 0, 0, issued, exchanged, nbytes=(m + n + 4) * field.size, **knobs)


def _tile_steps(field, plan, m, n):
    """The matrix in registers: rows × columns of a lane."""
    warps, down = plan.warps, WARP // plan.across
    high, wide = log2(plan.across), log2(down)
    step = min(down * warps, plan.across)
    for j in range(n):
        done = j // step * step
        rows, columns = plan.rows - done // (down * warps), plan.columns - done // plan.across
        sums = 2 * (rows + 1) if plan.across > 2 * (rows + 2) else (rows + 2) * min(high, 2)
        yield _reflections(field, warps, m, n, (warps > 1) * (warps + 3) + 4 * columns, EDGE * columns, 1 + (warps > 1))
        yield _part(
            ROW_PRODUCT,
            field,
            warps,
            (rows + 2) * columns,
            rows + sums,
            ROW * rows,
            dependent=columns,
            shuffle_trips=2 * high,
        )
        yield _part(UPDATE, field, warps, 2 * rows * columns + 4 * rows, issued=ROW * rows, dependent=4)
        sums = columns * wide
        yield _part(COLUMN_PRODUCT, field, warps, rows * columns, sums, dependent=rows, shuffle_trips=wide)


def _row_steps(field, plan, m, n):
    """Passes over rows in shared memory, or in device memory where columns V and X, `held` at most, are put off."""
    size, warps, held, vector = field.size, plan.warps, plan.held, plans.VECTOR_BYTES // field.size
    lanes, panel = WARP * warps, held // 2
    high, wide, at_once = log2(plan.across), log2(WARP // plan.across), WARP // plan.across * warps
    for j in range(n):
        now = not held or (j + 1) % panel == 0
        off, rounds = 2 * (j % panel) if held else 0, ceil((m - j - 1) / at_once)
        columns = ceil((n - j - 1) / (plan.across * vector)) * vector  # of a lane
        tail = ceil(off / (plan.across * vector)) * vector
        own, passed = (n - j) / lanes, (m - j - 1) * columns * plan.across * size
        trips = 1 + ceil((m - j - 1) / lanes) if held else 0  # row j comes, and column j to be kept
        yield _reflections(field, warps, m, n, own * (warps + off + 4), own * (EDGE + 2 * (warps + off)), 3, trips)
        # W r, whose rows come; the edges of a round
        work = {"dependent": rounds * (columns / vector + 3), "shuffle_trips": rounds * high}
        work |= {"passed": passed, "global_trips": rounds} if held else {"shared_trips": rounds}
        numbers = rounds * columns * (1 if held else 2)
        lines = rounds * (ROUND + columns / vector * (1 if held else 2))
        yield _part(
            ROW_PRODUCT, field, warps, rounds * columns, rounds * high * (1 + bool(held)), lines, numbers, **work
        )
        if now:
            factors = held or 2
            exchanges = rounds * held / SUMMED  # that add nothing
            lines = rounds * columns / vector * (factors + 1)
            work = {"passed": passed} if held else {}
            numbers = rounds * columns * (factors + (0 if held else 1))
            yield _part(UPDATE, field, warps, rounds * columns * factors, exchanges, lines, numbers, **work)
        work = {"dependent": rounds, "shuffle_trips": wide}
        yield _part(COLUMN_PRODUCT, field, warps, rounds * columns, columns * wide, columns, columns / WARP, **work)
        if held and off:
            product = off / warps * (n - j - 1) / WARP  # −[Y U]ᵀ r
            numbers, moved = 2 * product + 2 * rounds * tail, (m - j - 1) * (off + 2) * size
            work = {"nbytes": moved, "barriers": 1, "shared_trips": 1, "shuffle_trips": off / warps * 5}
            yield _part(PUT_OFF, field, warps, product + 3 * rounds * tail, off / warps * 5, product, numbers, **work)
