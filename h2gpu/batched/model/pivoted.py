"""Counts of the two launches of pivoted QR: kernels/qr/pivoted_qr.cuh, and kernels/qr/reflectors.cuh for Q.

One problem a block, in the registers of its warps; every step waits for the one before. Instructions and cycles are
those of the machine code for sm_90, along the path of the warp that has the pivot's column: shared memory at 30 cycles,
shuffles at 25, roots and reciprocals at 22, 8 for a branch taken. A step has two barriers, two reductions by integers
(the largest norm), three exchanges by shared memory (keys; the column and row j; factors), sums over lanes by halves,
a root and a reciprocal, and sends the pivot's column by a comparison and a store in turn for each entry of a lane.
"""

from math import ceil

import numpy as np

from h2gpu.batched.model.counts import WARP, Counts, Field
from h2gpu.batched.qr.register_columns import LANE_WORDS, OTHER_WORDS, instance_of, shape_keys

FAR = 4  # lines of A that a warp asks for at a time, FewLines of kernels/common/block/workspace.cuh
BARRIER = 16  # cycles of one among those below: barriers are counted by themselves
# cycles of a step and, beside two for each entry of a lane, instructions of a warp; by words of a number
STEP, STEP_ISSUED = {1: (735, 31), 2: (1130, 0)}, {1: 185, 2: 250}  # and cycles for each row of a lane
SENT, SENT_ISSUED, OWN_ISSUED = {1: 17, 2: 24}, {1: 4, 2: 7}, 45  # more of the pivot's warp for each entry of a lane
APPLIED, APPLIED_ISSUED = {1: 300, 2: 370}, {1: 110, 2: 165}  # of a reflector to Q: waits, not cycles in all
# waits and instructions beside steps, of …
GROUP = (187, 118)  # FAR lines of A
LINE = (85, 25)  # a column that is scaled, each row of a lane
STORED = (67, 17)  # an entry of R
OUT = (75, 35)  # a row of Q
BEGUN, SQUARES = (1080, 430), 150  # a block; more waits for each word of a number
HELD = (900, 3)  # its entries: a branch each where a lane has one row
FORMED = (300, 900, 250, 8)  # Q: waits of a block, the same of branches; instructions, and for each entry


def pivoted_qr(dtype, m, n):
    """(Counts, Counts) of V, τ, R and pivots, and of Q from V: m × n of full rank, at most 128 each."""
    dtype, k = np.dtype(dtype), min(m, n)
    return _factored(dtype, m, n, k, *_held(dtype, m, n)), _formed(dtype, m, k, *_held(dtype, m, k))


def _held(dtype, m, n):
    """Rows of a lane, columns of a warp, warps."""
    (_, *grid), _ = instance_of(dtype, *map(int, shape_keys(dtype, np.int64(m), np.int64(n))))
    return grid


def _occupied(field, rows, slots, warps):
    return {"threads": warps * WARP, "words": min(LANE_WORDS, rows * slots * field.words + OTHER_WORDS)}


def _factored(dtype, m, n, k, rows, slots, warps):
    field, entries = Field.of(dtype), rows * slots
    step, row = STEP[field.words]
    own = OWN_ISSUED + SENT_ISSUED[field.words] * entries
    issued = STEP_ISSUED[field.words] + 2 * entries
    waits = step + row * rows + SENT[field.words] * entries - issued - own - 2 * BARRIER
    groups, lines = ceil(m / (FAR * warps)) * ceil(n / WARP), ceil(n / warps) * rows
    beside = BEGUN[1] + GROUP[1] * groups + LINE[1] * lines + (HELD[1] + STORED[1]) * entries
    stalls = BEGUN[0] + SQUARES * field.words + HELD[0] / rows
    stalls += GROUP[0] * groups + LINE[0] * lines + STORED[0] * entries
    return Counts(
        flops=2 * k * (2 * entries + 2 * rows) * warps * WARP,
        nbytes=(m * n + k * n + m * k + k) * field.size,
        shared_bytes=k * (2 * rows + slots) * warps * WARP * field.size,
        shuffles=k * (slots + 5) * field.words * warps,
        issued=k * (warps * issued + own) + warps * beside,
        barriers=2 * k + 5,
        global_trips=3 + groups,  # sizes; places; what is allowed; lines
        stalls=k * waits + stalls,
        **_occupied(field, rows, slots, warps),
    )


def _formed(dtype, m, k, rows, slots, warps):
    field, entries, lines = Field.of(dtype), rows * slots, ceil(m / warps)
    issued = APPLIED_ISSUED[field.words] + 2 * entries
    block, branches, begun, each = FORMED
    return Counts(
        flops=2 * k * 2 * entries * warps * WARP,
        nbytes=(2 * m * k + k) * field.size,
        shared_bytes=k * (rows + slots) * warps * WARP * field.size,
        shuffles=k * slots * field.words * warps,
        issued=warps * (k * issued + begun + each * entries + OUT[1] * lines),
        barriers=1,
        global_trips=3,  # sizes; places; the last reflector: others come while one is applied
        stalls=k * APPLIED[field.words] + block + branches / rows + OUT[0] * lines,
        **_occupied(field, rows, slots, warps),
    )
