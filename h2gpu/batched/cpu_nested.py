"""Products with nested matrices on the CPU: see h2gpu.batched.nested.

Matrix by matrix over views made once: for a few right-hand sides that is faster than stacking equal shapes, which
copies the matrices, and threads share what is independent.
"""

from functools import partial

import numpy as np

from h2gpu.batched.cpu_blocksparse import columns_of, few_sides
from h2gpu.batched.plans import planned
from h2gpu.batched.threads import parallel, pieces, thread_count

TASK_ENTRIES = 1 << 16  # of matrices, at least: a task costs some 50 µs


def up(N, x, c):
    """See Nested.up."""
    outer, steps = planned(N, "cpu", lambda: _plan(N))
    for part in few_sides(x):
        v, sums = columns_of(x, part), columns_of(c, part)
        parallel(partial(_upwards, v, sums), outer)
        for step in steps:
            parallel(partial(_upwards, sums, sums), step)
        c[:, part] = sums.reshape(c[:, part].shape)
    return c


def down(N, c, y):
    """See Nested.down."""
    outer, steps = planned(N, "cpu", lambda: _plan(N))
    for part in few_sides(c):
        sums, v = columns_of(c, part), columns_of(y, part)
        for step in reversed(steps):
            parallel(partial(_downwards, sums, sums), step)
        parallel(partial(_downwards, sums, v), outer)
        y[:, part] = v.reshape(y[:, part].shape)
    return y


def _upwards(v, c, task):
    for _, transposed, rows, columns in task:
        np.dot(transposed, v[rows], out=c[columns])


def _downwards(c, v, task):
    for P, _, rows, columns in task:
        v[rows] += np.dot(P, c[columns])


def _plan(N):
    """Tasks of the outer matrices, and of the inner ones of each step: lists of (P, Pᵀ, rows of v, rows of c)."""
    outer = _tasks(N.outer, N.outer_rows, N.outer_columns)
    steps = [slice(a, b) for a, b in zip(N.bounds[:-1], N.bounds[1:])]
    return outer, [_tasks(N.inner[s], N.inner_rows[s], N.inner_columns[s]) for s in steps]


def _tasks(P, rows, columns):
    items = [
        (A, A.T, slice(r, r + A.shape[0]), slice(k, k + A.shape[1]))
        for A, r, k in zip(P.matrices(), rows.tolist(), columns.tolist())
        if A.size
    ]
    sizes = [A.size for A, *_ in items]
    return [items[piece] for piece in pieces(sizes, max(TASK_ENTRIES, sum(sizes) / (2 * thread_count())))]
