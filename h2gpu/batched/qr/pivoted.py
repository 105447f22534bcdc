"""Pivoted QR with early stop on the GPU.

    A P = Q [R; 0] + E,  ‖E‖_F ≤ atol

Q is a product of reflectors (reflectors.py). Kernel: kernels/qr/pivoted_qr.cuh. The stopping rule is the sum of
the norms that pivoting follows anyway.
"""

from dataclasses import dataclass

import cupy as cp
import numpy as np

from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import ranges
from h2gpu.batched.core.size_classes import classes, with_tables
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, addresses, launch
from h2gpu.batched.qr.reflectors import LARGE_THREADS, Factors, reflect
from h2gpu.batched.qr.register_columns import LARGEST, held_bytes, instance_of, shape_keys
from h2gpu.memory import piece_bytes


@dataclass(frozen=True)
class Outcome:
    """What a pivoted QR says of each matrix, on the device.

    ranks    (batch,) int64
    missed   (batch,) float64: ‖E_b‖_F
    info     (batch + 1,) int32: 0, or why there is no result; their least
    """

    ranks: object
    missed: object
    info: object

    @classmethod
    def of(cls, batch):
        """Zeros, for matrices without rows or columns; in one array: a level of few takes as long for each."""
        zeros = cp.zeros(2 * batch + batch // 2 + 1)
        ranks, missed, info = zeros[:batch], zeros[batch : 2 * batch], zeros[2 * batch :].view(np.int32)
        return cls(ranks.view(np.int64), missed, info[: batch + 1])

    @property
    def arguments(self):
        """As the kernels take them."""
        return self.ranks, self.missed, self.info, self.info[-1:]

    def check(self, name, first):
        """LinAlgError naming the matrices without a result."""
        if int(self.info[-1]) < 0:
            check(self.info[:-1], name, first)


def pivoted_qr(A, atol, mode="reduced", padded=False):
    """Q, R, pivots, ranks of a MatrixBatch: see h2gpu.batched.pivoted_qr; padded: with zeros, as arrays."""
    F = factor(A, atol, True)
    k = np.minimum(A.rows, A.columns) if padded else F.ranks
    results = MatrixBatch(F.R.buffer, F.R.offsets, k, A.columns), F.pivots, F.ranks
    return results if mode == "r" else (reflect(F, None, MatrixBatch.empty(A.rows, k, A.dtype, cp)), *results)


def factor(A, atol, sorted, first=0):
    """The Factors of A; R upper triangular with columns as in A P if sorted, else Rᵀ with rows as A's columns.

    Raises LinAlgError naming the matrices that hold NaN or Inf.
    """
    m, n = A.rows, A.columns
    k = np.minimum(m, n)
    V, R = MatrixBatch.empty(k, m, A.dtype, cp), (MatrixBatch.zeros if sorted else MatrixBatch.empty)(k, n, A.dtype, cp)
    tau = MatrixBatch.empty(k, 1, A.dtype, cp)
    pivots = MatrixBatch.empty(n, 1, np.int32, cp) if sorted else None
    if sorted and not m.all():
        pivots.buffer[...] = cp.asarray(ranges(np.zeros_like(n), n))  # of matrices without rows; else kernels tell all
    outcome = Outcome.of(len(A))
    buffers = *addresses(A, V, tau, R, pivots), *outcome.arguments, cp.asarray(atol, np.float64)
    offsets = A.offsets, V.offsets, tau.offsets, R.offsets, 0 if pivots is None else pivots.offsets
    groups = classes(m, n, lambda m, n: shape_keys(A.dtype, m, n))
    for these, rows in with_tables(groups, *offsets, m, n, np.arange(len(A))):
        if these.keys[0] > LARGEST // WARP:
            _factor_large(A.dtype, these, (*buffers, rows), sorted)
            continue
        factor_in_registers(A.dtype, these.keys, these.shape, sorted, (*buffers, rows))
    outcome.check("pivoted_qr", first)
    return Factors(V.buffer, tau.buffer, V.offsets, tau.offsets, R, pivots, cp.asnumpy(outcome.ranks), outcome.missed)


def factor_in_registers(dtype, keys, bounds, sorted, arguments, above=0):
    """Launch for the matrices in the table, the last of the arguments, of `above` < m ≤ bounds[0] rows."""
    tall, wide = bounds
    instance, resident = instance_of(dtype, *map(int, keys))
    shared = held_bytes(dtype, tall, wide)
    function = kernel("qr/pivoted_qr.cuh", "pivoted_qr", *instance, sorted, resident, shared_bytes=shared)
    launch(function, len(arguments[-1]), instance[3] * WARP, (*arguments, above, tall), shared)


def _factor_large(dtype, these, arguments, sorted):
    """The same in global memory, where a matrix waits in a workspace."""
    tall, wide = these.shape
    stride = int(workspace_bytes(dtype, max(tall, wide), wide, False))
    function = kernel("qr/pivoted_qr.cuh", "pivoted_qr_large", dtype, sorted, LARGE_THREADS)
    most = max(1, piece_bytes(cp) // stride)
    for first in range(0, these.count, most):
        rows = arguments[-1][first : first + most]
        workspaces = cp.empty(len(rows) * stride, np.uint8)
        launch(function, len(rows), LARGE_THREADS, (*arguments[:-1], rows, workspaces, np.int64(stride)))


def workspace_bytes(dtype, longer, rank, both):
    """Bytes of a matrix's workspace between the stages: workspace_bytes of kernels/common/block/workspace.cuh."""
    leading = (np.maximum(longer, 2 * rank) if both else longer) | 1
    return ((leading * rank + 5 * (rank + 32)) * dtype.itemsize + (3 * (rank + 32) + 4) * 4 + 15) // 16 * 16
