"""The matrix that determinants and square roots work on: B = W (A + nugget I) Wᵀ, or A + nugget I itself."""

from h2gpu.solvers.operators import check_preconditioner, shifted


def whitened(A, preconditioner, nugget, n):
    """x → B x. Raises ValueError for a preconditioner that is no factor of order n."""
    apply = shifted(A, nugget)
    if preconditioner is None:
        return apply
    check_preconditioner(preconditioner, n)
    if not hasattr(preconditioner, "whiten"):
        raise ValueError(
            f"preconditioner: expected a factor, as vecchia, block_jacobi and skeletonize give, "
            f"got {type(preconditioner).__name__}: its factor W is needed"
        )
    W = preconditioner
    return lambda x: W.whiten(apply(W.whiten_transposed(x)))
