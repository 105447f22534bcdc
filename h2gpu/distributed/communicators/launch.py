"""Which ranks there are, by what was launched: one process, or those of mpiexec or srun."""

import numpy as np

from h2gpu.batched.device.threads import largest_told, share_blas, share_cores
from h2gpu.distributed.communicators.communicator import LIMIT, Alone, Communicator
from h2gpu.distributed.communicators.mpi import MPI
from h2gpu.distributed.communicators.nccl import NCCL
from h2gpu.memory import keep_freed
from h2gpu.texts import brief
from h2gpu.typing import Device

SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"  # set by launchers,
NUMBERS = "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"  # and so is which process this is


def communicator(device: Device = "cpu", *, limit: float = LIMIT) -> Communicator:
    """The ranks of this job: `Alone`, `MPI` or `NCCL`.

    device   "cpu", or "cuda": each rank takes the GPU of its number on its node; where ranks must share GPUs, what
             they exchange goes through the host by MPI
    limit    seconds that an exchange may wait for others

    Ranks of one host that may all use the same cores, as MPICH leaves them, keep to a share of these each, and have as
    many threads, of ours and of BLAS. With a GPU, main memory that a process frees stays with it for its next arrays.

    Raises ImportError where several processes were launched and mpi4py is missing (`pip install "h2gpu[mpi]"`).
    Source: MPI's COMM_WORLD.

    >>> comm = communicator()
    >>> comm.rank, comm.size
    (0, 1)
    """
    if device not in ("cpu", "cuda"):
        raise ValueError(f'device: expected "cpu" or "cuda", got {brief(device)}')
    if launched() == 1:
        return Alone(_cupy(0) if device == "cuda" else np, limit)
    try:
        import mpi4py.MPI
    except ImportError as error:
        raise ImportError(f'{launched()} processes were launched: pip install "h2gpu[mpi]" ({error})') from None
    mpi = mpi4py.MPI
    node = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED)
    share_cores(node.rank)
    share_blas()
    if device == "cpu":
        return MPI(limit=limit)
    cupy = _cupy(node.rank)
    shared = mpi.COMM_WORLD.allreduce(node.size > cupy.cuda.runtime.getDeviceCount(), mpi.LOR)
    return MPI(xp=cupy, limit=limit) if shared else NCCL(limit=limit)


def launched():
    """How many processes the launcher says it started; 1 without one."""
    return largest_told(SIZES, 1)


def number():
    """Which of the launched processes this is, before any communicator is there."""
    return largest_told(NUMBERS, 0)


def _cupy(number):
    """CuPy, its current device the one of this number among those there are; the process is of this job alone."""
    import cupy

    keep_freed()
    cupy.cuda.Device(number % cupy.cuda.runtime.getDeviceCount()).use()
    return cupy
