"""Two independent works at once on a GPU: what one leaves idle the other uses."""

from threading import local

import numpy as np

from h2gpu.batched.device import threads

URGENT = -1  # priority of a stream; 0 is the lowest
_here = local()  # .streams: the urgent stream of each device and stream that this thread works on


def together(xp, work, urgent, then=lambda result, joined: result, large=False):
    """(work(), then(urgent(), joined)), the second ahead wherever both could go on; before the first where xp is numpy.

    then    what waits for something that goes on by itself since `urgent`: after `work` where xp is numpy;
            joined() gives it what work() has given, and what it does from there on waits for that
    large   whether `work` is worth a thread of its own there, beside `urgent`

    On a GPU `urgent` runs on a stream of its own, which waits for all that the current stream has been given, and the
    current stream goes on once both are done. Arrays that `urgent` returns are of that stream's memory: call `used`
    once what reads them has been enqueued, before they are let go.
    """
    if xp is np and large:
        result, other = threads.beside(work, urgent)
        return result, then(other, lambda: result)
    if xp is np:
        other, result = urgent(), work()
        return result, then(other, lambda: result)
    current, beside = xp.cuda.get_current_stream(), urgent_stream()
    beside.wait_event(current.record())
    result = work()

    def joined():
        beside.wait_event(current.record())
        return result

    with beside:
        other = then(urgent(), joined)
        done = beside.record()
    current.wait_event(done)
    return result, other


def used(xp):
    """What an urgent work has returned is not read by anything that comes from here on: nothing where xp is numpy.

    Memory of the driver's stream-ordered pool is free once the stream it is of gets there: that of an urgent stream
    would be while the current stream still reads it, and may then be taken from the address space.
    """
    if xp is not np:
        urgent_stream().wait_event(xp.cuda.get_current_stream().record())


def urgent_stream():
    """The stream for urgent work of this thread beside its current stream."""
    import cupy

    streams = _here.__dict__.setdefault("streams", {})
    place = cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr
    if place not in streams:
        streams[place] = cupy.cuda.Stream(non_blocking=True, priority=URGENT)
        cupy.cuda.Device().synchronize()  # CuPy may know memory of a stream that had this one's address before
    return streams[place]


def on_its_way(info):
    """A function that gives `info` on the host, once that much of the current stream's work is done, and no more.

    It is copied on a stream of its own, so that what the current stream is given next does not wait for that.
    """
    if isinstance(info, np.ndarray):
        return lambda: info
    import cupy

    memory = cupy.cuda.alloc_pinned_memory(max(1, info.nbytes))
    host = np.frombuffer(memory, info.dtype, info.size)
    beside = urgent_stream()
    beside.wait_event(cupy.cuda.get_current_stream().record())
    info.get(stream=beside, out=host, blocking=False)
    arrival = beside.record()

    def wait(copied=info):  # whose memory nobody is given before
        arrival.synchronize()
        return host

    return wait
