"""The same work by others: PyTorch's or the vendor's routines timed in the same run, and KBLAS, the paper's own code.

Routines of PyTorch that go through the matrices one by one would take minutes: then fewer matrices are timed, and their
time is scaled to the batch. KBLAS was measured once, elsewhere on an H200: elsewhere.csv.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.routines import linear as linear_routines
from h2gpu.apps.benchmarks.routines.blas import AXPY_ALPHA

FEW = 4  # matrices tried first
PATIENCE_MS = 60  # a try that takes longer is scaled
DRIVERS = {"gesvdj": "cuSOLVER's Jacobi", "gesvda": "eigenvalues of AᵀA: accuracy of single precision"}
CUBLAS = ("gemv", "gemv_t", "symv", "trsm")  # that cuBLAS is asked for itself, before PyTorch
LOOPED = ("qr", "qr_r", "svd")  # that the vendor is asked for, matrix by matrix where it has no batch, after PyTorch
NAMES = {
    "qr": ("torch.linalg.qr",),
    "qr_r": ("torch.geqrf",),
    "svd": ("gesvdj", "gesvda"),
    "rsvd": ("torch.svd_lowrank",),
    "gemm": ("torch.bmm",),
    "gemv": ("torch.bmm by a column",),
    "gemv_t": ("torch.bmm by a column, transposed",),
    "symv": ("torch.bmm by a column",),
    "syrk": ("torch.bmm by its transpose",),
    "trsm": ("torch.linalg.solve_triangular",),
    "solve": ("torch.linalg.solve",),
    "lstsq": ("torch.linalg.lstsq",),
    "axpy": ("torch.add by alpha",),
}

ELSEWHERE = Path(__file__).parent / "elsewhere.csv"


def kblas_ms(routine, dtype, shape, spectrum=""):
    """KBLAS' milliseconds for (batch, m, n), or None; QR: reflectors and, with Q, the explicit Q."""
    return _kblas().get((routine, dtype, *shape, spectrum if routine == "svd" else ""))


@cache
def _kblas():
    rows = csv.DictReader(line for line in ELSEWHERE.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    return {
        (row["routine"], row["dtype"], *(int(row[name]) for name in ("batch", "m", "n")), row["spectrum"]): float(
            row["value"]
        )
        for row in rows
        if row["library"] == "KBLAS"
    }


@dataclass(frozen=True)
class Peer:
    """How long another's routine takes for a batch: on the device, and as called; `matrices` were timed."""

    name: str
    ms: float
    call_ms: float
    matrices: int


def times(routine, arrays, columns=None):
    """A Peer for each of the routine's, PyTorch's only where it is there: its accurate or direct one first.

    arrays    inputs in rotation: (batch, m, n) CuPy arrays, or pairs of them
    columns   of the random samples, for svd_lowrank
    """
    if routine == "gebrd":
        from h2gpu.apps.benchmarks.peers import gebrd as gebrd_peers  # which take Peer from here

        return gebrd_peers.times(arrays)
    if routine in linear_routines.LINEAR:
        from h2gpu.apps.benchmarks.peers import linear as linear_peers

        return linear_peers.times(routine, arrays)
    found = []
    if routine in CUBLAS:
        from h2gpu.apps.benchmarks.peers import blas as blas_peers

        found = blas_peers.times(routine, arrays)
    if routine in NAMES:
        found += _torch(routine, arrays, columns)
    if routine in LOOPED and arrays[0].dtype.kind == "f":
        from h2gpu.apps.benchmarks.peers import decompositions

        found += decompositions.times(routine, arrays)
    return found


def note(routine):
    """What there is to say of peers that cannot be timed."""
    if routine not in ("qr", "qr_r"):
        return ""
    from h2gpu.apps.benchmarks.peers import magma

    return magma.note(routine)


def _torch(routine, arrays, columns):
    try:
        import torch
    except ImportError:
        return []
    tensors = [tuple(map(torch.from_dlpack, _pair(array))) for array in arrays]
    return [grown(name, _work(torch, name, columns), tensors) for name in NAMES[routine]]


def _work(torch, name, columns):
    if name in DRIVERS:
        return lambda A: torch.linalg.svd(A, full_matrices=False, driver=name)
    if name == "torch.svd_lowrank":
        return lambda A: torch.svd_lowrank(A, columns, niter=0)
    return {
        "torch.linalg.qr": torch.linalg.qr,
        "torch.geqrf": torch.geqrf,
        "torch.bmm": torch.bmm,
        "torch.bmm by a column": lambda A, x: torch.bmm(A, x[..., None]),
        "torch.bmm by a column, transposed": lambda A, x: torch.bmm(A.mT, x[..., None]),
        "torch.bmm by its transpose": lambda A, _: torch.bmm(A, A.mT),
        "torch.add by alpha": lambda X, Y: torch.add(Y, X, alpha=AXPY_ALPHA),
        "torch.linalg.solve": torch.linalg.solve,
        "torch.linalg.lstsq": lambda A, b: torch.linalg.lstsq(A, b, driver="gels"),
        "torch.linalg.solve_triangular": lambda A, B: torch.linalg.solve_triangular(A, B, upper=False),
    }[name]


def _pair(array):
    return array if isinstance(array, tuple) else (array,)


def grown(name, work, tensors, few=FEW):
    """The Peer of more and more matrices: of all of them, or scaled from as many as patience allows, `few` at least."""
    batch = len(tensors[0][0])
    count = min(batch, few)
    leading = [_leading(work, number) for number in (count, batch)]
    timing.once_ms(leading[0], tensors[0])  # makes handles
    while count < batch:
        ms = timing.once_ms(_leading(work, count), tensors[0])
        if ms > PATIENCE_MS:
            scaled = ms * batch / count
            return Peer(name, scaled, scaled, count)
        count = min(batch, 4 * count)
    return Peer(name, timing.device_ms(leading[1], tensors), timing.call_ms(leading[1], tensors), batch)


def _leading(work, count):
    return lambda tensors: work(*(tensor[:count] for tensor in tensors))
