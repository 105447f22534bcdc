"""Kriging by ranks: all have the observations, each its rows of the matrix and its targets."""

from h2gpu.distributed.statistics.cokriging import CoKriging
from h2gpu.distributed.statistics.estimator import Kriging

__all__ = ["CoKriging", "Kriging"]
