"""What became of each matrix of a decomposition: 0 or more, or why it failed; and the error that says so."""

import numpy as np

NOT_FINITE, NOT_CONVERGED = -1, -2  # Failure of kernels/common/thread/verdicts.cuh
REASONS = {NOT_FINITE: "NaN or Inf", NOT_CONVERGED: "no convergence"}
NAMED = 20  # matrices that a message names at most


def on_its_way(info):
    """A function that gives `info` on the host, once that much of the current stream's work is done, and no more.

    It is copied on a stream of its own, so that what the current stream is given next does not wait for that.
    """
    if isinstance(info, np.ndarray):
        return lambda: info
    import cupy

    from h2gpu.batched.streams import urgent_stream

    memory = cupy.cuda.alloc_pinned_memory(max(1, info.nbytes))
    host = np.frombuffer(memory, info.dtype, info.size)
    beside = urgent_stream(cupy.cuda.runtime.getDevice())
    beside.wait_event(cupy.cuda.get_current_stream().record())
    info.get(stream=beside, out=host, blocking=False)
    arrival = beside.record()

    def wait(copied=info):  # whose memory nobody is given before
        arrival.synchronize()
        return host

    return wait


def check(info, name="svd", first=0):
    """LinAlgError naming the matrices of negative info; waits for a GPU. first: the number of the first matrix."""
    if len(info) and int(info.min()) < 0:
        raise np.linalg.LinAlgError(f"{name}: {'; '.join(_reasons(info, first))}")


def refuse(info, name, reason):
    """LinAlgError naming the matrices whose info, of any shape, is not 0; waits for a GPU. reason: of positive info."""
    info = info.ravel()
    if info.size and bool((info != 0).any()):
        raise np.linalg.LinAlgError(f"{name}: {'; '.join(_reasons(info, 0, reason))}")


def _reasons(info, first, positive=None):
    """What to say of the matrices of negative info, and of positive where a reason is given."""
    from h2gpu.batched.arrays import to_host

    info = to_host(info)
    found = [(reason, info == code) for code, reason in REASONS.items()]
    found += [(positive, info > 0)] if positive else []
    return [f"{reason} in matrices {_names(first + np.flatnonzero(of))}" for reason, of in found if of.any()]


def _names(which):
    return ", ".join(map(str, which[:NAMED])) + (" …" if len(which) > NAMED else "")
