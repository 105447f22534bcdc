"""Products with nested matrices on the CPU: see h2gpu.blocksparse.nested.

Matrix by matrix over views made once: for a few right-hand sides that is faster than stacking equal shapes, which
copies the matrices, and threads share what is independent.
"""

from functools import partial

import numpy as np

from h2gpu.batched.device.plans import planned
from h2gpu.batched.device.threads import parallel, pieces, thread_count
from h2gpu.blocksparse.cpu import columns_of, few_sides

TASKS = 2  # for each thread


def up(N, x, c):
    """See Nested.up."""
    outer, steps = planned(N, "cpu", lambda: _plan(N))
    for part in few_sides(x):
        v, sums = columns_of(x, part), columns_of(c, part)
        _run(partial(_upwards, v, sums), outer, v)
        for step in steps:
            _run(partial(_upwards, sums, sums), step, v)
        c[:, part] = sums.reshape(c[:, part].shape)
    return c


def down(N, c, y):
    """See Nested.down."""
    outer, steps = planned(N, "cpu", lambda: _plan(N))
    for part in few_sides(c):
        sums, v = columns_of(c, part), columns_of(y, part)
        for step in reversed(steps):
            _run(partial(_downwards, sums, sums), step, v)
        _run(partial(_downwards, sums, v), outer, v)
        y[:, part] = v.reshape(y[:, part].shape)
    return y


def _run(work, tasks, v):
    tasks, entries = tasks
    parallel(work, tasks, entries * (1 if v.ndim == 1 else v.shape[1]))


def _upwards(v, c, task):
    for _, transposed, rows, columns in task:
        np.dot(transposed, v[rows], out=c[columns])


def _downwards(c, v, task):
    for P, _, rows, columns in task:
        v[rows] += np.dot(P, c[columns])


def _plan(N):
    """Tasks of the outer matrices, and of the inner ones of each step: see _tasks."""
    outer = _tasks(N.outer, N.outer_rows, N.outer_columns)
    steps = [slice(a, b) for a, b in zip(N.bounds[:-1], N.bounds[1:])]
    return outer, [_tasks(N.inner[s], N.inner_rows[s], N.inner_columns[s]) for s in steps]


def _tasks(P, rows, columns):
    """Lists of (P, Pᵀ, rows of v, rows of c), and the entries of a matrix on average."""
    items = [
        (A, A.T, slice(r, r + A.shape[0]), slice(k, k + A.shape[1]))
        for A, r, k in zip(P.matrices(), rows.tolist(), columns.tolist())
        if A.size
    ]
    sizes = [A.size for A, *_ in items]
    return [items[piece] for piece in pieces(sizes, sum(sizes) / (TASKS * thread_count()))], np.mean(sizes or [0])
