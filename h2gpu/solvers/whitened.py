"""The matrix that determinants and square roots work on: B = W (A + nugget I) Wᵀ, or A + nugget I itself."""

from h2gpu.solvers.inverse_factor import InverseFactor
from h2gpu.solvers.operators import check_preconditioner, shifted


def whitened(A, preconditioner, nugget, n):
    """x → B x. Raises ValueError for a preconditioner that is no InverseFactor of order n."""
    apply = shifted(A, nugget)
    if preconditioner is None:
        return apply
    check_preconditioner(preconditioner, n)
    if not isinstance(preconditioner, InverseFactor):
        raise ValueError(
            f"preconditioner: expected an InverseFactor, as vecchia and block_jacobi give, "
            f"got {type(preconditioner).__name__}: its factor W is needed"
        )
    W = preconditioner
    return lambda x: W.whiten(apply(W.whiten_transposed(x)))
