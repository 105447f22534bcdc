"""The batched routines as benchmarks and tuning meet them: inputs, the work on the device, nominal work, residuals.

A `Case` says what is measured; `ROUTINES[case.routine]` knows how. Spectra of the inputs: see spectra.py.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.routines import criteria, nominal, spot_checks
from h2gpu.apps.benchmarks.routines.blas import BLAS
from h2gpu.apps.benchmarks.routines.linear import LINEAR
from h2gpu.apps.benchmarks.routines.routine import Routine
from h2gpu.apps.benchmarks.routines.spectra import RANK, matrices
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse import BlockSparse, block_multiply

PANEL = 16  # columns of the products in the bound of GEBRD
PAPER_BOUND = "paper's bound GFLOP/s"
OVERSAMPLE = 8  # samples of the randomized SVD beyond RANK
ATOL = 1e-6  # of the truncated SVD


@dataclass(frozen=True)
class Case:
    """One measurement.

    routine    a key of ROUTINES
    batch      matrices
    shape      m, n of every matrix; lowest and highest m, n of a ragged batch
    table      the table that the row belongs to, and `figure`, what it shows there
    samples    that the randomized SVD shall take; 0: RANK + OVERSAMPLE
    """

    routine: str
    dtype: str
    batch: int
    shape: tuple
    table: str = ""
    figure: str = ""
    method: str = ""
    spectrum: str = ""
    target_ms: float | None = None
    samples: int = 0

    @property
    def label(self):
        """The case in words, for progress and errors."""
        words = [self.routine, self.method, self.dtype, f"{self.batch} of {ROUTINES[self.routine].shown(self.shape)}"]
        return " ".join(filter(None, [*words, self.spectrum, self.samples and f"{self.samples} samples"]))


class QR(Routine):
    def __init__(self, mode):
        self.mode = mode

    def call(self, case):
        return lambda A: batched.qr(A, self.mode)

    def nominal(self, case, one, result):
        m, n = case.shape
        ones = np.ones(case.batch)
        return nominal.qr(m * ones, n * ones, case.dtype, self.mode == "reduced")

    def criterion(self, case, A, result):
        return spot_checks.qr(A, *(result if self.mode == "reduced" else (None, result)))


class RaggedQR(Routine):
    def shown(self, shape):
        return f"{shape[0]}…{shape[1]}×{shape[2]}"

    def inputs(self, case, rotate=True):
        import cupy

        low, high, n = case.shape
        m = np.random.default_rng(0).integers(low, high, case.batch)
        A = MatrixBatch.empty(m, np.full(case.batch, n), np.dtype(case.dtype), cupy)
        A.buffer[:] = cupy.random.standard_normal(A.buffer.size, dtype=case.dtype)
        return [A]

    def call(self, case):
        return lambda A: batched.qr(A, "r")

    def nominal(self, case, one, result):
        return nominal.qr(one.rows, one.columns, case.dtype, False)

    def criterion(self, case, A, result):
        return spot_checks.worst_of(criteria.triangle_error, A, result)


class SVD(Routine):
    """Left vectors and values."""

    kernels: ClassVar = {
        "register": ("svd_register",),
        "shared": ("svd_shared",),
        "block-gram": ("svd_gram",),
        "block-direct": ("svd_round",),
    }

    def call(self, case):
        return lambda A: batched.svd(A, "left", case.method or "auto")

    def work(self, case):
        from h2gpu.batched.svd.jacobi import decompose

        return lambda A: decompose(A, "left", case.method or "auto")

    def nominal(self, case, one, result):
        return nominal.svd(case.batch, *case.shape, case.dtype, self.facts(case, result)["sweeps"])

    def facts(self, case, result):
        sweeps = result[1][:-1]
        return {"sweeps": float(sweeps.mean()), "most sweeps": int(sweeps.max())}

    def criterion(self, case, A, result):
        return spot_checks.svd(A, *result[0])


class GEBRD(Routine):
    """d and e, and with `work` the reflectors: what LAPACK's GEBRD leaves."""

    def call(self, case):
        return lambda A: batched.bidiagonalize(A, "none")

    def work(self, case):
        from h2gpu.batched.bidiagonal.stacks import factor_stack

        return lambda A: factor_stack(A, keep=True)

    def nominal(self, case, one, result):
        return nominal.gebrd(case.batch, *case.shape, case.dtype)

    def facts(self, case, result):
        """The bound of Dong et al. (2018) from our own products: half of the work is GEMV's, half GEMM's."""
        A, flops = self.inputs(case), 2e-6 * case.batch * case.shape[0] * case.shape[1]
        x, left, right = A[0][:, 0].copy(), A[0][:, :, :PANEL].copy(), A[0][:, :PANEL].copy()
        gemv = flops / timing.device_ms(lambda A: batched.gemv(A, x), A)
        gemm = flops * left.shape[2] / timing.device_ms(lambda _: batched.gemm(left, right), A)
        return {"gemv GFLOP/s": gemv, "gemm GFLOP/s": gemm, PAPER_BOUND: 2 * gemm * gemv / (gemm + gemv)}

    def criterion(self, case, A, result):
        return spot_checks.bidiagonal(A, *result[:2])


class TruncatedSVD(Routine):
    """Left vectors and values to an absolute tolerance."""

    def call(self, case):
        return lambda A: batched.truncated_svd(A, ATOL)

    def nominal(self, case, one, result):
        return nominal.pivoted_qr(case.batch, *case.shape, case.dtype, self.facts(case, result)["rank"])

    def facts(self, case, result):
        return {"rank": float((result[1] > 0).sum()) / case.batch}

    def criterion(self, case, A, result):
        return spot_checks.truncated(A, result[0], ATOL)


class RSVD(Routine):
    def call(self, case):
        return lambda A: batched.rsvd(A, RANK, (case.samples or RANK + OVERSAMPLE) - RANK, random_state=0)

    def nominal(self, case, one, result):
        return nominal.rsvd(case.batch, *case.shape, case.dtype, RANK, self.columns(case))

    def facts(self, case, result):
        return {"samples": self.columns(case)}

    def criterion(self, case, A, result):
        return spot_checks.svd(A, *result)

    def columns(self, case):
        return min(case.samples or RANK + OVERSAMPLE, *case.shape)


class GEMM(Routine):
    def __init__(self, ragged):
        self.ragged = ragged

    def shown(self, shape):
        return f"{shape[0]}³"

    def inputs(self, case, rotate=True):
        pair = matrices(2 * case.batch, *case.shape, case.dtype).reshape(2, case.batch, *case.shape)
        pairs = [tuple(M) for M in (timing.rotation(pair) if rotate else [pair])]
        return [tuple(map(MatrixBatch.from_stack, pair)) for pair in pairs] if self.ragged else pairs

    def call(self, case):
        return lambda pair: batched.gemm(*pair, method=case.method or "auto")

    def nominal(self, case, one, result):
        return nominal.gemm(case.batch, *case.shape, case.shape[1], case.dtype)

    def facts(self, case, result):
        """Of products compiled for their size, what figure 7 of Nath et al. shows."""
        if case.method != "fixed":
            return {}
        from h2gpu.batched.products import fixed

        sizes = *case.shape, case.shape[1]
        return {"extra flops": fixed.plan(result.dtype, *sizes, False, False).excess(result.dtype, *sizes[:2])}

    def criterion(self, case, pair, result):
        if self.ragged:
            pair, result = [M.as_stack() for M in pair], result.as_stack()
        return spot_checks.gemm(*pair, result)


class BlockMultiply(Routine):
    """A symmetric band of blocks, like a nearfield; shape: rows from and below, blocks a column, right sides."""

    def shown(self, shape):
        return f"blocks {shape[0]}…{shape[1] - 1}, {shape[2]} a column, {shape[3]} right"

    def inputs(self, case, rotate=True):
        import cupy

        low, high, band, sides = case.shape
        sizes = np.random.default_rng(0).integers(low, high, case.batch)
        columns = np.repeat(np.arange(case.batch), band)
        rows = columns + np.tile(np.arange(band), case.batch)
        columns, rows = columns[rows < case.batch], rows[rows < case.batch]
        blocks = MatrixBatch.empty(sizes[rows], sizes[columns], np.dtype(case.dtype), cupy)
        blocks.buffer[:] = cupy.random.standard_normal(blocks.buffer.size, dtype=case.dtype)
        starts = offsets_of(sizes)
        A = BlockSparse(blocks, rows, columns, starts[:-1], starts[:-1], True)
        return [(A, cupy.random.standard_normal((int(starts[-1]), sides), dtype=case.dtype))]

    def call(self, case):
        return lambda pair: block_multiply(*pair, len(pair[1]))

    def nominal(self, case, one, result):
        return nominal.block_multiply(one[0].blocks.buffer.size, *one[1].shape, case.dtype)

    def criterion(self, case, pair, result):
        return None  # tests compare it with dense matrices


ROUTINES = (
    {
        "qr": QR("reduced"),
        "qr_r": QR("r"),
        "qr_ragged": RaggedQR(),
        "svd": SVD(),
        "gebrd": GEBRD(),
        "truncated_svd": TruncatedSVD(),
        "rsvd": RSVD(),
        "gemm": GEMM(False),
        "gemm_ragged": GEMM(True),
        "block_multiply": BlockMultiply(),
    }
    | BLAS
    | LINEAR
)
