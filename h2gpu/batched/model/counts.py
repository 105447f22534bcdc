"""What one problem asks of a GPU in each kernel: operations, words moved, exchanges, barriers, and what waits for what.

Anderson, Sheffield & Keutzer (2012), table VI, for these kernels instead of theirs: counts follow their loops step by
step, multiply-adds of complex numbers as four. A chain counts what happens one after another in one thread, beside the
instructions themselves. What theirs lacks: instructions of every kind, as cuobjdump shows them for sm_90, and what goes
to local memory where registers do not suffice.
"""

from dataclasses import dataclass, fields
from math import ceil, log2

import numpy as np

from h2gpu.batched.registers.layouts import WORD

WARP = 32
WORKING_WORDS = 40  # registers of a thread beside the matrix: addresses, a step's numbers
OVERHEAD = 2  # instructions for each multiply-add, 385 for 192 a step in the SASS of householder_qr.cuh
SWEEPS = 6  # of Jacobi, as in h2gpu.apps.benchmarks.routines.nominal
SCALARS = 8  # multiply-adds, one after another, of a reflection's numbers or a rotation's
PANEL = 16  # columns of a panel of kernels/qr/blocked_qr.cuh
# waits and instructions of a thread's part of kernels/qr/householder_qr.cuh beside its steps, by the SASS: of a step
# the row of R that goes out, one of I before Q is formed; of a row in registers that comes, is staged and goes; of all
ROW_OUT, ROW_IN, ROW_HELD, COLUMN_WAITS = (103, 29), (7, 10), (80, 30), 300


@dataclass(frozen=True)
class Counts:
    """Of one problem: throughput first, then the chain of one thread, then what it occupies."""

    flops: float = 0  # of the vector pipe, a real multiply-add as two
    tensor_flops: float = 0  # of mma instructions, float32 in parts of TF32
    product_flops: float = 0  # of whole matrix products, as fast as large ones are measured
    nbytes: float = 0  # read and written in device memory
    passed: float = 0  # the same of a pass over a matrix that comes again and again, while other rows are worked on
    spilled: float = 0  # bytes that go to local memory and come back
    issued: float = 0  # instructions of its warps, or its part of those of a warp that it shares
    shared_bytes: float = 0  # that lanes read and write in shared memory
    shuffles: float = 0  # of one 32-bit word by a whole warp
    dependent: float = 0  # chain: multiply-adds that wait for the one before
    barriers: float = 0
    roots: float = 0  # reciprocal square roots
    divisions: float = 0
    shared_trips: float = 0  # a write that somebody else reads
    shuffle_trips: float = 0
    global_trips: float = 0  # reads that are waited for
    stalls: float = 0  # cycles that instructions wait for those before by the SASS: branches for what decides them
    threads: int = 1
    words: int = 0  # registers of a thread


@dataclass(frozen=True)
class Field:
    """A precision: bytes, 32-bit words, real multiply-adds of one product."""

    size: int
    products: int

    @classmethod
    def of(cls, dtype):
        dtype = np.dtype(dtype)
        return cls(dtype.itemsize, 4 if dtype.kind == "c" else 1)

    @property
    def words(self):
        return self.size // WORD


def added(*parts):
    """Counts of parts of a kernel that follow one another: sums, and the widest occupation."""
    names = [field.name for field in fields(Counts)]
    widest = {name: max(getattr(part, name) for part in parts) for name in ("threads", "words")}
    return Counts(**{name: sum(getattr(part, name) for part in parts) for name in names} | widest)


def column_qr(dtype, m, n, row, want_q=True):
    """kernels/qr/householder_qr.cuh: some columns a thread, rows in blocks; row: of the table qr."""
    field = Field.of(dtype)
    rows, columns = row["register_rows"], row["register_columns"]
    threads = 1 << (ceil(n / columns) - 1).bit_length()
    blocks, k = ceil(m / rows), min(m, n)
    steps = sum(min(b * rows + rows, k) for b in range(blocks))
    warps, ways = max(1.0, threads / WARP), 2 if want_q else 1
    products = 2 * rows * columns
    stalls, beside = (
        columns * (k * (ROW_OUT[i] + (ways - 1) * ROW_IN[i]) + blocks * rows * ROW_HELD[i]) for i in (0, 1)
    )
    return Counts(
        flops=2 * ways * steps * products * threads,
        nbytes=(m * n + k * n + (m * k if want_q else 0)) * field.size,
        shared_bytes=ways * steps * threads * columns * field.size,
        shuffles=steps * rows * field.words * min(1.0, threads / WARP) * warps,
        issued=(OVERHEAD * (ways * steps * products + steps * 2 * rows) + beside) * threads / WARP,
        dependent=steps * (rows + SCALARS) + (ways - 1) * steps * rows,
        stalls=COLUMN_WAITS + stalls,
        barriers=steps if threads > WARP else 0,
        roots=steps,
        divisions=steps,
        shared_trips=steps if threads > WARP else 0,
        shuffle_trips=0 if threads > WARP else steps,
        global_trips=blocks,
        threads=threads,
        words=rows * (columns + 1) * field.words + WORKING_WORDS,
    )


def blocked_qr(dtype, m, n, row, want_q=True):
    """kernels/qr/blocked_qr.cuh: strips of PANEL columns in registers, panels stream by; row: of qr_blocked."""
    field, ways = Field.of(dtype), 2 if want_q else 1
    threads, k = row["warps"] * WARP, min(m, n)
    strips, panels = ceil(n / PANEL), ceil(k / PANEL)
    met = [j for strip in range(strips) for j in range(min(strip, panels))]
    met += [j for strip in range(panels * (ways - 1)) for j in range(strip + 1)]
    visits, heights = len(met), sum(m - PANEL * j for j in met)  # of panels by strips, and rows of those together
    together = row["warps"] > 1  # sums over warps
    terms = 3 if field.size == WORD else 1  # products of TF32 parts
    held = ceil(m / (row["warps"] * 8 * row["tiles"])) * row["tiles"] * 8 * PANEL / WARP  # entries of a lane
    return Counts(
        flops=4 * k * m * PANEL,
        tensor_flops=terms * (4 * heights * PANEL**2 + 2 * visits * PANEL**3),
        nbytes=(ways * m * n + k * n + heights * PANEL) * field.size,
        shared_bytes=k * m * field.size * 2,
        shuffles=4 * k * field.words * row["warps"],
        issued=OVERHEAD * (k * 2 * held + visits * 4 * held) * row["warps"],
        dependent=k * (held + SCALARS),
        barriers=k + 2 * visits if together else 0,
        roots=k,
        divisions=k,
        shared_trips=(2 if together else 1) * k + 2 * visits,
        shuffle_trips=(3 if together else 4) * k,
        global_trips=visits + strips,
        threads=threads,
        words=held * field.words + WORKING_WORDS,
    )


def register_svd(dtype, m, n):
    """kernels/svd/svd_register.cuh: left vectors, a column a lane: pivoted QR, LQ, Jacobi, reflectors."""
    field, long, k = Field.of(dtype), max(m, n), min(m, n)
    lanes = max(8, 1 << (k - 1).bit_length())
    rounds, steps = SWEEPS * (lanes - 1), 2 * k
    products = rounds * 3 * lanes + steps * 2 * max(long, lanes) + steps * 2 * lanes
    words = rounds * (lanes + 1) * field.words + steps * 2 * field.words
    return Counts(
        flops=2 * products * lanes,
        nbytes=(m * n + m * k + k) * field.size,
        shared_bytes=3 * steps * max(long, lanes) * lanes * field.size,
        shuffles=words * lanes / WARP,
        issued=OVERHEAD * products * lanes / WARP,
        dependent=(rounds + 2 * steps) * (lanes + SCALARS),
        roots=2 * rounds + steps,
        divisions=rounds + steps,
        shared_trips=2 * steps,
        shuffle_trips=2 * rounds + steps * log2(lanes),
        global_trips=1,
        threads=lanes,
        words=(lanes + max(long, lanes)) * field.words + WORKING_WORDS,
    )
