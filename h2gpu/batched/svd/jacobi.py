"""Singular value decompositions on the GPU by one-sided Jacobi.

    W P = Q R,   R = L Q₂ᵀ,   L V_L = U_L Σ,   W = (Q U_L) Σ (P Q₂ V_L)ᵀ,   W = A or Aᵀ

Matrices are grouped by size; a group is one launch of kernels/svd/svd_register.cuh (a warp or less a matrix) or
svd_shared.cuh (a thread block a matrix), or the rounds of h2gpu.batched.svd.blocks beyond shared memory. Nothing
is read back but the verdict at the end. Drmač & Veselić 2008; Boukaram et al., sections 5 and 6.
"""

from dataclasses import dataclass
from functools import lru_cache

import cupy as cp
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes, with_tables
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, addresses, launch
from h2gpu.batched.device.limits import most_shared, multiprocessors, shared_limit
from h2gpu.batched.svd import blocks, choice
from h2gpu.batched.svd.choice import DOT_ROWS, GRAM, PAIR_COLUMNS, REGISTER, SHARED

SWEEPS = 40  # never met: well-behaved matrices take 5 to 12
COLUMN_WORDS, OTHER_WORDS = 128, 64  # registers of a lane for the columns it holds, and for the rest
LANE_WORDS, BLOCK_WORDS = 255, 1 << 16  # registers that a lane and a thread block can have
MOST_WARPS, RESERVED = 64, 1 << 10  # of a multiprocessor, and shared memory that each of its blocks costs besides
REGISTER_WARPS = 2  # a block of method "register"
TRIANGLE_RANKS = (16, 32, 64)  # bounds of the groups of triangles whose ranks only the device knows
WORKSPACE_BYTES = 4 << 30  # of device memory at a time
VECTORS = {"none": 0, "left": 1, "both": 2, "triangle": 3, "triangle-both": 3}  # the kernels' enum
BOTH = ("both", "triangle-both")
TRIANGLES = ("triangle", "triangle-both")
FEW_BLOCKS = 2  # of svd_triangle on a multiprocessor: if no more come to it, a lane has the registers of the others
TRIANGLE_WORDS = {"float64": 168, "float32": 128}  # registers of a lane there


def decompose(A, vectors, method):
    """The results of svd, and (batch + 1,) int32: sweeps, or −1 for NaN and Inf, −2 for no convergence; their least.

    Nothing is waited for. Matrices that failed hold NaN. Vectors "triangle" and "triangle-both": those of A_bᵀ,
    square and small enough for shared memory, whose columns are nearly orthogonal already: no QR goes before Jacobi.
    """
    ragged = isinstance(A, MatrixBatch)
    (m, n), least = ((A.rows, A.columns), np.minimum) if ragged else (A.shape[1:], min)
    k = least(m, n)
    wanted = (1,) if vectors == "none" else (0, 1, 2) if vectors in BOTH else (0, 1)
    shapes = (m, k), (k, np.ones_like(k) if ragged else 1), (k, n)
    outputs = [_empty_like(A, *shape) if i in wanted else None for i, shape in enumerate(shapes)]
    info = cp.zeros(len(A) + 1, np.int32)
    for group in _groups(A, outputs, vectors, method):
        RUNS[group.method](group, (info, info[-1:]))
    results = tuple(outputs[i] for i in wanted)
    return (results[0] if vectors == "none" else results), info


def _empty_like(A, rows, columns):
    if isinstance(A, MatrixBatch):
        return MatrixBatch.empty(rows, columns, A.dtype, cp)
    return cp.empty((len(A), rows, columns), A.dtype)


def decompose_triangles(batch, table, count, rank, info, few):
    """The same for triangles of at most `rank` columns, that fit in shared memory, whose sizes only the device knows.

    batch   buffers of A, U, s, Vt, as the table has them
    info    that of each matrix and the least, to be written where there are singular values
    few     matrices: one launch for all of them
    """
    above = 0
    for upto in (rank,) if few else (*TRIANGLE_RANKS, rank):
        upto = min(upto, rank)
        if above < upto:
            method = REGISTER if upto <= WARP else SHARED
            group = Group(batch, slice(None), table, count, (0, 0), upto, upto, "triangle", method, above)
            RUNS[method](group, info)
        above = upto


@dataclass(frozen=True)
class Group:
    """Matrices that one kernel instance decomposes.

    batch           A, U, s, Vt of the whole batch: arrays or MatrixBatch; None where not wanted
    members         which of them: indices, or a slice
    table           (count, 7) int64 on the device: offsets of A, U, s, Vt, rows, columns, index; null: all alike
    shape           rows and columns of every matrix where table is null
    longer, rank    the largest max(m, n) and min(m, n)
    above           matrices of this rank or less in the table are left to other groups
    shared          bytes of the workspace that the largest of them takes in shared memory
    """

    batch: tuple
    members: object
    table: object
    count: int
    shape: tuple
    longer: int
    rank: int
    vectors: str
    method: int
    above: int = 0
    shared: int = 0

    @property
    def dtype(self):
        return self.batch[0].dtype

    @property
    def both(self):
        return self.vectors in BOTH

    def arguments(self, info):
        """Those that all kernels of one launch begin with."""
        return (*addresses(*self.batch), *info, self.table, *self.shape, VECTORS[self.vectors], SWEEPS)


def _groups(A, outputs, vectors, method):
    """The batch in groups of one kernel instance each; matrices without rows or columns are in none."""
    if not isinstance(A, MatrixBatch):
        m, n = A.shape[1:]
        longer, rank = max(m, n), min(m, n)
        if not len(A) or not rank:
            return
        chosen = choice.method_of(cp.cuda.runtime.getDevice(), A.dtype, longer, rank, vectors in BOTH, method)
        if chosen < GRAM:
            shared = int(choice.workspace_bytes(A.dtype, longer, rank, vectors in BOTH))
            yield Group((A, *outputs), slice(None), NULL, len(A), (m, n), longer, rank, vectors, chosen, shared=shared)
            return
        A, *outputs = (None if M is None else MatrixBatch.from_stack(M) for M in (A, *outputs))
    batch = A, *outputs
    offsets = [0 if M is None else M.offsets for M in batch]
    groups = classes(A.rows, A.columns, lambda m, n: choice.keys(A.dtype, m, n, vectors in BOTH, method))
    for these, table in with_tables(groups, *offsets, A.rows, A.columns, np.arange(len(A))):
        longer, rank = (pick(these.rows, these.columns) for pick in (np.maximum, np.minimum))
        shared = int(choice.workspace_bytes(A.dtype, longer, rank, vectors in BOTH).max())
        largest = int(longer.max()), int(rank.max())
        yield Group(
            batch, these.members, table, these.count, (0, 0), *largest, vectors, int(these.keys[0]), shared=shared
        )


def _power_of_two(least, number):
    return max(least, 1 << (int(number) - 1).bit_length())


def register_bytes(dtype, rows, lanes):
    """Shared memory of a block of svd_register: LaneMemory for each of its matrices, of rows × lanes at most."""
    entries = lanes * (rows + 1) + 2 * lanes * (lanes + 1) + 2 * lanes
    return REGISTER_WARPS * WARP // lanes * entries * dtype.itemsize


def _run_register(group, info):
    lanes, rows = _power_of_two(4, group.rank), _power_of_two(8, group.longer)
    matrices = REGISTER_WARPS * WARP // lanes
    shared = register_bytes(group.dtype, rows, lanes)
    instance = group.dtype, rows, lanes, group.both, REGISTER_WARPS
    function = kernel("svd/svd_register.cuh", "svd_register", *instance, shared_bytes=shared)
    arguments = (*group.arguments(info), group.above, group.rank, group.count)
    launch(function, -(-group.count // matrices), REGISTER_WARPS * WARP, arguments, shared)


def _column_shape(group):
    """Rows of a lane that enter dot products, columns a warp turns against as many others, registers for them."""
    dots = DOT_ROWS[int(np.searchsorted(DOT_ROWS, -(-group.rank // WARP)))]
    words = 2 * dots * (2 if group.both else 1) * (group.dtype.itemsize // 4)  # for one column on either side
    tuned = choice.tuned(cp.cuda.runtime.getDevice(), group.dtype)[1][group.rank]
    columns = next(c for c in (8, 4, 2, 1) if c <= tuned and (c * words <= COLUMN_WORDS or c == 1))
    return dots, columns, min(LANE_WORDS, columns * words + OTHER_WORDS)


def few_triangles(device, count):
    """Whether so many leave a multiprocessor with FEW_BLOCKS."""
    return count <= FEW_BLOCKS * multiprocessors(device)


@lru_cache(maxsize=1024)
def triangle_plan(device, dtype, rank, both, few):
    """Function, threads and shared memory of a block for triangles of at most `rank` columns; few: see FEW_BLOCKS."""
    warps = -(-rank // PAIR_COLUMNS)
    shared = int(choice.triangle_bytes(dtype, rank, both))
    words = BLOCK_WORDS // (warps * WARP * TRIANGLE_WORDS[dtype.name])
    resident = max(1, min(words, MOST_WARPS // warps, most_shared(device) // (shared + RESERVED)))
    instance = dtype, both, warps, min(resident, FEW_BLOCKS) if few else resident
    return kernel("svd/svd_triangle.cuh", "svd_triangle", *instance, shared_bytes=shared), warps * WARP, shared


def _run_triangle(group, info):
    device = cp.cuda.runtime.getDevice()
    few = few_triangles(device, group.count)
    function, threads, shared = triangle_plan(device, group.dtype, group.rank, group.both, few)
    arguments = *group.arguments(info), group.above, group.rank, group.rank, NULL, NULL
    launch(function, group.count, threads, arguments, shared)


def _run_shared(group, info):
    if group.vectors in TRIANGLES:
        return _run_triangle(group, info)
    dots, columns, registers = _column_shape(group)
    warps = WARP * dots // (2 * columns)
    while warps * WARP * registers > BLOCK_WORDS:
        warps //= 2
    resident = max(1, BLOCK_WORDS // (warps * WARP * registers))
    instance = group.dtype, dots, group.both, columns, warps, resident
    function = kernel("svd/svd_shared.cuh", "svd_shared", *instance, shared_bytes=group.shared)
    launch(function, group.count, warps * WARP, (*group.arguments(info), group.above, group.rank), group.shared)


def _run_blocks(group, info):
    dots, columns, registers = _column_shape(group)
    threads, limit = BLOCK_WORDS // registers // WARP * WARP, shared_limit(cp.cuda.runtime.getDevice())
    plans = [blocks.direct_rounds(group.dtype, group.rank, group.both, dots, columns, threads, limit)]
    if group.method == GRAM:
        plans.insert(0, blocks.gram_rounds(group.dtype, group.rank, group.both))
    stride = blocks.panel_bytes(group.dtype, group.rank, group.both)
    most = max(1, WORKSPACE_BYTES // stride)
    for first in range(0, group.count, most):
        piece = slice(first, first + most)
        A, *outputs = (None if M is None else M[group.members][piece] for M in group.batch)
        blocks.decompose(A, outputs, group.table[piece], info[0], group.vectors, stride, plans)


RUNS = (_run_register, _run_shared, _run_blocks, _run_blocks)
