"""Panels, blocks of one buffer and triangles, met entry by entry, on the CPU: see kernels/skeletonization."""

import numpy as np


def along(a, which, axis, height=None):
    """Entries of stacks picked along an axis, zero where an index is none of it.

        out[b, j] = a[b, which[b, j]]          a (count, n), axis 1
        out[b, i] = a[b, which[b, i]]          a (count, m, n), axis 1
        out[b, i, j] = a[b, i, which[b, j]]    a (count, m, n), axis 2, of the first `height` rows i

    which   (count, k) integers
    """
    a, inside = a[:, :height] if axis == 2 else a, (which >= 0) & (which < a.shape[axis])
    shape = (*which.shape, *[1] * (a.ndim - 2)) if axis == 1 else (len(a), 1, which.shape[1])
    if inside.all():
        return np.take_along_axis(a, which.reshape(shape), axis)
    if not a.shape[axis]:
        return np.zeros([which.shape[1] if k == axis else size for k, size in enumerate(a.shape)], a.dtype)
    found = np.take_along_axis(a, np.where(inside, which, 0).reshape(shape), axis)
    found *= inside.reshape(shape)
    return found


def mask_panels(K, weights):
    """K[b, i, j] times weights[b, i], and zero where weights[b, j] = 0, in place.

    K         (cells, rows, columns), contiguous
    weights   (cells, rows), rows ≥ columns
    """
    K *= weights[:, :, None]
    real = weights[:, : K.shape[2]] != 0
    if not real.all():
        K *= real[:, None, :]


def add_blocks(K, buffer, base, step, slot, real):
    """K[b, i, j] += buffer[base[b, i] + step[b, i] · slot[b, j]] where real[b, j], in place.

    K                        (cells, rows and others, columns)
    base, step, slot, real   (cells, rows), rows ≥ columns; base 0 for no entry
    """
    rows, columns = base.shape[1], K.shape[2]
    address = step[:, :, None] * slot[:, None, :columns]
    address += base[:, :, None]
    address *= real[:, None, :columns] & (base != 0)[:, :, None]
    D = buffer[address]
    D[address == 0] = 0
    K[:, :rows] += D


def subtract_updates(buffer, U, base, step, which, slot):
    """buffer[base[b, i, c] + step[b, i, c] · slot[b, j]] −= U[b, i, j], c = which[b, j], in place.

    U             (cells, rows, rows)
    base, step    (cells, rows, neighbours); base 0 for no entry
    which, slot   (cells, rows)
    """
    entry = which[:, None, :]
    first, step = np.take_along_axis(base, entry, 2), np.take_along_axis(step, entry, 2)
    met = first != 0
    address = first + step * slot[:, None, :]
    buffer[address[met]] -= U[met]


def pack_triangles(L, first, orders, packed):
    """packed[first[b] + i (i + 1) / 2 + j] = L[b, i, j] for j ≤ i < orders[b], in place.

    L               (count, n, n), contiguous
    first, orders   (count,) int64, no order above n
    """
    for A, start, r in zip(L, first.tolist(), orders.tolist()):
        packed[start : start + r * (r + 1) // 2] = A[np.tril_indices(r)]


def unpack_triangles(packed, first, orders, which, L):
    """The same backwards: all of L, whose matrix c is triangle which[c] (c for None), the identity beyond its order."""
    L[...] = np.eye(L.shape[1])
    which = slice(None) if which is None else which
    for A, start, r in zip(L, first[which].tolist(), orders[which].tolist()):
        A[np.tril_indices(r)] = packed[start : start + r * (r + 1) // 2]


def unpack_parts(packed, offset, first, rows, columns, which, out):
    """out[c, first[b] + i, j] = packed[offset[b] + i columns[b] + j], b = which[c] (c itself for None); zero elsewhere.

    offset, first, rows, columns   (matrices,) int64: i < rows[b], j < columns[b]
    out                            (count, m, n), contiguous, every entry of which is written
    """
    out[...] = 0
    which = range(len(out)) if which is None else which.tolist()
    for A, b in zip(out, which):
        start, m, n = int(offset[b]), int(rows[b]), int(columns[b])
        A[first[b] : first[b] + m, :n] = packed[start : start + m * n].reshape(m, n)
