"""LU and QR of many small problems by others, for figure 11 of Anderson, Sheffield & Keutzer (2012).

On the device cuBLAS' getrfBatched, pivoted as the paper's peers are and not, and torch.geqrf (cuBLAS' geqrfBatched)
where PyTorch is installed; LAPACK on all cores of the CPU, a process each, timed with fewer matrices and scaled.
"""

from h2gpu.apps.benchmarks.peers import lapack as lapack_peer
from h2gpu.apps.benchmarks.peers import linear as linear_peers
from h2gpu.apps.benchmarks.peers import peers
from h2gpu.apps.benchmarks.peers.peers import Peer
from h2gpu.arrays import to_host

HOST_MATRICES = 2000  # that LAPACK is timed with at most


def times(routine, inputs):
    """Peers of "lu" or "qr" of (batch, n, n) CuPy arrays in rotation: those of the device first, LAPACK last."""
    if routine == "qr":
        return [*peers.times("qr_r", inputs), lapack(routine, inputs[0])]
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
    ms, cores = lapack_peer.milliseconds(routine, some)
    ms *= len(A) / len(some)
    return Peer(f"LAPACK {'geqrf' if routine == 'qr' else 'getrf'}, processes: {cores}", ms, ms, len(some))
