"""What every launch of a kernel needs: sizes on the device, a list of tiles, a grid of at least one block."""

from itertools import pairwise

import cupy
import numpy as np

from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import offsets_of

OWNER_WARPS = 8
WARP = 32


def upload(*arrays):
    """Host integer arrays as int64 arrays on the device, in one copy."""
    arrays = [np.asarray(array, np.int64).ravel() for array in arrays]
    packed = cupy.asarray(np.concatenate(arrays))
    bounds = offsets_of([len(array) for array in arrays])
    return [packed[start:stop] for start, stop in pairwise(bounds)]


def launch(function, blocks, threads, arguments, shared_bytes=0):
    """Run function on a grid of `blocks`; nothing where there are none. Plain int arguments travel as C int."""
    if blocks:
        arguments = tuple(np.int32(a) if type(a) is int else a for a in arguments)
        function((int(blocks),), (int(threads),), arguments, shared_mem=int(shared_bytes))


def tile_count(sizes, edge):
    """⌈sizes / edge⌉, without the division where no size exceeds the edge."""
    return np.minimum(sizes, 1) if sizes.max(initial=0) <= edge else -(-sizes // edge)


def tile_owners(counts, first):
    """Which matrix each of Σ counts tiles belongs to, as int32 on the device.

    counts   (batch,) tiles of each matrix, on the host
    first    (batch + 1,) tiles before each matrix, on the device
    """
    total = int(counts.sum())
    owner = cupy.empty(total, np.int32)
    blocks = -(-len(counts) // OWNER_WARPS)
    function = kernel("batched/owners.cuh", "owners", OWNER_WARPS)
    launch(function, blocks, OWNER_WARPS * WARP, (first, owner, len(counts)))
    return owner
