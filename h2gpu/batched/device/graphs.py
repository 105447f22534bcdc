"""Work on a GPU that is asked for again and again: recorded, then started as a whole, one launch for the host."""

from contextlib import nullcontext
from threading import Lock

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.device.plans import planned

FIRST = 1  # times that it is done as it is: kernels are compiled then, plans made


def as_graph(owner, key, work, x, make=None):
    """work(x) of one vector (n, 1), from the second time on as a CUDA graph that lives as long as `owner`; plainly of
    several vectors (n, count), which leave the host time enough, and where x is NumPy's.

    work   the same for an owner and key; launches the same kernels for all x of one shape, reads nothing else that ever
           changes, and waits for nothing
    make   the Recording to be used, where something else happens around it
    """
    if array_module(x) is np or x.shape[1] != 1:
        return work(x)
    import cupy

    return planned(owner, (cupy.cuda.Device().id, key, x.shape, x.dtype), make or Recording)(cupy, work, x)


class Recording:
    """A graph of launches in memory of its own, one use of which follows another, whichever streams they are of.

    Others may change what happens around it: `rehearsing` and `capturing` are entered for that long, `made` is told
    whether there was room for it and says whether it is to be used, `begun` is told the event of its end.
    """

    rehearsing = capturing = staticmethod(nullcontext)

    def __init__(self):
        self._lock, self._times, self._graph = Lock(), 0, None

    def __call__(self, cupy, work, x):
        with self._lock:
            self._times += 1
            if self._times == FIRST + 1:
                self._record(cupy, work, x)
            if self._graph is None:
                return work(x)
            stream = cupy.cuda.get_current_stream()
            stream.wait_event(self._done)
            cupy.copyto(self._x, x)
            self._graph.launch(stream)
            result = self._result.copy()
            self._done = stream.record()
            self.begun(self._done)
            return result

    def forget(self):
        """Let the graph go; its memory stays, for it may be running."""
        self._graph = None

    def made(self, room):
        """Whether the graph is to be used."""
        return room

    def begun(self, event):
        """The graph has been started; the event is that of its end."""

    def _record(self, cupy, work, x):
        """The graph; none where there is no room for what it needs, or nobody wants it."""
        self._pool, stream = cupy.cuda.MemoryPool(), cupy.cuda.Stream(non_blocking=True)
        stream.wait_event(cupy.cuda.get_current_stream().record())
        try:
            with cupy.cuda.using_allocator(self._pool.malloc), stream:
                self._x = x.copy()
                with self.rehearsing():
                    work(self._x)  # the pool then holds all that the graph will ask for
                stream.synchronize()
                stream.begin_capture()
                try:
                    with self.capturing():
                        self._result = work(self._x)
                finally:
                    graph = stream.end_capture()
                self._done = stream.record()
        except cupy.cuda.memory.OutOfMemoryError:
            graph = None
        if self.made(graph is not None):
            self._graph = graph
        else:
            self._pool = self._x = self._result = None
