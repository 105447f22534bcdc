"""Singular values of matrices beyond shared memory: batched QR, block Jacobi on the triangle, batched products.

    W P = Q R,   Rᵀ = Q₂ Lᵀ,   L V_L = U_L Σ by rounds of column panels,   W = (Q U_L) Σ (P Q₂ V_L)ᵀ,   W = A or Aᵀ

The panels of a pair are turned orthogonal by their Gram matrix ("block-gram") or directly in shared memory
("block-direct"); the first hands to the second what it does not finish. Kernels: kernels/batched/svd_blocks.cuh.
"""

from dataclasses import dataclass

import cupy as cp
import numpy as np

from h2gpu.batched.cuda_gemm import gemm
from h2gpu.batched.cuda_qr import qr
from h2gpu.batched.launch import launch, upload
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch

STAGE_THREADS = 512  # of the kernels before and after the rounds
GRAM_WIDTH, GRAM_COLUMNS, GRAM_THREADS = 32, 8, 128  # columns of a panel and of a block within; threads
GRAM_DEPTH, GRAM_PITCH, GRAM_ROWS = 32, 36, 64  # of the kernel: rows of a slab, pitch of its columns, rows of a tile
GRAM_SWEEPS, DIRECT_SWEEPS = 16, 16  # what the first do not finish is handed to the second
SHARED_MARGIN = 4 << 10  # bytes of shared memory left to the compiler
NULL = np.uint64(0)


@dataclass(frozen=True)
class Rounds:
    """The launches of a sweep: panels of equal width, every pair of them once."""

    function: object
    panels: int
    numbers: tuple  # arguments between the number of pairs and the sweep's
    threads: int
    shared: int
    sweeps: int

    def run(self, arguments, count, first):
        pairs = self.panels // 2
        for sweep in range(first, first + self.sweeps):
            for turn in range(self.panels - 1):
                numbers = (count, pairs, *self.numbers, sweep, turn)
                launch(self.function, count * pairs, self.threads, (*arguments, *numbers), self.shared)


def gram_rounds(dtype, rank, both):
    """Rounds of kernels/batched/svd_gram.cuh."""
    tile = 2 * GRAM_WIDTH
    shared = 2 * tile * (tile + 5) + max(2 * tile * GRAM_PITCH, GRAM_ROWS * (tile + 4))
    shared *= dtype.itemsize
    instance = dtype, GRAM_WIDTH, both, GRAM_COLUMNS
    function = kernel("batched/svd_gram.cuh", "svd_gram", *instance, shared_bytes=shared)
    return Rounds(function, 2 * -(-rank // tile), (), GRAM_THREADS, shared, GRAM_SWEEPS)


def direct_rounds(dtype, rank, both, dots, columns, most_threads, shared_limit):
    """Rounds of kernels/batched/svd_rounds.cuh, in the widest panels that two of them fit in shared memory."""
    column_bytes = (((2 if both else 1) * rank | 1) + 1) * dtype.itemsize
    width = (shared_limit - SHARED_MARGIN) // (2 * column_bytes) // columns * columns
    panels = 2 * -(-rank // (2 * width))
    width = -(-rank // (panels * columns)) * columns
    threads = min(most_threads, 32 * max(4, width // columns))
    shared = 2 * width * column_bytes
    instance = dtype, dots, both, columns, threads
    function = kernel("batched/svd_rounds.cuh", "svd_round", *instance, shared_bytes=shared)
    return Rounds(function, panels, (width,), threads, shared, DIRECT_SWEEPS)


def packed(rows, columns, dtype):
    """An empty packed batch and where its matrices begin, on the device."""
    batch = MatrixBatch.empty(rows, columns, dtype, cp)
    return batch, upload(batch.offsets)[0]


def transposed(A):
    """A_bᵀ, packed."""
    from h2gpu.batched.cuda import gather

    return gather(A, np.arange(len(A)), np.ones(len(A), bool), MatrixBatch.empty(A.columns, A.rows, A.dtype, cp))


def decompose(A, outputs, table, info, worst, vectors, stride, plans):
    """U, s, Vt of matrices that are all tall (rows ≥ columns) or all wide, into outputs.

    A         MatrixBatch
    outputs   MatrixBatch each of U, s, Vt, or None
    table     (count, 7) int64 on the device, as the kernels want it
    info      of the whole batch; worst: its last entry
    stride    bytes of a workspace
    plans     Rounds one after the other
    """
    dtype, tall = A.dtype, bool(A.rows[0] >= A.columns[0])
    both, left = vectors == "both", vectors == "left"
    direct = left and not tall
    p, k = np.maximum(A.rows, A.columns), np.minimum(A.rows, A.columns)
    count = len(A)
    workspaces = cp.empty(count * stride, np.uint8)
    sizes = (table, 0, 0, workspaces, np.int64(stride))

    def stage(name, *arguments, instance=(dtype, both, STAGE_THREADS)):
        function = kernel("batched/svd_blocks.cuh", name, *instance)
        launch(function, count, STAGE_THREADS, arguments)

    W, places = packed(p, k, dtype)
    stage("svd_scale", A.buffer, W.buffer, places, info, worst, *sizes)
    square, places = packed(k, k, dtype)
    Q, R = (None, qr(W, "r")) if direct or vectors == "none" else qr(W, "reduced")
    Q2 = None
    if both:
        Q2, R = qr(transposed(R), "reduced")
    elif not direct:
        R = qr(transposed(R), "r")
    stage("svd_enter", R.buffer, places, *sizes)

    sweeps = sum(plan.sweeps for plan in plans)
    turned = cp.zeros((sweeps, count), np.int32)
    first = 0
    for plan in plans:
        plan.run((*sizes, turned), count, first)
        first += plan.sweeps

    U, s, Vt = outputs
    right = MatrixBatch.empty(k, k, dtype, cp) if both else square
    code = {"none": 0, "left": 1, "both": 2}[vectors]
    where = [NULL if M is None else M.buffer for M in (U, s)]
    tail = (*sizes[:3], code, *sizes[3:], turned, sweeps)
    stage("svd_leave", *where, square.buffer, right.buffer, places, info, worst, *tail)
    if direct or vectors == "none":
        return
    if tall:
        gemm(Q, square, None, 1, 0, False, False, U)
    else:
        gemm(square, Q, None, 1, 0, True, True, Vt)
    if both:
        products = gemm(right, Q2, None, 1, 0, True, True, None)
        buffers = products.buffer, places, U.buffer, Vt.buffer
        stage("svd_unsort", *buffers, *sizes, instance=(dtype, STAGE_THREADS))
