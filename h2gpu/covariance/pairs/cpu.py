"""Function values at all pairs of points by array operations, on the threads of this process."""

import numpy as np

from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.batched.device.stacks import WORK_PER_TASK
from h2gpu.batched.device.threads import parallel, pieces

PANEL_ENTRIES = 1 << 17  # pairs evaluated at a time: their few temporaries stay in a core's cache


def pairwise(function, X, Y, out):
    """out_b[i, j] = function(X_b[i], Y_b[j]): consecutive blocks of one column in one call.

    What a call needs is looked up for all at once: a panel of a few blocks takes less time than its making took.
    """
    if not len(out):
        return out
    dim = X.columns[0]
    points, others = X.buffer.reshape(-1, dim), Y.buffer.reshape(-1, dim)
    row, entry, apart = ranges(X.offsets // dim, out.rows), offsets_of(out.sizes), np.diff(out.offsets) - out.sizes[:-1]
    begins = [np.diff(sides, prepend=-1) for sides in (Y.offsets, Y.rows)]
    firsts = np.append(np.flatnonzero(begins[0] | begins[1] | np.append(0, apart)), len(out))
    heads = firsts[:-1]
    table = offsets_of(out.rows)[firsts], out.offsets[heads], Y.offsets[heads] // dim, Y.rows[heads]
    before, places, starts, columns = (part.tolist() for part in table)
    into = function.into if hasattr(function, "into") else lambda x, y, target: np.copyto(target, function(x, y))

    def run(piece):
        for g in range(piece.start, piece.stop):
            n, first = columns[g], before[g]
            y, most = others[None, starts[g] : starts[g] + n], max(1, PANEL_ENTRIES // max(1, n))
            for r in range(first, before[g + 1], most):
                x = points.take(row[r : min(r + most, before[g + 1])], axis=0)  # a sixth of the time of indexing
                place = places[g] + (r - first) * n
                into(x[:, None], y, out.buffer[place : place + len(x) * n].reshape(len(x), n))

    parallel(run, pieces(np.diff(entry[firsts]), WORK_PER_TASK))
    return out
