"""Pivoted QR with early stop on the GPU, and truncated SVDs from it: twins of those in h2gpu.batched.cpu_svd.

    A P = Q [R; 0] + E,  ‖E‖_F ≤ atol,     P Rᵀ = Q₂ Lᵀ,   L V_L = U_L Σ by Jacobi,   U = Q [U_L; 0]

Q is a product of reflectors, applied to U_L and never formed. Ranks come to the host between the first step and the
second; everything behind is of their size. Kernels: kernels/qr/pivoted_qr.cuh, reflectors.cuh and those of
cuda_svd. Drmač & Veselić 2008; the stopping rule is the sum of the norms that pivoting follows anyway.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import cupy as cp
import numpy as np

from h2gpu.batched import cuda_svd_choice
from h2gpu.batched.checks import RESIDENT
from h2gpu.batched.classes import classes
from h2gpu.batched.cuda_qr import qr
from h2gpu.batched.cuda_triangle import svd_of_transposed
from h2gpu.batched.launch import WARP, addresses, launch
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch, offsets_of, ranges
from h2gpu.batched.verdict import check

LARGEST = RESIDENT  # rows and columns that are held in registers
SLOT_BYTES = 256  # of a lane's registers, for the columns it holds a part of
LARGEST_SLOTS = 16  # such columns
WARPS = (1, 2, 4, 6, 8, 12, 16)  # of a block: instances are compiled for these
LANE_WORDS, OTHER_WORDS = 128, 48  # registers a lane has at most, and those besides its columns
BLOCK_WORDS = 1 << 16  # registers of a multiprocessor
LARGE_THREADS = 512  # a block for larger matrices
SCRATCH_BYTES = 1 << 28  # of reflectors and triangles at a time


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
        """Zeros, for matrices without rows or columns."""
        zeros = cp.zeros(2 * batch)
        return cls(zeros[:batch].view(np.int64), zeros[batch:], cp.zeros(batch + 1, np.int32))

    @property
    def arguments(self):
        """As the kernels take them."""
        return self.ranks, self.missed, self.info, self.info[-1:]

    def check(self, name, first):
        """LinAlgError naming the matrices without a result."""
        if int(self.info[-1]) < 0:
            check(self.info[:-1], name, first)


def pivoted_qr(A, atol, padded=False):
    """Q, R, pivots, ranks of a MatrixBatch: see h2gpu.batched.pivoted_qr; padded: with zeros, as arrays."""
    F = factor(A, atol, True)
    k = np.minimum(A.rows, A.columns) if padded else F.ranks
    Q = reflect(F, None, MatrixBatch.empty(A.rows, k, A.dtype, cp))
    return Q, MatrixBatch(F.R.buffer, F.R.offsets, k, A.columns), F.pivots, F.ranks


def truncated_svd(A, atol, padded=False):
    """U, s, missed of a MatrixBatch: see h2gpu.batched.truncated_svd; padded: with zeros, as arrays."""
    k = np.minimum(A.rows, A.columns)
    before = offsets_of(k * (A.rows + A.columns)) * A.dtype.itemsize
    cuts = np.searchsorted(before, np.arange(SCRATCH_BYTES, before[-1], SCRATCH_BYTES))
    bounds = np.unique([0, *cuts, len(A)])
    parts = [_truncate(A[i:j], atol[i:j], i, padded) for i, j in pairwise(bounds)]
    if not parts:
        return MatrixBatch.empty(A.rows, k, A.dtype, cp), MatrixBatch.empty(k, 1, A.dtype, cp), cp.empty(0)
    if len(parts) == 1:
        return parts[0]
    U, s, missed = zip(*parts)
    return MatrixBatch.concatenated(U), MatrixBatch.concatenated(s), cp.concatenate(missed)


def _truncate(A, atol, first, padded):
    """truncated_svd of matrices that go together; first: the number of the first, to name it."""
    F = factor(A, atol, False, first)
    P = MatrixBatch(F.R.buffer, F.R.offsets, A.columns, F.ranks)
    X, s, info = svd_of_transposed(qr(P, "r"), "left")
    k = np.minimum(A.rows, A.columns)
    U = reflect(F, X, MatrixBatch.empty(A.rows, k if padded else F.ranks, A.dtype, cp))
    if padded:
        t = MatrixBatch.zeros(k, 1, A.dtype, cp)
        t.buffer[cp.asarray(ranges(t.offsets, F.ranks))] = s.entries
        s = t
    check(info, "truncated_svd", first)
    return U, s, F.missed


def factor(A, atol, sorted, first=0):
    """The Factors of A; R upper triangular with columns as in A P if sorted, else Rᵀ with rows as A's columns.

    Raises LinAlgError naming the matrices that hold NaN or Inf.
    """
    m, n = A.rows, A.columns
    k = np.minimum(m, n)
    V, R = MatrixBatch.empty(k, m, A.dtype, cp), (MatrixBatch.zeros if sorted else MatrixBatch.empty)(k, n, A.dtype, cp)
    tau = MatrixBatch.empty(k, 1, A.dtype, cp)
    pivots = MatrixBatch.empty(n, 1, np.int32, cp) if sorted else None
    if sorted:
        pivots.buffer[...] = cp.asarray(ranges(np.zeros_like(n), n))  # of matrices without rows
    outcome = Outcome.of(len(A))
    buffers = *addresses(A, V, tau, R, pivots), *outcome.arguments, cp.asarray(atol, np.float64)
    offsets = A.offsets, V.offsets, tau.offsets, R.offsets, 0 if pivots is None else pivots.offsets
    for these in classes(m, n, lambda m, n: shape_keys(A.dtype, m, n)):
        rows = these.table(*offsets, m, n, np.arange(len(A)))
        if these.keys[0] > LARGEST // WARP:
            _factor_large(A.dtype, these, (*buffers, rows), sorted)
            continue
        factor_in_registers(A.dtype, these.keys, these.shape, sorted, (*buffers, rows))
    outcome.check("pivoted_qr", first)
    return Factors(V.buffer, tau.buffer, V.offsets, tau.offsets, R, pivots, cp.asnumpy(outcome.ranks), outcome.missed)


def factor_in_registers(dtype, keys, bounds, sorted, arguments, above=0):
    """Launch for the matrices in the table, the last of the arguments, of `above` < m ≤ bounds[0] rows."""
    tall, wide = bounds
    instance, resident = _instance(dtype, *map(int, keys))
    shared = (tall | 1) * wide * dtype.itemsize
    function = kernel("qr/pivoted_qr.cuh", "pivoted_qr", *instance, sorted, resident, shared_bytes=shared)
    launch(function, len(arguments[-1]), instance[3] * WARP, (*arguments, above, tall), shared)


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
def _instance(dtype, rows, warps):
    """Template arguments that hold columns in registers, and blocks that a multiprocessor has registers for."""
    slots = int(_slots(dtype, np.int64(rows)))
    words = min(LANE_WORDS, slots * rows * (dtype.itemsize // 4) + OTHER_WORDS)
    return (dtype, rows, slots, warps), max(1, BLOCK_WORDS // (warps * WARP * words))


def _factor_large(dtype, these, arguments, sorted):
    """The same in global memory, where a matrix waits in a workspace."""
    tall, wide = these.shape
    stride = int(cuda_svd_choice.workspace_bytes(dtype, max(tall, wide), wide, False))
    function = kernel("qr/pivoted_qr.cuh", "pivoted_qr_large", dtype, sorted, LARGE_THREADS)
    most = max(1, SCRATCH_BYTES // stride)
    for first in range(0, these.count, most):
        rows = arguments[-1][first : first + most]
        workspaces = cp.empty(len(rows) * stride, np.uint8)
        launch(function, len(rows), LARGE_THREADS, (*arguments[:-1], rows, workspaces, np.int64(stride)))


def reflect(F, X, Y):
    """Y_b = H_0 … H_{r−1} [X_b; 0], zeros in columns from r on; X the identity where None. Returns Y."""
    buffers = addresses(X, F.V, F.tau, Y)
    offsets = 0 if X is None else X.offsets, F.v_offsets, F.tau_offsets, Y.offsets
    if (Y.columns > F.ranks).any():
        Y.buffer[...] = 0  # also of matrices of rank 0, which are in no class
    for these in classes(Y.rows, F.ranks, lambda m, r: shape_keys(Y.dtype, m, r)):
        rows = these.table(*offsets, Y.rows, F.ranks, Y.columns)
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
    instance, resident = _instance(dtype, *map(int, keys))
    shared = (bounds[0] | 1) * bounds[1] * dtype.itemsize
    function = kernel("qr/reflectors.cuh", "reflect_columns", *instance, resident, shared_bytes=shared)
    (rows_above, rank_above), (rows, rank) = above, bounds
    sizes = rows_above, rows, rank_above, rank
    launch(function, len(arguments[-1]), instance[3] * WARP, (*arguments, *sizes), shared)
