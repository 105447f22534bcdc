"""QR of space-time adaptive radar processing: complex matrices of single precision, many at once.

Table VII of Anderson, Sheffield & Keutzer (2012), sizes of the RT_STAP benchmark and of the Imagine processor, one
problem a thread block: all three lie in the registers of an H200, where theirs needed a tiled QR for the larger two.
Beside it torch.geqrf (cuBLAS' geqrfBatched) on the same device, LAPACK on all cores of the CPU, what the model
foretells and the paper's numbers.

    python -m h2gpu.apps.studies.radar [--output FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers import peers
from h2gpu.apps.benchmarks.peers import small as small_peers
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import small as study_small
from h2gpu.batched import registers

PAPER = {(80, 16): (134, 5.4), (240, 66): (99, 36), (192, 96): (98, 27)}  # GFLOP/s of a Quadro 6000, and of MKL
TOLERANCE = 30  # of ‖AᴴA − RᴴR‖ / ‖AᴴA‖, in units in the last place times rows


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.radar", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.radar", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("-o", "--output", default="benchmarks/batched", help="folder for study_radar.csv")
    options = parser.parse_args(argv)
    device = timing.gpu_name()
    rows = [row(case, device) for case in study_small.cases() if case.figure == "VII"]
    print(tables.text(rows))
    tables.write(Path(options.output) / "study_radar.csv", rows, device)


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
    host = small_peers.lapack_ms("qr", A)
    ours, theirs = PAPER[case.m, case.n]
    found |= {"LAPACK": gigaflop / host, "times LAPACK": host / ms, "paper": ours, "paper, MKL": theirs}
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


if __name__ == "__main__":
    sys.exit(main())
