"""Copies, sums along diagonals and norms on the GPU, by kernels/copies."""

import math
from threading import local

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.direct import Direct
from h2gpu.batched.device.launch import NULL, WARP, Ready, Steps, launch, tables, tiling, upload
from h2gpu.batched.device.plans import remembered

NORM_WARPS = (4, 8)  # of a block
NORM_BYTES = 32 << 10  # of a matrix on average from which they are the more
LISTED = 1024  # matrices whose places are kept on the device
FINITE_THREADS, FINITE_EACH = 256, 16  # of all_finite: threads of a block, entries of a thread at least
SIGN_THREADS, SIGN_EACH = 256, 4  # of signs: threads of a block, numbers of a thread at least
TILE, LINES = 32, 8  # of gather: entries along an edge, rows a pass
SOURCES, SOURCE_WORDS = 32, 4  # of kernels/copies/gather.cuh: batches of a launch at most
_words = local()  # of each thread: memory of the host that kernels write to
_infos = local()  # of each thread: by device, what kernels write of every matrix, where nobody keeps it
INFOS = 1 << 16  # numbers that are kept at most: an array takes 3 µs to be made and given back
SOURCE_TABLE = np.dtype([("words", np.int64, SOURCES * SOURCE_WORDS)])


def gather(A, index, transpose, out):
    """See h2gpu.batched.gather."""
    if not len(out):
        return out
    if index is not None and not np.any(transpose) and _lie_alike(A, index, out):
        out.entries[...] = A.entries
        return out
    tiles = tiling(out, (TILE, TILE))
    if index is None:  # all, some of whose sizes only the device knows
        places = A.number(0), A.number(2), NULL, out.number(0), out.number(1), out.number(2)
    else:
        index = np.asarray(index)
        sources = A.offsets[index], A.columns[index], np.asarray(transpose)
        if out.is_placed:
            places = *upload(*sources), *(out.number(side) for side in range(3))
        else:
            places = upload(*sources, out.offsets, out.rows, out.columns)
            vars(out)["numbers"] = places[3:]  # which others of `out` may need as well
    function = kernel("copies/gather.cuh", "gather", A.dtype, TILE, LINES)
    launch(function, tiles.blocks, TILE * LINES, (A.buffer, out.buffer, *tiles.arguments, *places))
    return out


def _lie_alike(A, index, out):
    """Whether all of A are wanted in their order, and they and `out` are packed and of the same shapes."""
    whole = len(index) == len(A) and not isinstance(out, ResidentBatch) and (index == np.arange(len(A))).all()
    same = whole and (A.rows == out.rows).all() and (A.columns == out.columns).all()
    return same and A.is_packed and out.is_packed


def transposed(A):
    """A_bᵀ, packed."""
    return gather(A, np.arange(len(A)), np.ones(len(A), bool), MatrixBatch.empty(A.columns, A.rows, A.dtype, cupy))


def join(batches, out):
    """See h2gpu.batched.join; as many batches a launch as the kernel takes."""
    whole, (out, *batches) = out, map(_as_reals, (out, *batches))
    MatrixBatch.place(out, *batches)
    first = offsets_of([len(A) for A in batches])
    for i in range(0, len(batches), SOURCES):
        these = batches[i : i + SOURCES]
        part = out if len(these) == len(batches) else out[first[i] : first[i + len(these)]]
        if not len(part):
            continue
        fields = [(A.buffer.data.ptr, A.number(0), A.number(2), k) for A, k in zip(these, first[i:] - first[i])]
        words = [word for a, offsets, pitches, k in fields for word in (a, offsets.data.ptr, pitches.data.ptr, k)]
        words = np.pad(np.array(words, np.int64), (0, SOURCE_WORDS * SOURCES - len(words)))
        tiles, places = tiling(part, (TILE, TILE)), (part.number(side) for side in range(3))
        function = kernel("copies/gather.cuh", "gather_batches", out.dtype, TILE, LINES)
        arguments = words.view(SOURCE_TABLE)[0], len(these), out.buffer, *tiles.arguments, *places
        launch(function, tiles.blocks, TILE * LINES, arguments)
    return whole


def _as_reals(A):
    """The same memory as real matrices: complex numbers as two columns, integers as numbers of as many bytes."""
    if A.dtype.kind == "f":
        return A
    each = 2 if A.dtype.kind == "c" else 1
    numbers, bounds = A.buffer.view(f"f{A.dtype.itemsize // each}"), (A.bounds[0], each * A.bounds[1])
    return MatrixBatch.of(numbers, each * A.offsets, A.rows, each * A.columns, bounds)


def all_finite(A):
    """See h2gpu.batched.copies.all_finite; reads one number back."""
    A, found = cupy.ascontiguousarray(A), cupy.zeros(1, np.int32)
    blocks = -(-A.size // (FINITE_THREADS * FINITE_EACH))
    function = kernel("copies/all_finite.cuh", "find_not_finite", A.dtype)
    launch(function, blocks, FINITE_THREADS, (A, np.int64(A.size), found))
    return not found.get()[0]


def add_to_diagonals(A, d):
    """See h2gpu.batched.copies.add_to_diagonals."""
    number = A.dtype.type(d) if isinstance(d, (int, float, np.generic)) else None
    if isinstance(A, MatrixBatch):
        places, apart, (most, columns) = upload(A.offsets, A.rows), 0, A.bounds
        entries, count = A.buffer, len(A)
    else:
        places, (count, rows, columns) = (NULL, NULL), A.shape
        entries, apart, most = A, rows * columns, columns
    d = NULL if number is not None else cupy.ascontiguousarray(d, A.dtype)
    period, number = (1, number) if number is not None else (d.size, A.dtype.type(0))
    function = kernel("copies/diagonals.cuh", "add_to_diagonals", A.dtype)
    arguments = entries, *places, np.int64(apart), columns, most, np.int64(count), d, np.int64(period), number
    launch(function, -(-count * most // FINITE_THREADS), FINITE_THREADS, arguments)


def signs(info):
    """See h2gpu.batched.copies.signs; nothing is copied: the kernel writes to memory of the host."""
    if not info.size:
        return False, False
    if info.dtype != np.int32 or not info.flags.c_contiguous:
        info = cupy.ascontiguousarray(info, np.int32)
    return told(_signs(info.size).launch, info)


@remembered
def _signs(size):
    """The launch for so many numbers."""
    blocks = -(-size // (SIGN_THREADS * SIGN_EACH))
    ready = Ready(kernel("copies/signs.cuh", "signs"), blocks, SIGN_THREADS, 0, (np.int64(size),))
    return Direct(ready, None, None, (None,))


def told(launch, *arrays):
    """Whether kernels that launch(found, *arrays) starts told of a negative and of a positive verdict; waits for them.

    found   of kernels/common/thread/verdicts.cuh: two numbers, 0 before, that nobody else has meanwhile
    """
    if not hasattr(_words, "found"):
        size = 2 * np.dtype(np.int32).itemsize
        memory = cupy.cuda.alloc_pinned_memory(size)
        place = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(memory.ptr, size, memory, 0), 0)
        _words.found, _words.place = memoryview(np.frombuffer(memory, np.int32, 2)), cupy.ndarray((2,), np.int32, place)
    found = _words.found
    found[0] = found[1] = 0  # whoever wrote before has been waited for
    try:
        launch(_words.place, *arrays)
    finally:  # an interrupt between the two would leave a kernel that writes later
        cupy.cuda.get_current_stream().synchronize()
    return bool(found[0]), bool(found[1])


def spare_info(count):
    """At least so many int32 on the current device, this thread's until `told` has waited and the next one asks."""
    if count > INFOS:
        return cupy.ndarray((count,), np.int32)
    device, kept = cupy.cuda.runtime.getDevice(), _infos.__dict__
    if device not in kept:
        kept[device] = cupy.ndarray((INFOS,), np.int32)
    return kept[device]


def frobenius_norms(A):
    """See h2gpu.batched.frobenius_norms."""
    return _norms(A, False)


def rounding_errors(A):
    """See h2gpu.batched.rounding_errors."""
    return _norms(A, True)


def _norms(A, of_rounding):
    norms = cupy.empty(len(A), np.float64)
    if not len(A):
        return norms
    if isinstance(A, MatrixBatch):
        entries, places = A.buffer, [A.number(side) for side in range(3)]
    else:
        entries, size = cupy.ascontiguousarray(A), math.prod(A.shape[1:])
        places = _lists(len(A), size)
    norms_plan(A.dtype, len(A), norm_warps(entries.nbytes, len(A)), of_rounding)(entries, *places, norms)
    return norms


def norm_warps(size, batch):
    """Warps of a block for matrices of so many bytes in all.

    Eight keep 64 KB a multiprocessor under way where 500 matrices of 128² are read, twice what four do.
    """
    return NORM_WARPS[size >= NORM_BYTES * batch]


@remembered
def norms_plan(dtype, batch, warps, of_rounding):
    """The launch for so many matrices."""
    function = kernel("copies/frobenius_norms.cuh", "frobenius_norms", dtype, warps, of_rounding)
    return Ready(function, batch, warps * WARP, 0, ())


def _lists(batch, size):
    """Where matrices of so many entries begin, and their shapes: a column each."""
    return tables(batch, [Steps(size), size, 1])[0]


@remembered
def kept_lists(batch, size):
    """The same, done when it is remembered: other streams will read it."""
    places = _lists(batch, size)
    cupy.cuda.get_current_stream().synchronize()
    return places
