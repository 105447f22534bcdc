"""Which threads hold which entries of a matrix in registers, for kernels/qr/block/register_qr.cuh: no GPU needed.

Columns are cyclic over the warps of a block, rows over the lanes of a warp.
"""

from functools import lru_cache

import numpy as np

from h2gpu.batched.core.checks import RESIDENT

WARP = 32
LARGEST = RESIDENT  # rows and columns that are held in registers
SLOT_BYTES = 256  # of a lane's registers, for the columns it holds a part of
LARGEST_SLOTS = 16  # such columns
WARPS = (1, 2, 4, 6, 8, 12, 16)  # of a block: instances are compiled for these
LANE_WORDS, OTHER_WORDS = 128, 48  # registers a lane has at most, and those besides its columns
BLOCK_WORDS = 1 << 16  # registers of a multiprocessor


def held_bytes(dtype, rows, columns):
    """Shared memory that a matrix held in registers passes through: columns, an odd number of entries apart."""
    return (rows | 1) * columns * dtype.itemsize


def shape_keys(dtype, rows, columns):
    """(2, sizes): rows of a lane and warps of a block that hold a matrix in registers; too many rows: none do."""
    rows = np.maximum(1, -(-rows // WARP))
    warps = np.searchsorted(WARPS, -(-columns // _slots(dtype, rows)))
    large = (rows > LARGEST // WARP) | (columns > LARGEST)
    return np.stack([np.where(large, LARGEST // WARP + 1, rows), np.append(WARPS, 0)[np.where(large, -1, warps)]])


def _slots(dtype, rows):
    """Columns of which a lane holds `rows` entries: the largest power of two within SLOT_BYTES, at least one."""
    entries = np.maximum(1, SLOT_BYTES // (rows * dtype.itemsize))
    return np.minimum(LARGEST_SLOTS, 1 << np.log2(entries).astype(np.int64))


@lru_cache
def instance_of(dtype, rows, warps):
    """Template arguments that hold columns in registers, and blocks that a multiprocessor has registers for."""
    slots = int(_slots(dtype, np.int64(rows)))
    words = min(LANE_WORDS, slots * rows * (dtype.itemsize // 4) + OTHER_WORDS)
    return (dtype, rows, slots, warps), max(1, BLOCK_WORDS // (warps * WARP * words))
