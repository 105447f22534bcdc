"""One matrix on many processes and GPUs, by MPI and NCCL.

| call                                                     | what it does                                        |
|----------------------------------------------------------|-----------------------------------------------------|
| `comm = communicator()`                                  | the ranks, by what was launched                     |
| `A = covariance_matrix(my_points, cov, rtol, comm=comm)` | points to compressed matrix, each rank its own rows |
| `A = distribute(matrix, comm)`                           | the same of a matrix that all ranks have            |
| `y = A @ A.scatter(x)`, `A.gather(y)`                    | local vectors: the points that a rank owns          |
| `add(A, B)`, `compress(A, rtol)`                         | sums, and smaller ones of symmetric matrices        |
| `gathered_matrix(A)`                                     | the serial matrix, on rank 0                        |
| `linear_operator(A)`                                     | SciPy's operator of whole vectors                   |
| `statistics.Kriging(cov, comm=comm).fit(my_X, my_y)`     | kriging, predictions at a rank's own targets        |
"""

from importlib import import_module

from h2gpu.distributed import solvers
from h2gpu.distributed.algebra import add, compress
from h2gpu.distributed.assembly import covariance_matrix
from h2gpu.distributed.communicators.communicator import Alone, Communicator
from h2gpu.distributed.communicators.launch import communicator
from h2gpu.distributed.communicators.mpi import MPI
from h2gpu.distributed.communicators.nccl import NCCL
from h2gpu.distributed.distribute import distribute
from h2gpu.distributed.gathering import gathered_matrix
from h2gpu.distributed.interfaces import linear_operator
from h2gpu.distributed.matrix import DistributedH2Matrix
from h2gpu.distributed.partition import Partition

__all__ = [
    "MPI",
    "NCCL",
    "Alone",
    "Communicator",
    "DistributedH2Matrix",
    "Partition",
    "add",
    "communicator",
    "compress",
    "covariance_matrix",
    "distribute",
    "gathered_matrix",
    "linear_operator",
    "solvers",
    "statistics",
]


def __getattr__(name):
    """`h2gpu.distributed.statistics` on first use, as `h2gpu.statistics`."""
    if name == "statistics":
        return import_module("h2gpu.distributed.statistics")
    raise AttributeError(f"module 'h2gpu.distributed' has no attribute {name!r}")
