"""Products with nested matrices on the CPU: see h2gpu.blocksparse.nested.

Matrix by matrix over views made once: for a few right-hand sides that is faster than stacking equal shapes, which
copies the matrices, and threads share what is independent. For a single vector its slices are made once too.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from h2gpu.batched.device.plans import planned
from h2gpu.batched.device.threads import parallel, pieces, thread_count
from h2gpu.blocksparse.cpu import taken

TASKS = 2  # for each thread


@dataclass(frozen=True)
class Plan:
    """Tasks of the outer matrices and of the inner ones of each step, with the entries of a matrix on average.

    tasks   (tasks, entries) of the outer matrices, then of each step's: see _tasks
    rooms   for each precision, lists of `VectorRoom`s that no product uses now
    """

    tasks: list
    rooms: dict = field(default_factory=dict)


def up(N, x, c):
    """See Nested.up."""
    plan = _plan_of(N)
    if x.shape[1] == 1:
        with _room(plan, N, c) as room:
            c[:, 0] = room.up(x[:, 0])
        return c
    x, sides = np.ascontiguousarray(x), x.shape[1]
    for i, (tasks, entries) in enumerate(plan.tasks):
        parallel(partial(_upwards, c if i else x, c), tasks, entries * sides)
    return c


def down_inner(N, c):
    """See Nested.down_inner."""
    plan = _plan_of(N)
    if c.shape[1] == 1:
        with _room(plan, N, c) as room:
            c[:, 0] = room.down_inner(c[:, 0])
        return c
    sums, sides = np.ascontiguousarray(c), c.shape[1]
    for tasks, entries in plan.tasks[:0:-1]:
        parallel(partial(_downwards, sums, sums), tasks, entries * sides)
    if sums is not c:
        c[...] = sums
    return c


def down_outer(N, c, y):
    """See Nested.down_outer."""
    plan = _plan_of(N)
    if c.shape[1] == 1:
        with _room(plan, N, c) as room:
            y[: len(room.y), 0] += room.down_outer(c[:, 0])
        return y
    tasks, entries = plan.tasks[0]
    parallel(partial(_downwards, np.ascontiguousarray(c), y), tasks, entries * c.shape[1])
    return y


def _room(plan, N, c):
    def make():
        return VectorRoom(plan, int((N.outer_rows + N.outer.rows).max(initial=0)), len(c), c.dtype)

    return taken(plan.rooms.setdefault(c.dtype, []), make)


def _upwards(v, c, task):
    for _, transposed, rows, columns in task:
        np.dot(transposed, v[rows], out=c[columns])


def _downwards(c, v, task):
    for P, _, rows, columns in task:
        v[rows] += np.dot(P, c[columns])


class VectorRoom:
    """x, c, what a step adds to it, and y for products with one vector; the calls of each step.

    Rows v_b of one step do not overlap: what is added to them is written, then added for all at once.
    """

    def __init__(self, plan, rows, size, dtype):
        self.x, self.y = np.empty(rows, dtype), np.zeros(rows, dtype)
        self.c, self.sums = np.zeros((2, size), dtype)
        self.ups, self.downs, self.spans = [], [], []
        for i, (tasks, _) in enumerate(plan.tasks):
            items = [item for task in tasks for item in task]
            v, out = (self.c, self.sums) if i else (self.x, self.y)
            self.ups.append([(T.dot, v[rows], self.c[columns]) for _, T, rows, columns in items])
            self.downs.append([(P.dot, self.c[columns], out[rows]) for P, _, rows, columns in items])
            ends = [(rows.start, rows.stop) for _, _, rows, _ in items] if i else []
            self.spans.append(slice(min((a for a, _ in ends), default=0), max((b for _, b in ends), default=0)))

    def up(self, x):
        """c, valid until the next."""
        self.x[...], self.c[...] = x[: len(self.x)], 0
        for calls in self.ups:
            _call(calls)
        return self.c

    def down_inner(self, c):
        """c with its sums over the steps; valid until the next."""
        self.c[...] = c
        for calls, span in zip(self.downs[:0:-1], self.spans[:0:-1]):
            _call(calls)
            self.c[span] += self.sums[span]
            self.sums[span] = 0
        return self.c

    def down_outer(self, c):
        """The products of the outer matrices with c; valid until the next."""
        self.c[...] = c
        _call(self.downs[0])
        return self.y


def _call(calls):
    for multiply, v, out in calls:
        multiply(v, out)


def _plan_of(N):
    return planned(N, "cpu", lambda: Plan(_plan(N)))


def _plan(N):
    steps = [slice(a, b) for a, b in zip(N.bounds[:-1], N.bounds[1:])]
    inner = [_tasks(N.inner[s], N.inner_rows[s], N.inner_columns[s]) for s in steps]
    return [_tasks(N.outer, N.outer_rows, N.outer_columns), *inner]


def _tasks(P, rows, columns):
    """Lists of (P, Pᵀ, rows of v, rows of c), and the entries of a matrix on average."""
    items = [
        (A, A.T, slice(r, r + A.shape[0]), slice(k, k + A.shape[1]))
        for A, r, k in zip(P.matrices(), rows.tolist(), columns.tolist())
        if A.size
    ]
    sizes = [A.size for A, *_ in items]
    return [items[piece] for piece in pieces(sizes, sum(sizes) / (TASKS * thread_count()))], np.mean(sizes or [0])
