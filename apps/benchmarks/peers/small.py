"""LU, QR and solutions of small problems by others, for figures 11 and 12 of Anderson, Sheffield & Keutzer (2012).

On the device cuBLAS' getrfBatched, pivoted as the paper's peers are and not, and torch.geqrf (cuBLAS' geqrfBatched)
where PyTorch is installed, its solutions by LU and by QR for one right-hand side; LAPACK on all cores of the CPU, a
process each, timed with fewer matrices and scaled.
"""

from h2gpu.apps.benchmarks.peers import lapack as lapack_peer
from h2gpu.apps.benchmarks.peers import linear as linear_peers
from h2gpu.apps.benchmarks.peers import peers
from h2gpu.apps.benchmarks.peers.peers import Peer
from h2gpu.arrays import to_host

HOST_MATRICES = 2000  # that LAPACK is timed with at most
HOST = {"lu": "getrf", "qr": "geqrf", "gauss-jordan": "gesv", "lstsq": "gels"}
ON_HOST = {"getrf": "lu", "geqrf": "qr"}  # by other names in peers/lapack.py
SOLUTIONS = {"gauss-jordan": "solve", "lstsq": "lstsq"}


def times(routine, inputs):
    """Peers of a routine of HOST for (batch, n, n) CuPy arrays in rotation: those of the device first, LAPACK last."""
    if routine == "qr":
        return [*peers.times("qr_r", inputs), lapack(routine, inputs[0])]
    if routine in SOLUTIONS:
        import cupy

        pairs = [(A, cupy.ones((*A.shape[:2], 1), A.dtype)) for A in inputs]
        return [*peers.times(SOLUTIONS[routine], pairs), lapack(routine, inputs[0])]
    return [*(linear_peers.cublas_lu(inputs, pivoted) for pivoted in (True, False)), lapack(routine, inputs[0])]


def columns(routine, inputs, gigaflop):
    """Of the table: names, rates and milliseconds of everybody."""
    *found, host = times(routine, inputs)
    row = {}
    for place, peer in zip(("LAPACK", "peer", "second peer"), [host, *found]):
        row |= {place: peer.name, f"{place} GFLOP/s": gigaflop / peer.ms, f"{place} ms": peer.ms}
    return row


def lapack(routine, A):
    """LAPACK's Peer."""
    some = to_host(A[:HOST_MATRICES])
    name = HOST[routine]
    ms, cores = lapack_peer.milliseconds(ON_HOST.get(name, name), some)
    ms *= len(A) / len(some)
    return Peer(f"LAPACK {name}, processes: {cores}", ms, ms, len(some))
