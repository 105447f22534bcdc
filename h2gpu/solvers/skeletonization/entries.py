"""Panels, and blocks of one buffer, met entry by entry, on the CPU: see kernels/skeletonization/changes.cuh."""

import numpy as np


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
