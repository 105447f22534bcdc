"""y = A x for sparse matrices of dense blocks on the CPU, every stored entry read once.

    F_p = P_p x_j      w_j = P_pᵀ z_p, z the rows of x that a panel's rows meet      y = w + G F

P_p are the panels, the stacked blocks of a column; G, of zeros and ones, adds up what belongs to one row of y. All
panels are independent of each other, and threads share them. A panel in float32 that meets vectors of float64 is
widened into a core's cache first.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from h2gpu.batched.device.plans import planned
from h2gpu.batched.device.threads import parallel, pieces, thread_count

SIDES_AT_ONCE = 16  # right-hand sides: F of more would outgrow the matrix
GROUP = 1 << 17  # entries that are widened at a time
TASKS = 4  # for each thread, so that they end at about the same time


@dataclass(frozen=True)
class Plan:
    """Panels, and where their operands and results lie.

    tasks      lists of groups: entries that follow one another, and the panels in them, as (panel, its columns in x,
               its rows among all panels, transpose of those rows that meet z, they)
    entries    of a panel, on average
    met        for every row of every panel, the row of x that it meets transposed; None where nothing is transposed
    gathering  G, or None where all blocks are transposed
    """

    tasks: list
    entries: float
    met: object
    gathering: object


def block_multiply(A, x, size, transpose):
    """See h2gpu.blocksparse.block_multiply."""
    y = np.zeros((size, x.shape[1]), x.dtype)
    if len(A):
        transpose = bool(transpose and not A.symmetric)
        plan = planned(A, (transpose, x.dtype), lambda: make_plan(A, size, transpose, x.dtype))
        for part in few_sides(x):
            y[:, part] = _product(plan, columns_of(x, part), size).reshape(y[:, part].shape)
    return y


def few_sides(x):
    """Slices of the columns of x, SIDES_AT_ONCE at a time."""
    return [slice(first, first + SIDES_AT_ONCE) for first in range(0, x.shape[1], SIDES_AT_ONCE)]


def columns_of(x, part):
    """Some columns of x, C-contiguous; a vector where it is one, which BLAS multiplies with the least ado."""
    x = np.ascontiguousarray(x[:, part])
    return x[:, 0] if x.shape[1] == 1 else x


def _product(plan, x, size):
    """A x for a vector or a few."""
    y = np.zeros((size, *x.shape[1:]), x.dtype)
    z = None if plan.met is None else x.take(plan.met, axis=0)
    F = None if plan.gathering is None else np.empty((plan.gathering.shape[1], *x.shape[1:]), x.dtype)

    def run(task):
        for P, columns, rows, transposed, after in _widened(task, x.dtype):
            if F is not None:
                np.dot(P, x[columns], out=F[rows])
            if z is not None:
                np.dot(transposed, z[after], out=y[columns])

    parallel(run, plan.tasks, plan.entries * (1 if x.ndim == 1 else x.shape[1]))
    if F is not None:
        y += plan.gathering @ F
    return y


def _widened(task, dtype):
    """The items of a task, their panels in this precision: valid until the next.

    They are copied before they are widened: measured, NumPy streams 0.14 ns an entry when it copies, 0.42 when it
    converts, and converts 0.13 in the cache.
    """
    for entries, items in task:
        if entries.dtype == dtype:
            yield from items
            continue
        wide, first = entries.copy().astype(dtype), 0
        for P, columns, rows, _, after in items:
            W = wide[first : first + P.size].reshape(P.shape)
            yield W, columns, rows, W[after.start - rows.start :].T, after
            first += P.size


def make_plan(A, size, transpose, dtype):
    """The panels in about equal tasks, and the rows that they meet and make."""
    forward, backward = A.symmetric or not transpose, A.symmetric or transpose
    x_first, row_first, diagonal = (part.tolist() for part in A.panel_firsts)
    items, offsets = [], []
    for P, x0, r0, d, offset in zip(A.panels.matrices(), x_first, row_first, diagonal, A.panels.offsets.tolist()):
        m, n = P.shape
        d = d if A.symmetric else 0
        if m and n:
            items.append((P, slice(x0, x0 + n), slice(r0, r0 + m), P[d:].T, slice(r0 + d, r0 + m)))
            offsets.append(offset)
    groups = _groups(A.panels.buffer, items, offsets)
    sizes = [entries.size for entries, _ in groups]
    tasks = [groups[piece] for piece in pieces(sizes, sum(sizes) / (TASKS * thread_count()))]
    return Plan(
        tasks,
        sum(sizes) / max(1, len(items)),
        A.panel_rows if backward else None,
        _gathering(A, size, dtype) if forward else None,
    )


def _groups(buffer, items, offsets):
    """Items whose panels follow one another in memory, about GROUP entries of them at a time: (entries, items)."""
    groups, start = [], 0
    for i, (P, *_) in enumerate(items):
        stop = offsets[i] + P.size
        if i + 1 == len(items) or offsets[i + 1] != stop or stop - offsets[start] >= GROUP:
            groups.append((buffer[offsets[start] : stop], items[start : i + 1]))
            start = i + 1
    return groups


def _gathering(A, size, dtype):
    """G: entry (r, e) is one where row e of all panels adds to row r of y; rows of panels without columns do not."""
    made = np.flatnonzero(np.repeat(A.panels.columns > 0, A.panels.rows))
    shape = size, len(A.panel_rows)
    return csr_array((np.ones(len(made), dtype), (A.panel_rows[made], made)), shape=shape)
