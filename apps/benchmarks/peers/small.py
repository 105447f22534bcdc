"""LU and QR of many small problems by others, for figure 11 of Anderson, Sheffield & Keutzer (2012).

On the device cuBLAS' getrfBatched, pivoted as the paper's peers are and not, and torch.geqrf (cuBLAS' geqrfBatched)
where PyTorch is installed; LAPACK on all cores of the CPU by the compiled loops of NumPy, timed with fewer matrices and
scaled.
"""

import time

import numpy as np

from h2gpu.apps.benchmarks.peers import linear as linear_peers
from h2gpu.apps.benchmarks.peers import peers
from h2gpu.apps.benchmarks.peers.peers import Peer
from h2gpu.batched.device.threads import parallel, pieces

HOST_MATRICES = 1000  # that LAPACK is timed with at most
CALLS = 5


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
    from h2gpu.arrays import to_host

    some = to_host(A[:HOST_MATRICES])
    ms = lapack_ms(routine, some) * len(A) / len(some)
    return Peer(f"LAPACK {'geqrf' if routine == 'qr' else 'getrf'}, CPU", ms, ms, len(some))


def lapack_ms(routine, A):
    """Milliseconds for all matrices, spread over the cores: the fastest of CALLS."""
    each = pieces(np.full(len(A), A[0].size), A.size // 256)
    work, found = {"qr": _qr, "lu": _lu}[routine](A), []
    for _ in range(CALLS):
        begin = time.perf_counter()
        parallel(work, each)
        found.append(1e3 * (time.perf_counter() - begin))
    return min(found)


def _qr(A):
    return lambda piece: np.linalg.qr(A[piece], mode="raw")


def _lu(A):
    """GETRF of whole stacks by NumPy's compiled loop: slogdet adds n logarithms, where a loop of ours added calls."""
    return lambda piece: np.linalg.slogdet(A[piece])
