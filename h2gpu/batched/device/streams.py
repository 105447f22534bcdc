"""Two independent works at once on a GPU: what one leaves idle the other uses."""

from functools import cache

import numpy as np

URGENT = -1  # priority of a stream; 0 is the lowest


def together(xp, work, urgent):
    """(work(), urgent()), the second ahead wherever both could go on; one after the other where xp is numpy.

    On a GPU `urgent` runs on a stream of its own, which waits for all that the current stream has been given, and the
    current stream goes on once both are done. Arrays that `urgent` returns are of that stream's memory: it is given out
    again only here, after such a wait.
    """
    if xp is np:
        return work(), urgent()
    current, beside = xp.cuda.get_current_stream(), urgent_stream(xp.cuda.runtime.getDevice())
    beside.wait_event(current.record())
    result = work()
    with beside:
        other = urgent()
        done = beside.record()
    current.wait_event(done)
    return result, other


@cache
def urgent_stream(device):
    """The stream for urgent work on a device, the current one."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True, priority=URGENT)


def on_its_way(info):
    """A function that gives `info` on the host, once that much of the current stream's work is done, and no more.

    It is copied on a stream of its own, so that what the current stream is given next does not wait for that.
    """
    if isinstance(info, np.ndarray):
        return lambda: info
    import cupy

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
