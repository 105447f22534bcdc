"""Singular value decompositions on the GPU by one-sided Jacobi: the twin of `svd` in h2gpu.batched.cpu.

    W P = Q R,   R = L Q₂ᵀ,   L V_L = U_L Σ,   W = (Q U_L) Σ (P Q₂ V_L)ᵀ,   W = A or Aᵀ

Matrices are grouped by size, every group is one launch (method "shared": everything in shared memory) or one launch for
each round of block Jacobi ("block-direct": beyond shared memory); nothing is read back but the verdict at the end.
Drmač & Veselić 2008; Boukaram et al., sections 5 and 6.
"""

from dataclasses import dataclass

import cupy as cp
import numpy as np

from h2gpu.batched import modules
from h2gpu.batched.ragged import MatrixBatch

VECTORS = {"none": 0, "left": 1, "both": 2}
SWEEPS = 40  # never met: well-behaved matrices take 5 to 12
WARP = 32
DOT_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # register rows a lane: instances are compiled for these
LARGEST_RANK = WARP * DOT_ROWS[-1]
REGISTER_WORDS = 128  # of a lane's 255, for the columns it holds
BLOCK_WORDS = 1 << 16  # registers of a multiprocessor
OTHER_WORDS = 64  # registers a lane needs besides
REGISTER_WARPS = 2  # a block of method "register"
STAGE_THREADS = 512  # of the kernels before and after the rounds of block Jacobi
WORKSPACE_BYTES = 4 << 30  # of device memory at a time


def svd(A, vectors, method):
    """U, s, Vt (vectors "both"), U, s ("left") or s ("none") of an array or a MatrixBatch, as cpu.svd.

    Raises LinAlgError naming the matrices that hold NaN or Inf or did not converge.
    """
    results, info = decompose(A, vectors, method)
    if len(info) and int(info[-1]) < 0:
        raise np.linalg.LinAlgError(_verdict(cp.asnumpy(info[:-1])))
    return results


def decompose(A, vectors, method):
    """The results of svd, and (batch + 1,) int32: sweeps, or −1 for NaN and Inf, −2 for no convergence; their least.

    Nothing is waited for. Matrices that failed hold NaN.
    """
    m, n = (A.rows, A.columns) if isinstance(A, MatrixBatch) else A.shape[1:]
    k = np.minimum(m, n)
    shapes = [(m, k), (k, np.int64(1)), (k, n)]
    wanted = {"both": (0, 1, 2), "left": (0, 1), "none": (1,)}[vectors]
    outputs = [_empty_like(A, *shape) if i in wanted else None for i, shape in enumerate(shapes)]
    info = cp.zeros(len(A) + 1, np.int32)
    for group in _groups(A, outputs, vectors == "both", method):
        group.launch(A, outputs, info, VECTORS[vectors])
    results = tuple(outputs[i] for i in wanted)
    return (results[0] if vectors == "none" else results), info


def _verdict(info):
    failed, stuck = np.flatnonzero(info == -1), np.flatnonzero(info == -2)
    words = [
        f"{what} in matrices {', '.join(map(str, which[:20]))}{' …' if len(which) > 20 else ''}"
        for what, which in (("NaN or Inf", failed), ("no convergence", stuck))
        if len(which)
    ]
    return "svd: " + "; ".join(words)


def _empty_like(A, rows, columns):
    if isinstance(A, MatrixBatch):
        return MatrixBatch.empty(rows, columns, A.dtype, cp)
    return cp.empty((len(A), int(rows), int(columns)), A.dtype)


@dataclass(frozen=True)
class Group:
    """Matrices that one kernel instance decomposes.

    table     (count, 7) int64 on the device: offsets of A, U, s, Vt, then rows, columns, index; None: all alike
    rows, columns   of every matrix where table is None
    longer, rank    the largest max(m, n) and min(m, n)
    """

    table: object
    count: int
    rows: int
    columns: int
    longer: int
    rank: int
    both: bool
    method: str

    def launch(self, A, outputs, info, vectors):
        batch = [M.buffer if isinstance(M, MatrixBatch) else M for M in (A, *outputs)]
        batch = [np.intp(0) if M is None else M for M in batch]
        RUNS[self.method](self, A.dtype, batch, info, vectors)

    def part(self, first, stop):
        """Where the matrices first … stop lie: the table's rows, or the offsets of uniform batches."""
        return np.intp(0) if self.table is None else self.table[first:stop]

    @property
    def sizes(self):
        return np.int32(self.rows), np.int32(self.columns)


def _groups(A, outputs, both, method):
    """The batch in groups of one kernel instance each; matrices without rows or columns are in none."""
    itemsize = A.dtype.itemsize
    if not isinstance(A, MatrixBatch):
        m, n = A.shape[1:]
        if len(A) and min(m, n):
            chosen = _methods(np.array([max(m, n)]), np.array([min(m, n)]), both, method, itemsize)[0]
            yield Group(None, len(A), m, n, max(m, n), min(m, n), both, METHODS[chosen])
        return
    longer, rank = np.maximum(A.rows, A.columns), np.minimum(A.rows, A.columns)
    some = np.flatnonzero(rank)
    if not len(some):
        return
    offsets = [np.zeros(len(A), np.int64) if M is None else M.offsets for M in (A, *outputs)]
    table = np.stack([*offsets, A.rows, A.columns, np.arange(len(A))], axis=1)[some]
    longer, rank = longer[some], rank[some]
    chosen = _methods(longer, rank, both, method, itemsize)
    keys = np.stack([chosen, *_instance_keys(chosen, longer, rank, both, itemsize)])
    order = np.lexsort((-longer * rank, *keys))
    on_device = cp.asarray(table[order])
    firsts = np.flatnonzero(np.any(np.diff(keys[:, order], axis=1, prepend=-1), axis=0))
    for first, stop in zip(firsts, [*firsts[1:], len(order)]):
        which = order[first:stop]
        yield Group(
            on_device[first:stop],
            int(stop - first),
            0,
            0,
            int(longer[which].max()),
            int(rank[which].max()),
            both,
            METHODS[chosen[order[first]]],
        )


METHODS = ("register", "shared", "block-direct")
REGISTER, SHARED, ROUNDS = range(3)


def _methods(longer, rank, both, method, itemsize):
    """Indices into METHODS for each size: the one asked for where it can be done, else the next."""
    if (rank > LARGEST_RANK).any():
        raise ValueError(f"svd: expected min(m, n) ≤ {LARGEST_RANK} on the GPU, got {rank.max()}; use rsvd for more")
    least = {"auto": REGISTER, "register": REGISTER, "shared": SHARED}.get(method, ROUNDS)
    fits = _workspace_bytes(itemsize, longer, rank, both) <= _shared_limit()
    return np.maximum(least, np.where(longer <= WARP, REGISTER, np.where(fits, SHARED, ROUNDS)))


def _instance_keys(chosen, longer, rank, both, itemsize):
    """Two numbers a matrix: those that agree in them share a kernel instance and much the same shared memory."""
    lanes = np.maximum(2, np.ceil(np.log2(rank))), np.maximum(3, np.ceil(np.log2(longer)))
    footprint = np.log2(_workspace_bytes(itemsize, longer, rank, both)).astype(np.int64)
    others = np.searchsorted(DOT_ROWS, -(-rank // WARP)), footprint
    return [np.where(chosen == REGISTER, a, b).astype(np.int64) for a, b in zip(lanes, others)]


def _shared_limit():
    """Dynamic shared memory that a block may have, a little left for the static."""
    return cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] - (4 << 10)


def _workspace_bytes(itemsize, longer, rank, both):
    """workspace_bytes of kernels/block/svd_stages.cuh."""
    leading = (np.maximum(longer, 2 * rank) if both else longer) | 1
    return ((leading * rank + 5 * (rank + 32)) * itemsize + (3 * (rank + 32) + 4) * 4 + 15) // 16 * 16


def _instance(group, dtype):
    """Template arguments: register rows a lane for dot products, columns a block, and threads."""
    words = dtype.itemsize // 4
    dots = DOT_ROWS[int(np.searchsorted(DOT_ROWS, -(-group.rank // WARP)))]
    rows = 2 * dots if group.both else dots
    columns = next(c for c in (4, 2, 1) if 2 * c * rows * words <= REGISTER_WORDS or c == 1)
    return dots, columns, 2 * columns * rows * words + OTHER_WORDS


def _threads(warps, registers):
    """As many threads as there is work for and as their registers allow."""
    most = min(1024, BLOCK_WORDS // min(255, registers)) // WARP
    return WARP * int(min(max(warps, 4), most))


def _power_of_two(least, number):
    return max(least, 1 << (int(number) - 1).bit_length())


def _run_register(group, dtype, batch, info, vectors):
    lanes, rows = _power_of_two(4, group.rank), _power_of_two(8, group.longer)
    matrices = REGISTER_WARPS * WARP // lanes
    reals = lanes * (rows + 1) + 2 * lanes * (lanes + 1) + 2 * lanes
    shared = matrices * reals * dtype.itemsize
    function = modules.kernel(
        "batched/svd_register.cuh",
        "svd_register",
        dtype,
        rows,
        lanes,
        group.both,
        REGISTER_WARPS,
        shared_bytes=shared,
    )
    numbers = [np.int32(x) for x in (vectors, SWEEPS, group.count, group.rank)]
    arguments = (*batch, info, info[-1:], group.part(0, group.count), *group.sizes, *numbers)
    function((-(-group.count // matrices),), (REGISTER_WARPS * WARP,), arguments, shared_mem=shared)


def _run_shared(group, dtype, batch, info, vectors):
    dots, columns, registers = _instance(group, dtype)
    threads = _threads(-(-WARP * dots // (2 * columns)), registers)
    shared = int(_workspace_bytes(dtype.itemsize, group.longer, group.rank, group.both))
    function = modules.kernel(
        "batched/svd_shared.cuh", "svd_shared", dtype, dots, group.both, columns, threads, shared_bytes=shared
    )
    arguments = (*batch, info, info[-1:], group.part(0, group.count), *group.sizes, np.int32(vectors), np.int32(SWEEPS))
    function((group.count,), (threads,), arguments, shared_mem=shared)


def _run_rounds(group, dtype, batch, info, vectors):
    dots, columns, registers = _instance(group, dtype)
    column_bytes = (((2 if group.both else 1) * group.rank | 1) + 1) * dtype.itemsize
    width = int(_shared_limit() // (2 * column_bytes) // columns * columns)
    panels = 2 * -(-group.rank // (2 * width))
    width = -(-group.rank // (panels * columns)) * columns
    threads = _threads(width // columns, registers)
    shared = 2 * width * column_bytes
    stages = [
        modules.kernel("batched/svd_rounds.cuh", name, dtype, group.both, STAGE_THREADS)
        for name in ("svd_prepare", "svd_finish")
    ]
    step = modules.kernel(
        "batched/svd_rounds.cuh", "svd_round", dtype, dots, group.both, columns, threads, shared_bytes=shared
    )
    stride = np.int64(_workspace_bytes(dtype.itemsize, group.longer, group.rank, group.both))
    most = max(1, WORKSPACE_BYTES // int(stride))
    for first in range(0, group.count, most):
        count = min(most, group.count - first)
        sizes = (group.part(first, first + count), *group.sizes)
        workspaces, turned = cp.empty(count * int(stride), np.uint8), cp.zeros((SWEEPS, count), np.int32)
        pieces = _uniform_pieces(group, batch, info, first)
        stages[0]((count,), (STAGE_THREADS,), (*pieces, *sizes, np.int32(vectors), workspaces, stride))
        for sweep in range(SWEEPS):
            for turn in range(panels - 1):
                numbers = [np.int32(x) for x in (count, panels // 2, width, sweep, turn)]
                arguments = (*sizes, workspaces, stride, turned, *numbers)
                step((count * (panels // 2),), (threads,), arguments, shared_mem=shared)
        tail = (np.int32(vectors), workspaces, stride, turned, np.int32(SWEEPS))
        stages[1]((count,), (STAGE_THREADS,), (*pieces, *sizes, *tail))


def _uniform_pieces(group, batch, info, first):
    """A, U, s, Vt and info of the matrices from `first` on; with a table, of the whole batch."""
    if group.table is not None:
        return (*batch, info, info[-1:])
    return (*[M[first:] if isinstance(M, cp.ndarray) else M for M in batch], info[first:], info[-1:])


RUNS = {"register": _run_register, "shared": _run_shared, "block-direct": _run_rounds}
