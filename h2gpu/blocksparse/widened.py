"""Panels stored in float32, in float64 in a core's cache: some rows of several streams in turn.

    W[S c + s] = P[C s + c]      c < C, s < S        of the rows of a diagonal block, and of those below it

A core that reads one stream waits for the memory at each new page of it. Of four at a time, 80 million entries in
panels of 640 × 128 take 30 CPU ms, not 43. The vectors that meet W have their rows in its order.
"""

import numpy as np

STREAMS = 4  # 8 are as fast
LONG = 64  # entries of a row from which that pays: with 61 a tenth is gained, with 48 nothing


def in_turn(W, P, diagonal):
    """(target, source) of what to copy, so that W has the rows of P in turn, the first `diagonal` among themselves."""
    pairs = []
    for part in (slice(0, diagonal), slice(diagonal, len(P))):
        w, p = W[part], P[part]
        count = len(p) // STREAMS
        full, n = count * STREAMS, P.shape[1]
        pairs += [
            (w[:full].reshape(count, STREAMS, n), p[:full].reshape(STREAMS, count, n).swapaxes(0, 1)),
            (w[full:], p[full:]),
        ]
    return [(target, source) for target, source in pairs if target.size]


def taken_in_turn(items, stored, dtype):
    """Whether panels of a group, items as in a Plan of h2gpu.blocksparse.cpu, change the order of their rows."""
    return stored != dtype and min(P.shape[1] for P, *_ in items) >= LONG


def row_order(groups, rows, dtype):
    """For each row of all panels as they are multiplied, which it is of those stored: (rows,)."""
    order = np.arange(rows)
    for entries, items in groups:
        if taken_in_turn(items, entries.dtype, dtype):
            for _, _, own, _, after in items:
                stored = np.arange(own.start, own.stop)[:, None]
                copy(in_turn(order[own, None], stored, after.start - own.start))
    return order


def copy(pairs):
    """Target ← source of each pair."""
    for target, source in pairs:
        target[...] = source


def prepared(group, wide):
    """What to copy into `wide` before a group is multiplied, and its items there: as they are where they need not be.

    wide   entries of the vectors' precision, as many as the group has or more
    """
    entries, items = group
    if entries.dtype == wide.dtype:
        return [], items
    turned, pairs, placed, first = taken_in_turn(items, entries.dtype, wide.dtype), [], [], 0
    for P, columns, rows, _, after in items:
        W, diagonal = wide[first : first + P.size].reshape(P.shape), after.start - rows.start
        pairs += in_turn(W, P, diagonal) if turned else []
        placed.append((W, columns, rows, W[diagonal:].T, after))
        first += P.size
    return pairs if turned else [(wide[:first], entries)], placed
