"""One matrix on many processes and GPUs, by MPI and NCCL.

comm = distributed.communicator()          one process, MPI with NumPy, or NCCL with CuPy, by what was launched
A = distributed.distribute(matrix, comm)   rows by ranks
y = A @ A.scatter(x)                       one grouped exchange a product
"""

from h2gpu.distributed.communicator import Alone, Communicator
from h2gpu.distributed.distribute import distribute
from h2gpu.distributed.launch import communicator
from h2gpu.distributed.matrix import DistributedH2Matrix
from h2gpu.distributed.mpi import MPI
from h2gpu.distributed.nccl import NCCL
from h2gpu.distributed.partition import Partition

__all__ = ["MPI", "NCCL", "Alone", "Communicator", "DistributedH2Matrix", "Partition", "communicator", "distribute"]
