"""out_b[i, j] = f(X[x_start_b + i], Y[y_start_b + j]) on the GPU: one kernel, or array operations on pairs of points.

A function that kernels know offers `on_device(dim, dtype)`, which answers with what to compile and to pass, or None:

    .type         C++ type of kernels/thread/covariance.cuh, such as "Matern<0, Isotropic<2>>"
    .parameters   its numbers, at least one: a host array of the points' precision
"""

import cupy
import numpy as np

from h2gpu.batched.launch import launch, tile_count, tile_owners, upload
from h2gpu.batched.modules import NAMES, kernel
from h2gpu.batched.ragged import offsets_of, ranges

THREADS, ROWS = 256, 96  # of a block, also the most columns of its tile; rows of it: 125 in one piece cost 12 % (f64)
MOST_POINTS = 1 << 31  # of the kernel: starts travel as int
PAIR_THREADS, PAIR_RUN = 256, 2048  # of pairs: threads of a block, entries it makes
PAIRS_AT_ONCE = 1 << 23  # pairs whose temporaries exist at a time: some 0.1 GB each in two dimensions


def pairwise(function, X, Y, x_starts, y_starts, out):
    """See h2gpu.batched.pairwise."""
    X, Y = cupy.ascontiguousarray(X), cupy.ascontiguousarray(Y)
    x_starts, y_starts = np.asarray(x_starts), np.asarray(y_starts)
    known = function.on_device(X.shape[1], X.dtype) if hasattr(function, "on_device") else None
    if known is not None and X.dtype == Y.dtype == out.dtype and max(len(X), len(Y)) < MOST_POINTS:
        launch(*prepared(known, X, Y, x_starts, y_starts, out))
        return out
    return _by_arrays(function, X, Y, x_starts, y_starts, out)


def instance(function_type, dtype):
    """The C++ name of the kernel for one function."""
    return f"pairwise<{NAMES[np.dtype(dtype)]}, {THREADS}, {ROWS}, {function_type}>"


def prepared(function, X, Y, x_starts, y_starts, out):
    """What `launch` needs to write all blocks at once: the compiled kernel, tiles, threads, arguments."""
    shapes = np.empty((len(out), 4), np.int32)
    for column, values in enumerate((x_starts, y_starts, out.rows, out.columns)):
        shapes[:, column] = values
    tiles = tile_count(out.rows, ROWS) * tile_count(out.columns, THREADS)
    first = owner = None
    if (tiles != 1).any():
        (first,) = upload(offsets_of(tiles))
        owner = tile_owners(tiles, first)
    numbers = function.parameters.view([("values", X.dtype, function.parameters.shape)])  # one struct, passed by value
    arguments = X, Y, out.buffer, cupy.asarray(shapes), cupy.asarray(out.offsets), first, owner, numbers
    return kernel("batched/pairwise.cuh", instance(function.type, X.dtype)), tiles.sum(), THREADS, arguments


def _by_arrays(function, X, Y, x_starts, y_starts, out):
    """PAIRS_AT_ONCE pairs at a time, whole matrices."""
    before = offsets_of(out.sizes)
    start = 0
    while start < len(out):
        stop = int(np.searchsorted(before, before[start] + PAIRS_AT_ONCE, side="right")) - 1
        piece = slice(start, max(stop, start + 1))
        _piece_by_arrays(function, X, Y, x_starts[piece], y_starts[piece], out[piece])
        start = piece.stop
    return out


def _piece_by_arrays(function, X, Y, x_starts, y_starts, out):
    count, dim = int(out.sizes.sum()), X.shape[1]
    if not count:
        return
    x, y = cupy.empty((count, dim), X.dtype), cupy.empty((count, dim), X.dtype)
    runs = -(-out.sizes // PAIR_RUN)
    first, *table = upload(offsets_of(runs), x_starts, y_starts, out.columns, out.sizes, offsets_of(out.sizes)[:-1])
    owner = tile_owners(runs, first)
    points = kernel("batched/pairs.cuh", "pairs", X.dtype, PAIR_THREADS, PAIR_RUN)
    launch(points, len(owner), PAIR_THREADS, (X, Y, x, y, dim, first, owner, *table))
    values = function(x, y)
    if out.is_packed:
        out.entries[...] = values
    else:
        out.buffer[cupy.asarray(ranges(out.offsets, out.sizes))] = values
