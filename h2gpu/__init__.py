"""Covariance matrices of large spatial data as compressed H²-matrices, on the CPU or the GPU."""

from importlib import import_module

from h2gpu import batched, covariance, solvers
from h2gpu.clustering import BlockTree, ClusterTree
from h2gpu.h2matrix import (
    H2Matrix,
    add,
    build,
    compress,
    covariance_matrix,
    from_dense,
    from_entries,
    from_samples,
    low_rank,
    low_rank_update,
    plan,
    sampled_error,
)
from h2gpu.storage import load, read_header, save

__all__ = [
    "BlockTree",
    "ClusterTree",
    "H2Matrix",
    "add",
    "batched",
    "build",
    "compress",
    "covariance",
    "covariance_matrix",
    "from_dense",
    "from_entries",
    "from_samples",
    "load",
    "low_rank",
    "low_rank_update",
    "plan",
    "read_header",
    "sampled_error",
    "save",
    "solvers",
    "statistics",
]


def __getattr__(name):
    """`h2gpu.statistics` on first use: scikit-learn, which it stands on, takes a second to import."""
    if name == "statistics":
        return import_module("h2gpu.statistics")
    raise AttributeError(f"module 'h2gpu' has no attribute {name!r}")
