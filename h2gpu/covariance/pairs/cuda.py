"""out_b[i, j] = f(X_b[i], Y_b[j]) on the GPU: one kernel, or array operations on pairs of points.

A function that kernels know offers `on_device(dim, dtype)`, which answers with what to compile and to pass, or None:

    .type         C++ type of kernels/covariance/thread/covariance.cuh, such as "Matern<0, Isotropic<2>>"
    .parameters   its numbers, at least one: a host array of the points' precision
    .tables       of more numbers, at most a few: hashable values, whose `entries` go to the device once
    .definitions  C++ texts that the type needs besides
"""

from functools import lru_cache

import cupy
import numpy as np

from h2gpu.batched.copies import join
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.compiler import NAMES, kernel
from h2gpu.batched.device.launch import NULL, Tiling, launch, tiling, upload

THREADS, ROWS = 256, 96  # of a block, also the most columns of its tile; rows of it: 125 in one piece cost 12 % (f64)
PAIR_THREADS, PAIR_RUN = 256, 2048  # of pairs: threads of a block, entries it makes
TABLES = 32  # lists of tables kept on devices: 60 kB each
PAIRS_AT_ONCE = 1 << 23  # pairs whose temporaries exist at a time: some 0.1 GB each in two dimensions


def pairwise(function, X, Y, out):
    """See h2gpu.covariance.pairwise."""
    if not len(out):
        return out
    known = function.on_device(X.bounds[1], X.dtype) if hasattr(function, "on_device") else None
    if known is not None and X.dtype == Y.dtype == out.dtype:
        launch(*prepared(known, X, Y, out))
    else:
        _by_arrays(function, X.on_host(), Y.on_host(), out.on_host())
    return out


def instance(function_type, dtype):
    """The C++ name of the kernel for one function."""
    return f"pairwise<{NAMES[np.dtype(dtype)]}, {THREADS}, {ROWS}, {function_type}>"


def prepared(function, X, Y, out):
    """What `launch` needs to write all blocks at once: the compiled kernel, tiles, threads, arguments."""
    if all(batch.is_placed for batch in (X, Y, out)):
        numbers = X.number(0), Y.number(0), *(out.number(side) for side in range(3))
    else:
        table = upload(X.offsets, Y.offsets, out.offsets, out.rows, out.columns)
        numbers, vars(out)["numbers"] = tuple(table), table[2:]  # which others of `out` need as well
    tiles = tiling(out, (ROWS, THREADS))
    compiled = kernel("covariance/pairwise.cuh", instance(function.type, X.dtype), definitions=function.definitions)
    arguments = X.buffer, Y.buffer, out.buffer, *numbers, *tiles.arguments, *numbers_of(function)
    return compiled, tiles.blocks, THREADS, arguments


def numbers_of(function):
    """The last two arguments of a kernel that evaluates it: tables, and parameters as one struct, passed by value."""
    tables = _on_device(cupy.cuda.Device().id, function.tables) if function.tables else NULL
    return tables, function.parameters.view([("values", function.parameters.dtype, function.parameters.shape)])


@lru_cache(maxsize=TABLES)
def _on_device(device, tables):
    """The entries of tables behind one another on the current device, which is part of the key only."""
    entries = cupy.asarray(np.concatenate([table.entries for table in tables]))
    cupy.cuda.get_current_stream().synchronize()  # other streams read them too
    return entries


def _by_arrays(function, X, Y, out):
    """PAIRS_AT_ONCE pairs at a time, whole matrices."""
    before = offsets_of(out.sizes)
    start = 0
    while start < len(out):
        stop = int(np.searchsorted(before, before[start] + PAIRS_AT_ONCE, side="right")) - 1
        piece = slice(start, max(stop, start + 1))
        _piece_by_arrays(function, X[piece], Y[piece], out[piece])
        start = piece.stop


def _piece_by_arrays(function, X, Y, out):
    count, dim = int(out.sizes.sum()), X.bounds[1]
    if not count:
        return
    x, y = cupy.empty((count, dim), X.dtype), cupy.empty((count, dim), X.dtype)
    runs = -(-out.sizes // PAIR_RUN)
    tiles = Tiling.of(runs)
    table = upload(X.offsets // dim, Y.offsets // dim, out.columns, out.sizes, offsets_of(out.sizes)[:-1])
    points = kernel("copies/pairs.cuh", "pairs", X.dtype, PAIR_THREADS, PAIR_RUN)
    launch(points, tiles.blocks, PAIR_THREADS, (X.buffer, Y.buffer, x, y, dim, *tiles.arguments, *table))
    values = function(x, y)
    if out.is_packed:
        out.entries[...] = values
    else:
        values = cupy.ascontiguousarray(values, out.dtype).reshape(-1)
        join([MatrixBatch(values, offsets_of(out.sizes)[:-1], out.rows, out.columns)], out)
