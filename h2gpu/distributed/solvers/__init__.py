"""Solves, determinants and simulations by ranks: vectors are those that `DistributedH2Matrix` takes."""

from h2gpu.distributed.solvers.conjugate_gradients import conjugate_gradients
from h2gpu.distributed.solvers.inverse_factor import DistributedInverseFactor, vecchia
from h2gpu.distributed.solvers.stochastic import log_determinant, square_root

__all__ = ["DistributedInverseFactor", "conjugate_gradients", "log_determinant", "square_root", "vecchia"]
