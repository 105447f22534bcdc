"""Products of Householder reflectors, held in registers or in global memory, applied on the GPU.

    Y = H_0 … H_{r−1} [X; 0],   H = I − τ v vᵀ

Kernel: kernels/qr/reflectors.cuh. Golub & Van Loan, section 5.1.
"""

from dataclasses import dataclass

import cupy as cp
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes, with_tables
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, addresses, launch
from h2gpu.batched.qr.register_columns import LARGEST, held_bytes, instance_of, shape_keys

LARGE_THREADS = 512  # a block for larger matrices


@dataclass(frozen=True)
class Factors:
    """A_b P = H_0 … H_{r−1} [R; 0] + E_b.

    V, tau    buffers: the reflectors of matrix b from v_offsets[b], tau_offsets[b] on
    R         MatrixBatch of slots of k × n (or n × k): see kernels/qr/pivoted_qr.cuh
    pivots    MatrixBatch of n × 1, or None
    ranks     (batch,) int64 on the host
    missed    (batch,) float64 on the device: ‖E_b‖_F
    """

    V: object
    tau: object
    v_offsets: np.ndarray
    tau_offsets: np.ndarray
    R: MatrixBatch
    pivots: object
    ranks: np.ndarray
    missed: object


def reflect(F, X, Y):
    """Y_b = H_0 … H_{r−1} [X_b; 0], zeros in columns from r on; X the identity where None. Returns Y."""
    buffers = addresses(X, F.V, F.tau, Y)
    offsets = 0 if X is None else X.offsets, F.v_offsets, F.tau_offsets, Y.offsets
    if (Y.columns > F.ranks).any():
        Y.buffer[...] = 0  # also of matrices of rank 0, which are in no class
    groups = classes(Y.rows, F.ranks, lambda m, r: shape_keys(Y.dtype, m, r))
    for these, rows in with_tables(groups, *offsets, Y.rows, F.ranks, Y.columns):
        reflect_class(Y.dtype, these.keys, these.shape, (*buffers, rows))
    return Y


def reflect_class(dtype, keys, bounds, arguments):
    """Launch for the matrices in the table, the last of the arguments, wherever these keys say that they are held."""
    if keys[0] <= LARGEST // WARP:
        return reflect_in_registers(dtype, keys, bounds, arguments)
    stride, rows = bounds[0] * bounds[1], len(arguments[-1])
    function = kernel("qr/reflectors.cuh", "reflect_columns_large", dtype, LARGE_THREADS)
    launch(function, rows, LARGE_THREADS, (*arguments, cp.empty(rows * stride, dtype), np.int64(stride)))


def reflect_in_registers(dtype, keys, bounds, arguments, above=(0, 0)):
    """Launch for the matrices in the table, the last of the arguments, of above[0] < m ≤ bounds[0], likewise r."""
    instance, resident = instance_of(dtype, *map(int, keys))
    shared = held_bytes(dtype, *bounds)
    function = kernel("qr/reflectors.cuh", "reflect_columns", *instance, resident, shared_bytes=shared)
    (rows_above, rank_above), (rows, rank) = above, bounds
    sizes = rows_above, rows, rank_above, rank
    launch(function, len(arguments[-1]), instance[3] * WARP, (*arguments, *sizes), shared)
