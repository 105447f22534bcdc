"""Covariance matrices of large spatial data as compressed H²-matrices, on the CPU or the GPU."""

from h2gpu import batched, covariance, solvers, statistics
from h2gpu.clustering import BlockTree, ClusterTree
from h2gpu.h2matrix import H2Matrix, build, compress, covariance_matrix, plan, sampled_error
from h2gpu.storage import load, read_header, save

__all__ = [
    "BlockTree",
    "ClusterTree",
    "H2Matrix",
    "batched",
    "build",
    "compress",
    "covariance",
    "covariance_matrix",
    "load",
    "plan",
    "read_header",
    "sampled_error",
    "save",
    "solvers",
    "statistics",
]
