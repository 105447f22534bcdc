"""Singular values of matrices beyond shared memory: batched QR, block Jacobi on the triangle, batched products.

    W P = Q P₁ R,   Rᵀ = Q₂ Lᵀ,   L V_L = U_L Σ by rounds of column panels,   W = (Q P₁ U_L) Σ (P Q₂ V_L)ᵀ,  W = A or Aᵀ

The panels of a pair are turned orthogonal by their Gram matrix ("block-gram") or directly in shared memory
("block-direct"); the first hands to the second what it does not finish. Kernels: kernels/svd/svd_blocks.cuh.
"""

from dataclasses import dataclass
from functools import cache

import cupy as cp
import numpy as np

from h2gpu.batched.copies.cuda import transposed
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import addresses, launch, upload
from h2gpu.batched.device.limits import RESERVED_BYTES
from h2gpu.batched.products.gemm import gemm
from h2gpu.batched.qr.householder import qr

STAGE_THREADS = 512  # of the kernels before and after the rounds
GRAM_WIDTH, GRAM_COLUMNS, GRAM_THREADS = 32, 8, 128  # columns of a panel and of a block within; threads
GRAM_PAD = 8  # of the kernel: behind a column of the Gram matrix
PANEL_STEP, SECTOR = 32, 128  # of the kernels: rows and columns are padded to multiples, columns are aligned in bytes
GRAM_SWEEPS, DIRECT_SWEEPS = 16, 16  # what the first do not finish is handed to the second
PARTS = 2  # of a batch, on a stream each


@dataclass(frozen=True)
class Rounds:
    """The launches of a sweep: panels of equal width, every pair of them once."""

    function: object
    panels: int
    numbers: tuple  # arguments between the number of pairs and the sweep's
    threads: int
    shared: int
    sweeps: int

    def run(self, parts, first):
        """All rounds of all sweeps, the parts by turns, each on its own stream."""
        for sweep in range(first, first + self.sweeps):
            for turn in range(self.panels - 1):
                for part in parts:
                    with part.stream:
                        self.launch(part, sweep, turn)

    def launch(self, part, sweep, turn):
        pairs = self.panels // 2
        numbers = part.count, pairs, *self.numbers, sweep, turn
        launch(self.function, part.count * pairs, self.threads, (*part.sizes, part.turned, *numbers), self.shared)


def gram_rounds(dtype, rank, both):
    """Rounds of kernels/svd/svd_gram.cuh."""
    tile = 2 * GRAM_WIDTH
    shared = 2 * tile * (tile + GRAM_PAD + 1) * dtype.itemsize
    instance = dtype, GRAM_WIDTH, both, GRAM_COLUMNS
    function = kernel("svd/svd_gram.cuh", "svd_gram", *instance, shared_bytes=shared)
    return Rounds(function, 2 * -(-rank // tile), (), GRAM_THREADS, shared, GRAM_SWEEPS)


def direct_rounds(dtype, rank, both, dots, columns, most_threads, shared_limit):
    """Rounds of kernels/svd/svd_rounds.cuh, in the widest panels that two of them fit in shared memory."""
    width = (shared_limit - RESERVED_BYTES) // direct_bytes(dtype, rank, both, 1) // columns * columns
    panels = 2 * -(-rank // (2 * width))
    width = -(-rank // (panels * columns)) * columns
    threads = min(most_threads, 32 * max(4, width // columns))
    shared = direct_bytes(dtype, rank, both, width)
    instance = dtype, dots, both, columns, threads
    function = kernel("svd/svd_rounds.cuh", "svd_round", *instance, shared_bytes=shared)
    return Rounds(function, panels, (width,), threads, shared, DIRECT_SWEEPS)


def direct_bytes(dtype, rank, both, width):
    """Shared memory of a block of svd_round: two panels of so many columns, and the columns' norms."""
    return 2 * width * (((2 if both else 1) * rank | 1) + 1) * dtype.itemsize


def panel_bytes(dtype, rank, both):
    """Memory of one matrix between the stages: panel_workspace of kernels/svd/block/jacobi_panels.cuh."""
    padded = -(-rank // PANEL_STEP) * PANEL_STEP
    arrays = (rank + 5 * (rank + 32)) * dtype.itemsize + (3 * (rank + 32) + 4) * 4  # workspace_bytes without a matrix
    return -(-arrays // SECTOR) * SECTOR + (2 if both else 1) * padded**2 * dtype.itemsize


def packed(rows, columns, dtype):
    """An empty packed batch and where its matrices begin, on the device."""
    batch = MatrixBatch.empty(rows, columns, dtype, cp)
    return batch, upload(batch.offsets)[0]


@cache
def streams(device):
    """PARTS streams of the current device."""
    return [cp.cuda.Stream(non_blocking=True) for _ in range(PARTS)]


def decompose(A, outputs, table, info, vectors, stride, plans):
    """U, s, Vt of matrices that are all tall (rows ≥ columns) or all wide, into outputs.

    A         MatrixBatch
    outputs   MatrixBatch each of U, s, Vt, or None
    table     (count, 7) int64 on the device, as the kernels want it
    info      of the whole batch, its last entry the worst
    stride    bytes of a workspace
    plans     Rounds one after the other

    The batch goes in parts on streams of their own: the end of a round of one, when few blocks are left, overlaps the
    other's (256²: 800 blocks on 264 places are 4 waves alone).
    """
    caller, parts = cp.cuda.get_current_stream(), []
    ready = caller.record()
    step = -(-len(A) // PARTS)
    for first, stream in zip(range(0, len(A), step), streams(cp.cuda.runtime.getDevice())):
        piece = slice(first, first + step)
        stream.wait_event(ready)
        with stream:
            batch = [None if M is None else M[piece] for M in (A, *outputs)]
            parts.append(Part(stream, batch, table[piece], info, vectors, stride, sum(plan.sweeps for plan in plans)))
            parts[-1].enter()
    first = 0
    for plan in plans:
        plan.run(parts, first)
        first += plan.sweeps
    for part in parts:
        with part.stream:
            part.leave()
        caller.wait_event(part.stream.record())


class Part:
    """Matrices on their way through the stages, on one stream: what they need between the first stages and the last."""

    def __init__(self, stream, batch, table, info, vectors, stride, sweeps):
        self.stream, self.info, self.vectors = stream, info, vectors
        self.A, self.outputs, self.count = batch[0], batch[1:], len(batch[0])
        self.dtype, self.both = self.A.dtype, vectors == "both"
        self.tall = bool(self.A.rows[0] >= self.A.columns[0])
        self.square_first = vectors == "left" and not self.tall  # A = P R₀ᵀ Q₀ᵀ: left vectors of R₀ᵀ
        self.sizes = (table, 0, 0, cp.empty(self.count * stride, np.uint8), np.int64(stride))
        self.turned, self.sweeps = cp.zeros((sweeps, self.count), np.int32), sweeps

    def stage(self, name, *arguments, both=True):
        instance = (self.dtype, self.both, STAGE_THREADS) if both else (self.dtype, STAGE_THREADS)
        launch(kernel("svd/svd_blocks.cuh", name, *instance), self.count, STAGE_THREADS, arguments)

    def enter(self):
        """W' = Q P₁ R and Rᵀ = Q₂ R₂; the rows of R₂ become the workspaces' columns."""
        p, k = np.maximum(self.A.rows, self.A.columns), np.minimum(self.A.rows, self.A.columns)
        W, places = packed(p, k, self.dtype)
        self.stage("svd_scale", self.A.buffer, W.buffer, places, self.info, self.info[-1:], *self.sizes)
        self.left, self.places = packed(k, k, self.dtype)
        if self.square_first:
            R = qr(W, "r")
            self.clean(R, forward=True)
            W = transposed(R)
        self.Q, R = (None, qr(W, "r")) if self.vectors == "none" else qr(W, "reduced")
        self.clean(R, forward=True)
        self.Q2, R = qr(transposed(R), "reduced") if self.both else (None, qr(transposed(R), "r"))
        self.clean(R)
        self.stage("svd_enter", R.buffer, self.places, *self.sizes)

    def clean(self, R, forward=False):
        """Without rows of the size of rounding errors; the others moved before them?"""
        self.stage("svd_clean", R.buffer, self.places, np.bool_(forward), *self.sizes, both=False)

    def leave(self):
        """Singular values and vectors from the workspaces; U = Q P₁ U_L, V = P Q₂ V_L."""
        U, s, Vt = self.outputs
        left = None if self.vectors == "none" else self.left
        right = MatrixBatch.empty(left.rows, left.columns, self.dtype, cp) if self.both else None
        results = (s.buffer, *addresses(left, right), self.places, self.info, self.info[-1:])
        self.stage("svd_leave", *results, *self.sizes, self.turned, self.sweeps)
        if self.square_first:
            self.unsort(left, self.Q, U, None)
        elif self.tall and left is not None:
            gemm(self.Q, left, None, 1, 0, False, False, U)
        elif left is not None:
            gemm(left, self.Q, None, 1, 0, True, True, Vt)
        if self.both:
            self.unsort(right, self.Q2, U, Vt)

    def unsort(self, vectors, Q, U, Vt):
        """Rows of Q · vectors, P's order, to Vt where A is tall, else to U."""
        products = gemm(vectors, Q, None, 1, 0, True, True, None)
        self.stage("svd_unsort", products.buffer, self.places, *addresses(U, Vt), *self.sizes, both=False)
