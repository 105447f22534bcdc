"""Matrices that lie anywhere in memory, told by their addresses, as offsets in one buffer that spans them.

    offsets[b] = (pointers[b] − base) / itemsize,   base the first entry of the lowest owner with a matrix

What a kernel takes is a base and offsets: where it lies between the owners it is never read, for the buffer is a view
of addresses, not of memory that anybody allocated. An address is trusted only where its whole matrix lies in an owner.
Dong et al. (2018): batched routines take arrays of pointers.
"""

import numpy as np

from h2gpu.arrays import array_module, as_array, to_host
from h2gpu.texts import brief

KINDS = (np.float32, np.float64, np.complex64, np.complex128)


def spanned(pointers, rows, columns, owners, dtype):
    """Buffer, offsets, rows and columns for `MatrixBatch.from_pointers`, which says what they are."""
    owners = [as_array(A) for A in (owners if isinstance(owners, (list, tuple)) else [owners])]
    dtype = _checked_owners(owners, dtype)
    pointers = _integers("pointers", pointers)
    if pointers.ndim != 1:
        raise ValueError(f"pointers: expected shape (batch,), got {pointers.shape}")
    rows, columns = (_sizes(name, side, len(pointers)) for name, side in (("rows", rows), ("columns", columns)))
    starts, ends = _extents(owners)
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    some, item = (rows > 0) & (columns > 0), dtype.itemsize
    first = pointers.astype(np.int64)  # addresses beyond 2⁶³ become negative: in no owner
    place = np.searchsorted(starts, first, side="right") - 1
    room = np.where(place >= 0, reach[place] - first, 0).clip(0) // item  # entries up to the owner's end
    _check(
        "in one of the owners", some & ((room < 1) | (columns > room // np.maximum(rows, 1))), pointers, rows, columns
    )
    _check(f"at a multiple of {item} bytes", some & (first % item != 0), pointers, rows, columns)
    base = -(-int(starts[place[some]].min(initial=np.iinfo(np.int64).max)) // item) * item if some.any() else 0
    offsets = np.where(some, (first - base) // item, 0)
    count = int((offsets + rows * columns)[some].max(initial=0))
    return _view(base, count, dtype, owners), offsets, rows, columns


def addresses(buffer, offsets):
    """Those of the entries at offsets of a buffer, uint64, where the offsets are."""
    start = buffer.ctypes.data if isinstance(buffer, np.ndarray) else buffer.data.ptr
    return (offsets * buffer.dtype.itemsize + start).astype(np.uint64)


def _checked_owners(owners, dtype):
    """The type of the entries; ValueError unless owners are contiguous arrays of one device, and agree on it."""
    if not owners:
        raise ValueError("owners: expected the arrays that hold the matrices, got none")
    devices = {(array_module(A), None if array_module(A) is np else A.device.id) for A in owners}
    if len(devices) > 1:
        raise ValueError("owners: expected arrays of one device, got arrays of several")
    for A in owners:
        if not (A.flags.c_contiguous or A.flags.f_contiguous):
            raise ValueError(
                f"owners: expected contiguous arrays, got one of strides {A.strides}; pass what it is a view of"
            )
    kinds = {A.dtype for A in owners} if dtype is None else {np.dtype(dtype)}
    if len(kinds) > 1 or next(iter(kinds)).type not in KINDS or not next(iter(kinds)).isnative:
        names = ", ".join(sorted(map(str, kinds)))
        raise ValueError(f"dtype: expected one of float32, float64, complex64 and complex128 for all, got {names}")
    return kinds.pop()


def _integers(name, values):
    """Integers on the host."""
    values = to_host(as_array(values))
    if values.dtype.kind not in "iu" and values.size:
        raise ValueError(f"{name}: expected integers, got {brief(values)} of {values.dtype}")
    return values


def _sizes(name, values, count):
    """(count,) int64, ≥ 0."""
    values = _integers(name, values)
    if values.shape not in ((), (count,)) or (values.size and int(values.min()) < 0):
        raise ValueError(f"{name}: expected an integer ≥ 0 or {count} of them, one a pointer, got {brief(values)}")
    return np.broadcast_to(values, count).astype(np.int64)


def _extents(owners):
    """Where the memory of each owner begins and ends, bytes, (owners,) int64 each."""
    starts = np.array([A.ctypes.data if isinstance(A, np.ndarray) else A.data.ptr for A in owners], np.int64)
    return starts, starts + np.array([A.nbytes for A in owners], np.int64)


def _check(what, bad, pointers, rows, columns):
    """ValueError naming the first matrix of which something expected is not so."""
    if bad.any():
        b = int(np.argmax(bad))
        found = f"{rows[b]} × {columns[b]} at {int(pointers[b]):#x}"
        raise ValueError(f"pointers: expected every matrix {what}, got matrix {b}, {found}")


def _view(base, count, dtype, owners):
    """(count,) entries from the address base on, an array where the owners are, which it keeps alive."""
    xp = array_module(owners[0])
    if not count:
        return xp.empty(0, dtype)
    if xp is np:
        return np.asarray(_HostSpan(base, count, dtype, owners))
    memory = xp.cuda.UnownedMemory(base, count * dtype.itemsize, owners, owners[0].device.id)
    return xp.ndarray((count,), dtype, xp.cuda.MemoryPointer(memory, 0))


class _HostSpan:
    """What NumPy asks for to make an array of addresses: the array keeps this, and this the owners."""

    def __init__(self, base, count, dtype, owners):
        read_only = not all(A.flags.writeable for A in owners)
        self.__array_interface__ = {"data": (base, read_only), "shape": (count,), "typestr": dtype.str, "version": 3}
        self.owners = owners
