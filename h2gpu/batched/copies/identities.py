"""Ragged batches in which all identity matrices of one size are one."""

import numpy as np

from h2gpu.arrays import moved
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of


def with_identities(rows, columns, which, dtype, xp=np):
    """Uninitialized matrices, packed behind identities that share their memory: those `which` says, square.

    rows, columns   (batch,) on the host
    which           (batch,) bool
    """
    wanted = rows[which]
    sizes = np.flatnonzero(np.bincount(wanted))
    shared = [np.eye(int(size), dtype=dtype).ravel() for size in sizes]
    first = offsets_of(sizes**2)
    offsets = first[-1] + offsets_of(np.where(which, 0, rows * columns))
    buffer = xp.empty(int(offsets[-1]), dtype)
    if shared:
        buffer[: int(first[-1])] = moved(np.concatenate(shared), xp)
    offsets[:-1][which] = first[np.searchsorted(sizes, np.arange(sizes.max(initial=0) + 1))][wanted]
    return MatrixBatch(buffer, offsets[:-1], rows, columns)
