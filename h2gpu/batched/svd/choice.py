"""Which kernel of h2gpu.batched.svd.jacobi decomposes matrices of a size, and the shared memory that it takes.

The device's tuning table chooses among the methods that can do a size. workspace_bytes and triangle_bytes repeat what
kernels/common/block/workspace.cuh and kernels/svd/block/pair_sweep.cuh lay out.
"""

from functools import cache, lru_cache

import cupy as cp
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.launch import WARP
from h2gpu.batched.device.limits import shared_limit
from h2gpu.batched.qr.pivoted import workspace_bytes

METHODS = ("register", "shared", "block-gram", "block-direct")
REGISTER, SHARED, GRAM, DIRECT = range(4)
DOT_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # register rows a lane: instances are compiled for these
LARGEST_RANK = WARP * DOT_ROWS[-1]
PAIR_COLUMNS = 16  # that a warp of svd_triangle turns against each other
PITCH_BYTES = 32  # between whose odd multiples columns lie there
SCRATCH_ENTRIES = 32 * PAIR_COLUMNS  # of shared memory, of such a warp: G or J, and what is known of two blocks


@lru_cache(maxsize=1024)
def method_of(device, dtype, longer, rank, both, method):
    """An index into METHODS for one size on the current device; see `methods`."""
    return int(methods(dtype, np.array([longer]), np.array([rank]), both, method)[0])


def methods(dtype, longer, rank, both, method):
    """Indices into METHODS for each size: the one asked for where it can be done, else the next that can."""
    if (rank > LARGEST_RANK).any():
        raise ValueError(f"svd: expected min(m, n) ≤ {LARGEST_RANK} on the GPU, got {rank.max()}; use rsvd for more")
    fits = workspace_bytes(dtype, longer, rank, both) <= shared_limit(cp.cuda.runtime.getDevice())
    possible = np.where(longer <= WARP, REGISTER, np.where(fits, SHARED, GRAM))
    if method != "auto":
        return np.maximum(METHODS.index(method), possible)
    return np.maximum(tuned(cp.cuda.runtime.getDevice(), dtype)[0][rank], possible)


@cache
def tuned(device, dtype):
    """For each rank what the tuning table of the current device says: (2, ranks) methods and columns of a block."""
    rows = [tuning.row("svd", dtype, rank=k) for k in range(LARGEST_RANK + 1)]
    return np.array([[METHODS.index(row["method"]) for row in rows], [row["columns"] for row in rows]])


def keys(dtype, m, n, both, method):
    """(·, sizes) numbers, methods first: sizes that agree in them share an instance and much the same memory."""
    longer, rank = np.maximum(m, n), np.minimum(m, n)
    chosen = methods(dtype, longer, rank, both, method)
    powers = [np.ceil(np.log2(np.maximum(size, least))) for size, least in ((rank, 4), (longer, 8))]
    footprint = np.floor(np.log2(workspace_bytes(dtype, longer, rank, both)))
    instance = np.where(chosen == REGISTER, powers[0], np.searchsorted(DOT_ROWS, -(-rank // WARP)))
    memory = np.where(chosen == REGISTER, powers[1], np.where(chosen == SHARED, footprint, m >= n))
    return np.stack([chosen, instance, memory]).astype(np.int64)


def is_shared(dtype, rank, both):
    """Whether square matrices fit in shared memory, with the right vectors where wanted."""
    return triangle_bytes(dtype, rank, both) <= shared_limit(cp.cuda.runtime.getDevice())


@lru_cache(maxsize=1024)
def fits(device, dtype, rank, both):
    """The same for one size on the current device."""
    return bool(is_shared(dtype, rank, both))


def triangle_bytes(dtype, rank, both):
    """Shared memory of a block of kernels/svd/svd_triangle.cuh."""
    rows = 2 * rank if both else rank
    odd = PITCH_BYTES // dtype.itemsize
    pitch = (rows + odd - 1) // (2 * odd) * 2 * odd + odd  # pair_pitch of kernels/svd/block/pair_sweep.cuh
    return workspace_bytes(dtype, pitch, rank, both) + SCRATCH_ENTRIES * -(-rank // PAIR_COLUMNS) * dtype.itemsize
