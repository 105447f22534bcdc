"""y = A x for sparse matrices of dense blocks on the CPU, every stored entry read once.

    F_p = P_p x_j      w_j = P_pᵀ z_p, z the rows of x that a panel's rows meet      y = w + G F

P_p are the panels, the stacked blocks of a column; G, of zeros and ones, adds up what belongs to one row of y. All
panels are independent of each other, and threads share them. A panel in float32 that meets vectors of float64 is
widened into a core's cache first, see h2gpu.blocksparse.widened. The calls for a single vector are made beforehand,
with their slices: half of what a small panel takes is their making.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from h2gpu.batched.device.plans import planned
from h2gpu.batched.device.threads import parallel, tapered, thread_count
from h2gpu.blocksparse.widened import copy, prepared, row_order

SIDES_AT_ONCE = 16  # right-hand sides: F of more would outgrow the matrix
GROUP = 1 << 15  # entries that are widened at a time


@dataclass(frozen=True)
class Plan:
    """Panels, and where their operands and results lie.

    tasks      lists of groups: entries that follow one another, and the panels in them, as (panel, its columns in x,
               its rows among all panels, transpose of those rows that meet z, they); rows in the order of W
    entries    of a panel, on average
    met        for every row of every panel, the row of x that it meets transposed; None where nothing is transposed
    sums       G as (rows of it that are not empty, these), or None where all blocks are transposed
    rooms      of `VectorRoom`s that no product uses now
    """

    tasks: list
    entries: float
    met: object
    sums: object
    rooms: list = field(default_factory=list)


def block_multiply(A, x, size, transpose, out):
    """See h2gpu.blocksparse.block_multiply."""
    y = _multiplied(A, x, size, bool(transpose and not A.symmetric))
    if out is None:
        return y
    out += y
    return out


def _multiplied(A, x, size, transpose):
    """The product by itself."""
    if not len(A) or not x.shape[1]:
        return np.zeros((size, x.shape[1]), x.dtype)
    plan = planned(A, (transpose, x.dtype), lambda: make_plan(A, size, transpose, x.dtype))
    if x.shape[1] == 1:
        with taken(plan.rooms, lambda: VectorRoom(plan, len(x), size, x.dtype)) as room:
            return room.product(x[:, 0])[:, None]
    if x.shape[1] <= SIDES_AT_ONCE:
        return _product(plan, np.ascontiguousarray(x), size)
    y = np.empty((size, x.shape[1]), x.dtype)
    for part in few_sides(x):
        y[:, part] = _product(plan, np.ascontiguousarray(x[:, part]), size)
    return y


@contextmanager
def taken(rooms, make):
    """A room of a list for one caller at a time, or a new one: vectors, and calls that work on them."""
    try:
        room = rooms.pop()
    except IndexError:
        room = make()
    yield room
    rooms.append(room)


class VectorRoom:
    """x, z, F and y of products with one vector, and the calls of each task: (copies, calls) of each group."""

    def __init__(self, plan, columns, rows, dtype):
        self.met, self.sums, self.entries = plan.met, plan.sums, plan.entries  # not the plan, which holds us
        self.x, self.y = np.empty(columns, dtype), np.zeros(rows, dtype)
        self.z = None if plan.met is None else np.empty(len(plan.met), dtype)
        self.F = None if plan.sums is None else np.empty(plan.sums[1].shape[1], dtype)
        self.tasks = [self._task(groups) for groups in plan.tasks]

    def product(self, x):
        """A x."""
        self.x[...] = x
        if self.z is not None:
            self.x.take(self.met, out=self.z, mode="clip")  # which, unlike "raise", needs no copy
        parallel(_called, self.tasks, self.entries)
        return _with_sums(self.y.copy(), self.sums, self.F)

    def _task(self, groups):
        wide = _room(groups, self.x.dtype)
        return [self._group(*prepared(group, wide)) for group in groups]

    def _group(self, copies, items):
        calls = []
        for P, columns, rows, transposed, after in items:
            if self.F is not None:
                calls.append((P.dot, self.x[columns], self.F[rows]))
            if self.z is not None and after.stop > after.start:
                calls.append((transposed.dot, self.z[after], self.y[columns]))
        return copies, calls


def _room(groups, dtype):
    """Room for the largest group of a task that is not of this precision."""
    return np.empty(max((entries.size for entries, _ in groups if entries.dtype != dtype), default=0), dtype)


def _called(task):
    """The calls of a task, each group's panels widened before.

    Whole panels, of 2^15 entries or more at a time: 81 million in leaves of 128 take 66 to 67 ms, where groups of 2^17
    take 71 to 74 and of 2^18 87 to 91.
    """
    for copies, calls in task:
        copy(copies)
        for multiply, v, out in calls:
            multiply(v, out)


def few_sides(x):
    """Slices of the columns of x, SIDES_AT_ONCE at a time."""
    return [slice(first, first + SIDES_AT_ONCE) for first in range(0, x.shape[1], SIDES_AT_ONCE)]


def _product(plan, x, size):
    """A x for a few vectors."""
    y = np.zeros((size, x.shape[1]), x.dtype)
    z = None if plan.met is None else x.take(plan.met, axis=0)
    F = None if plan.sums is None else np.empty((plan.sums[1].shape[1], x.shape[1]), x.dtype)

    def run(groups):
        wide = _room(groups, x.dtype)
        for group in groups:
            copies, items = prepared(group, wide)
            copy(copies)
            for P, columns, rows, transposed, after in items:
                if F is not None:
                    np.dot(P, x[columns], out=F[rows])
                if z is not None:
                    np.dot(transposed, z[after], out=y[columns])

    parallel(run, plan.tasks, plan.entries * x.shape[1])
    return _with_sums(y, plan.sums, F)


def _with_sums(y, sums, F):
    """y, to which G F is added, of a Plan's sums."""
    if F is not None:
        rows, G = sums
        if len(rows) == len(y):
            y += G @ F
        else:
            y[rows] += G @ F
    return y


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
    rows = row_order(groups, len(A.panel_rows), dtype)
    return Plan(
        [groups[piece] for piece in tapered(sizes, thread_count())],
        sum(sizes) / max(1, len(items)),
        A.panel_rows[rows] if backward else None,
        _gathering(A, size, rows, dtype) if forward else None,
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


def _gathering(A, size, rows, dtype):
    """G: entry (r, e) is one where row e of all panels adds to row r of y; rows of panels without columns do not.

    rows   their order

    Where few blocks are left of a matrix, as in a check of some rows, most of G's are empty and left out: with them the
    check of 2^17 sites took an eighth longer.
    """
    made = np.flatnonzero(np.repeat(A.panels.columns > 0, A.panels.rows))
    met, some = A.panel_rows[rows[made]], np.zeros(size, bool)
    some[met] = True
    own = np.flatnonzero(some)
    if 2 * len(own) > size:
        own = np.arange(size)
    else:
        met = np.searchsorted(own, met)
    return own, csr_array((np.ones(len(made), dtype), (met, made)), shape=(len(own), len(rows)))
