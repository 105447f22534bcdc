"""Function values at all pairs of points by array operations, on the threads of this process."""

import numpy as np

from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.batched.device.stacks import WORK_PER_TASK
from h2gpu.batched.device.threads import parallel, pieces

PANEL_ENTRIES = 1 << 17  # pairs evaluated at a time: their few temporaries stay in a core's cache


def pairwise(function, X, Y, out):
    """out_b[i, j] = function(X_b[i], Y_b[j]): consecutive blocks of one column in one call."""
    if not len(out):
        return out
    dim = X.columns[0]
    points, starts = X.buffer.reshape(-1, dim), X.offsets // dim
    firsts = np.flatnonzero(np.diff(Y.offsets, prepend=-1) | np.diff(Y.rows, prepend=-1))
    firsts = np.append(firsts, len(out))

    def panel(first, stop):
        Z = Y[first]
        for piece in pieces(out.sizes[first:stop], PANEL_ENTRIES):
            blocks = slice(first + piece.start, first + piece.stop)
            x = points.take(ranges(starts[blocks], out.rows[blocks]), axis=0)  # a sixth of the time of indexing
            target = out[blocks].entries.reshape(len(x), len(Z))
            if hasattr(function, "into"):
                function.into(x[:, None, :], Z[None, :, :], target)
            else:
                target[...] = function(x[:, None, :], Z[None, :, :])

    def run(piece):
        for g in range(piece.start, piece.stop):
            panel(firsts[g], firsts[g + 1])

    parallel(run, pieces(np.diff(offsets_of(out.sizes)[firsts]), WORK_PER_TASK))
    return out
