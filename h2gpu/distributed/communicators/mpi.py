"""Ranks that are processes of mpiexec or srun: arrays of the host by MPI, those of a GPU through the host.

All waiting is for requests that do not block, so that a rank hears of another's failure meanwhile. Several ranks may
share one GPU, which NCCL refuses. MPI: Message Passing Interface Forum, version 3.1; mpi4py: Dalcín & Fang (2021).
"""

from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.distributed.communicators.communicator import LIMIT, Communicator

DATA, ALARM, OBJECTS = 1, 2, 3  # tags
MOST = 2**31 - 1  # bytes that MPI 3 counts; more values go from each rank to each other one


class MPI(Communicator):
    """The ranks of an mpi4py communicator, of which private copies are made.

    comm   an mpi4py communicator; None for MPI.COMM_WORLD
    xp     numpy or cupy: where this rank's numbers are

    Raises TimeoutError after `limit` seconds, and what another rank failed with. Source: MPI; Dalcín & Fang (2021).

    >>> comm = MPI()  # doctest: +SKIP
    >>> comm.sum(np.ones(1), "example")  # doctest: +SKIP
    array([4.])
    """

    def __init__(self, comm: Any = None, xp: ModuleType = np, limit: float = LIMIT) -> None:
        import mpi4py.MPI

        mpi = mpi4py.MPI
        comm = mpi.COMM_WORLD if comm is None else comm
        super().__init__(comm.rank, comm.size, xp, limit)
        self._mpi, self._comm, self._alarm, self._kept = mpi, comm.Dup(), comm.Dup(), []

    def _start(self, sends, receives, name):
        there = {q: np.empty(a.shape, a.dtype) if array_module(a) is not np else a for q, a in receives.items()}
        here = {q: to_host(a) for q, a in sends.items()}
        requests = [self._comm.Irecv(there[q], q, DATA) for q in sorted(there)]
        requests += [self._comm.Isend(here[q], q, DATA) for q in sorted(here)]

        def end():
            self._until(lambda: self._mpi.Request.Testall(requests), name)
            for q, array in receives.items():
                if there[q] is not array:
                    array[...] = array_module(array).asarray(there[q])
            here.clear()

        return end

    def _start_sum(self, values, name):
        here = to_host(values)
        total = np.empty_like(here)
        request = self._comm.Iallreduce(here, total)

        def end():
            self._until(request.Test, name)
            return array_module(values).asarray(total)

        return end

    def _gather(self, value, name):
        texts = self._mpi.pickle.dumps(value)
        sizes = np.zeros(self.size, np.int64)
        sizes[self.rank] = len(texts)
        sizes = self.sum(sizes, name)
        mine, ends = np.frombuffer(texts, np.uint8), np.cumsum(sizes)
        whole = np.empty(int(ends[-1]), np.uint8)
        parts = np.split(whole, ends[:-1])
        if len(whole) <= MOST:
            request = self._comm.Iallgatherv(mine, [whole, sizes, ends - sizes, self._mpi.BYTE])
            self._until(request.Test, name)
        else:
            others = [q for q in range(self.size) if q != self.rank]
            requests = [self._comm.Irecv(parts[q], q, OBJECTS) for q in others]
            requests += [self._comm.Isend(mine, q, OBJECTS) for q in others]
            self._until(lambda: self._mpi.Request.Testall(requests), name)
        return [value if q == self.rank else self._mpi.pickle.loads(parts[q].tobytes()) for q in range(self.size)]

    def _tell(self, failure):
        others = [q for q in range(self.size) if q != self.rank]
        self._kept += [self._alarm.isend(failure, q, ALARM) for q in others]

    def _heard(self):
        return self._alarm.recv(tag=ALARM) if self._alarm.Iprobe(tag=ALARM) else None

    def abort(self, status: int) -> NoReturn:
        """End the processes of all ranks at once, with an exit status."""
        self._mpi.COMM_WORLD.Abort(status)
