"""Ranks with a GPU each: arrays on devices by NCCL, those of the host by MPI.

An exchange is one group of sends and receives on a stream of its own, which begins when what is sent is ready, and so
is a sum; products of the diagonal blocks go on meanwhile. NVIDIA Collective Communications Library, version 2.
"""

from threading import Thread
from typing import Any
from weakref import finalize

import numpy as np

from h2gpu.distributed.communicators.communicator import LIMIT
from h2gpu.distributed.communicators.mpi import MPI

BRIEF = 10e-3  # seconds of waiting without a pause: one of 50 µs takes 130, a product of 2²² sites on four GPUs 1,000
TYPES = {"float32": "NCCL_FLOAT32", "float64": "NCCL_FLOAT64", "int64": "NCCL_INT64", "uint8": "NCCL_UINT8"}
ENDING = 20.0  # seconds that the group of a job that failed may take to end
_unended: list = []  # groups that took longer: left to the end of the process, which must not wait for them either


def forget(recordings):
    """Let graphs with NCCL's kernels go: a group that ends, by its own will or not, waits for the last of them."""
    for recording in list(recordings):
        recording.forget()


class NCCL(MPI):
    """The ranks of an mpi4py communicator, each on the GPU that is current when this is made; none shares one.

    Raises TimeoutError after `limit` seconds, and what another rank failed with.
    Source: NCCL, its send and receive in groups.

    >>> comm = NCCL()  # doctest: +SKIP
    >>> comm.xp.__name__  # doctest: +SKIP
    'cupy'
    """

    def __init__(self, comm: Any = None, limit: float = LIMIT) -> None:
        import cupy
        from cupy.cuda import nccl

        super().__init__(comm, cupy, limit)
        key = self.gather(nccl.get_unique_id() if self.rank == 0 else None, "NCCL's key")[0]
        self._nccl, self._group = nccl, nccl.NcclCommunicator(self.size, key, self.rank)
        self._stream, self._before = cupy.cuda.Stream(non_blocking=True), None
        finalize(self, forget, self.recordings)  # at the latest when the process ends, before the group does

    @property
    def records(self) -> bool:
        """True, since NCCL 2.9."""
        return True

    def until(self, event: Any, name: str) -> None:
        """As `Communicator.until`; ends NCCL's kernels where another rank has failed."""
        self._waited(lambda: event.done, name)

    def begun(self, event: Any, name: str) -> None:
        """Wait until all ranks have begun this, and until the one before has ended.

        What all devices have been given ends without any host, which prepares the next product meanwhile: waiting for
        the end of each left the device idle for about 0.1 ms of 1.1. One that never ends is told of at the next.
        """
        self._waited(self._comm.Ibarrier().Test, name)
        before, self._before = self._before, event
        if before is not None:
            self._waited(lambda: before.done, name)

    def _until(self, done, name, brief=BRIEF):
        """Also sums of numbers on the host, of which a compression takes some fifty, come without a pause."""
        super()._until(done, name, brief)

    def _waited(self, done, name):
        try:
            self._until(done, name)
        except (Exception, KeyboardInterrupt):
            self._end()
            raise

    def fail(self, error: BaseException) -> None:
        """As `Communicator.fail`; the group of all ranks ends, also where a rank waits for none of NCCL's kernels."""
        try:
            super().fail(error)
        finally:
            self._end()

    def _end(self):
        """End the group: kernels that wait for a rank that is gone would keep the device, and the process.

        Those of one host end together, each once its own graphs are gone; so another thread waits for that, and not
        longer than ENDING.
        """
        group, self._group = self._group, None
        if group is None:
            return
        self.failure = self.failure or (self.rank, "RuntimeError", "exchanges between GPUs have ended with an error")
        device = self.xp.cuda.Device()

        def abort():
            with device:
                group.abort()

        thread = Thread(target=abort, daemon=True)
        thread.start()
        forget(self.recordings)
        thread.join(ENDING)
        if thread.is_alive():
            _unended.append(group)

    def _start(self, sends, receives, name):
        arrays = [*sends.values(), *receives.values()]
        if all(isinstance(array, np.ndarray) for array in arrays):
            return super()._start(sends, receives, name)
        if self.mode == "rehearsed":
            return lambda: None
        cupy = self.xp
        self._stream.wait_event(cupy.cuda.get_current_stream().record())
        self._nccl.groupStart()
        for send, part in ((True, sends), (False, receives)):
            for q in sorted(part):
                kind = getattr(self._nccl, TYPES[part[q].dtype.name])
                call = self._group.send if send else self._group.recv
                call(part[q].data.ptr, part[q].size, kind, q, self._stream.ptr)
        self._nccl.groupEnd()
        return self._ending(arrays, name)

    def _start_sum(self, values, name):
        if isinstance(values, np.ndarray):
            return super()._start_sum(values, name)
        total, kind = self.xp.empty_like(values), getattr(self._nccl, TYPES[values.dtype.name])
        if self.mode == "rehearsed":
            return lambda: total
        self._stream.wait_event(self.xp.cuda.get_current_stream().record())
        places = values.data.ptr, total.data.ptr, values.size
        self._group.allReduce(*places, kind, self._nccl.NCCL_SUM, self._stream.ptr)
        end = self._ending([values, total], name)

        def ended():
            end()
            return total

        return ended

    def _ending(self, arrays, name):
        """A function to call when what goes on on the stream, with these arrays, is needed."""
        event, in_graph = self._stream.record(), self.mode == "recorded"

        def end():
            if not in_graph:  # else the host waits for the graph
                self.until(event, name)
            self.xp.cuda.get_current_stream().wait_event(event)
            arrays.clear()

        return end
