"""Further observations at the parameters in use: what was observed before and now, the equations of both, solved.

p(Z | y, y', θ̂)   with θ̂ of y alone
"""

from h2gpu.arrays import array_module

ESTIMATED = "estimation_", "parameters_", "parameter_errors_", "parameter_intervals_", "converged_"


def check_same_arrays(before, new):
    """ValueError unless arrays of both, one beside the other, are of one library."""
    if any(array_module(a) is not array_module(b) for a, b in zip(before, new)):
        raise ValueError("X: expected arrays where those of fit are, got others; take NumPy or CuPy as there")


def take_over(estimator, later):
    """Makes the estimator what `later` is, a copy of it fitted to more observations; its estimates stay."""
    estimator.__dict__ |= {name: value for name, value in vars(later).items() if name not in ESTIMATED}
