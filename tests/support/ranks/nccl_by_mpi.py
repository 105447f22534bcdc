"""`cupy.cuda.nccl` for the stand-in of CuPy, by MPI: refuses calls that NCCL's functions do not take.

As there, a group's sends and receives are begun together, counts and types of both sides must agree, and nothing is
sent outside of a group; sums are made outside of one. One rank a device is not checked: the stand-in has one.
"""

import ctypes
import sys
from types import ModuleType

import cupy
import numpy as np
from mpi4py import MPI

KINDS = {"NCCL_FLOAT32": np.float32, "NCCL_FLOAT64": np.float64, "NCCL_INT64": np.int64, "NCCL_UINT8": np.uint8}


class NcclCommunicator:
    """The ranks of MPI.COMM_WORLD."""

    def __init__(self, ndev, commId, rank):
        world = MPI.COMM_WORLD
        assert (ndev, rank) == (world.size, world.rank) and len(set(world.allgather(commId))) == 1
        self._comm, self.aborted = world.Dup(), False

    def abort(self):
        """Ends what still waits."""
        self.aborted = True

    def send(self, sendbuf, count, datatype, peer, stream):
        """Begun when the group ends."""
        group.append(lambda: self._comm.Isend(memory(sendbuf, count, datatype), peer, list(KINDS).index(datatype)))

    def recv(self, recvbuf, count, datatype, peer, stream):
        """Likewise; the type is the tag, so that another one waits for ever."""
        group.append(lambda: self._comm.Irecv(memory(recvbuf, count, datatype), peer, list(KINDS).index(datatype)))

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        """At once."""
        assert group is None and op == "NCCL_SUM" and sendbuf != recvbuf
        self._comm.Allreduce(numbers(sendbuf, count, datatype), numbers(recvbuf, count, datatype))


def memory(pointer, count, datatype):
    """The numbers there, of a call within a group."""
    assert group is not None
    return numbers(pointer, count, datatype)


def numbers(pointer, count, datatype):
    """The numbers there."""
    assert count > 0 and pointer
    kind = np.dtype(KINDS[datatype])
    return np.frombuffer((ctypes.c_char * (count * kind.itemsize)).from_address(pointer), kind)


group = None


def group_start():
    global group
    assert group is None
    group = []


def group_end():
    global group
    requests = [begin() for begin in group]
    MPI.Request.Waitall(requests)
    group = None


nccl = ModuleType("cupy.cuda.nccl")
nccl.NcclCommunicator, nccl.get_unique_id = NcclCommunicator, lambda: tuple(range(128))
nccl.NCCL_SUM = "NCCL_SUM"
nccl.groupStart, nccl.groupEnd = group_start, group_end
for name in KINDS:
    setattr(nccl, name, name)
cupy.cuda.nccl = sys.modules["cupy.cuda.nccl"] = nccl
sys.modules["cupy.cuda"] = cupy.cuda
