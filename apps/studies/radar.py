"""QR of space-time adaptive radar processing: complex matrices of single precision, many at once.

Table VII of Anderson, Sheffield & Keutzer (2012), sizes of the RT_STAP benchmark and of the Imagine processor, one
problem a thread block: all three lie in the registers of an H200, where theirs needed a tiled QR for the larger two.
Beside it torch.geqrf (cuBLAS' geqrfBatched) on the same device, LAPACK on all cores of the CPU, a process each, what
the model foretells and the paper's numbers.

A second table, study_complex.csv, has QR and SVD of h2gpu.batched, beyond registers: QR by panels, in both precisions,
with Q and without; and the same where a multiprocessor holds one matrix in shared memory or none. Beside it PyTorch and
LAPACK.

    python -m h2gpu.apps.studies.radar [--output FOLDER]
"""

import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers import lapack, peers
from h2gpu.apps.benchmarks.peers import small as small_peers
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.routines.criteria import failures, on_host, qr_error, svd_error, triangle_error
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import small as study_small
from h2gpu.batched import registers

PAPER = {(80, 16): (134, 5.4), (240, 66): (99, 36), (192, 96): (98, 27)}  # GFLOP/s of a Quadro 6000, and of MKL
TOLERANCE = 30  # of ‖AᴴA − RᴴR‖ / ‖AᴴA‖, in units in the last place times rows
SIZES = ((384, 80, 16), (512, 240, 66), (512, 192, 96), (256, 256, 128), (64, 512, 256))
SVD_SIZES = ((1000, 16, 16), (500, 32, 32), (200, 64, 64), (100, 240, 66), (20, 256, 256))
CHECKED = 4  # matrices of a batch that are held against the criteria


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.radar", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.radar", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("-o", "--output", default="benchmarks/batched", help="folder for the tables")
    options = parser.parse_args(argv)
    device = timing.gpu_name()
    rows = [row(case, device) for case in study_small.cases() if case.figure == "VII"]
    print(tables.text(rows))
    tables.write(Path(options.output) / "study_radar.csv", rows, device)
    rows = [beyond_row(case) for case in beyond_cases()]
    print(tables.text(rows))
    tables.write(Path(options.output) / "study_complex.csv", rows, device)


def row(case, device):
    """One size: GFLOP/s of everybody, and milliseconds of ours, measured and foretold."""
    import cupy

    A = problems(case)
    inputs = timing.rotation(cupy.asarray(A))
    fraction = departure(A, batched.to_host(registers.qr(inputs[0], case.layout)[0]))
    if not fraction < 1:
        raise ArithmeticError(f"R of {case.m} × {case.n} departs by {fraction:.3g} of what is allowed")
    ms = timing.device_ms(lambda A: registers.qr(A, case.layout, return_info=True), inputs)
    gigaflop = 1e-6 * study_small.flops(case)
    found = {"batch": case.batch, "shape": f"{case.m}×{case.n}", "ms": ms}
    found |= {"predicted ms": study_small.predicted(case, device), "GFLOP/s": gigaflop / ms}
    for peer in peers.times("qr_r", inputs):
        found |= {peer.name: gigaflop / peer.ms, "times as fast": peer.ms / ms}
    host, cores = lapack.milliseconds("qr", A)
    ours, theirs = PAPER[case.m, case.n]
    found |= {"LAPACK": gigaflop / host, "LAPACK's processes": cores, "times LAPACK": host / ms}
    found |= {"paper": ours, "paper, MKL": theirs}
    return found | {"departure": fraction}


def problems(case):
    """Complex Gaussian samples, (batch, m, n)."""
    parts = np.random.default_rng(0).standard_normal((2, case.batch, case.m, case.n), np.float32)
    return (parts[0] + 1j * parts[1]).astype(case.dtype)


def departure(A, QR):
    """‖AᴴA − RᴴR‖_F / ‖AᴴA‖_F of the worst matrix, as a fraction of what rounding may make of it."""
    wide, R = A.astype(np.complex128), np.triu(QR[:, : A.shape[2]].astype(np.complex128))
    gram = wide.conj().swapaxes(1, 2) @ wide
    off = np.linalg.norm(gram - R.conj().swapaxes(1, 2) @ R, axis=(1, 2)) / np.linalg.norm(gram, axis=(1, 2))
    return float(off.max()) / (TOLERANCE * A.shape[1] * np.finfo(A.dtype).eps)


WORK = {  # of each mode: what is timed, its criterion, the peers
    "r": (lambda A: batched.qr(A, "r"), triangle_error, "qr_r"),
    "reduced": (batched.qr, qr_error, "qr"),
    "svd": (lambda A: batched.svd(A, return_info=True), svd_error, "svd"),
}


class Beyond(NamedTuple):
    """A batch of complex matrices beyond registers: QR without or with Q, "svd" with both sides."""

    dtype: str
    mode: str
    batch: int
    m: int
    n: int


def beyond_cases():
    """Every row of the second table."""
    for dtype in ("complex64", "complex128"):
        for mode in ("r", "reduced"):
            for size in SIZES:
                yield Beyond(dtype, mode, *size)
        for size in SVD_SIZES:
            yield Beyond(dtype, "svd", *size)


def beyond_flops(case):
    """Of R alone, or of R and Q: a complex multiply-add is eight; of an SVD, six sweeps that turn both sides."""
    m, n = case.m, case.n
    if case.mode == "svd":
        return 6 * case.batch * n * (n - 1) / 2 * (32 * m + 16 * n)
    return 8 * case.batch * (m * n**2 - n**3 / 3) * (2 if case.mode == "reduced" else 1)


def beyond_row(case):
    """Milliseconds of everybody. Raises ArithmeticError where a result fails LAPACK's criteria."""
    import cupy

    from h2gpu.batched.qr import complex_panels

    A = problems(case)
    inputs = timing.rotation(cupy.asarray(A))
    work, error, routine = WORK[case.mode]
    results = work(inputs[0][:CHECKED])
    if failures(error, A[:CHECKED], *map(on_host, (results,) if case.mode == "r" else results[:3])):
        raise ArithmeticError(f"{case} fails LAPACK's criteria")
    ms = timing.device_ms(work, inputs)
    gigaflop = 1e-6 * beyond_flops(case)
    found = {"dtype": case.dtype, "mode": case.mode, "batch": case.batch, "shape": f"{case.m}×{case.n}"}
    found |= {"ms": ms, "GFLOP/s": gigaflop / ms}
    for name, resident in (("one held ms", 1), ("none held ms", math.inf)) if case.mode != "svd" else ():
        found[name] = timing.device_ms(lambda A, r=resident: complex_panels.qr(A, case.mode, resident=r), inputs)
    for peer in peers.times(routine, inputs)[:1]:
        found |= {"peer": peer.name, "peer ms": peer.ms, "times as fast": peer.ms / ms}
    if case.mode == "r":
        host = small_peers.lapack("qr", inputs[0]).ms
        found |= {"LAPACK ms": host, "times LAPACK": host / ms}
    return found


if __name__ == "__main__":
    sys.exit(main())
