"""Square root of a covariance matrix times vectors, by Lanczos: simulations.

    y = S x,   S Sᵀ = A + nugget I:     S = W⁻¹ (W (A + nugget I) Wᵀ)^½,   or (A + nugget I)^½ without preconditioner

y has covariance A + nugget I for x of independent standard normal numbers. With B = W (A + nugget I) Wᵀ close to I a
few steps suffice. In the orthonormal basis V the change of B^½ x from some steps to more is that of its coefficients.

Reference: Chow & Saad (2014), Preconditioned Krylov subspace methods for sampling multivariate Gaussian distributions.
"""

import numpy as np

from h2gpu.arrays import any_array, array_module
from h2gpu.progress import phase
from h2gpu.solvers.lanczos import Lanczos, check_steps
from h2gpu.solvers.operators import check_square, check_vectors, column_dots
from h2gpu.solvers.whitened import whitened
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Operator

BASIS_BYTES = 1 << 31  # of the vectors kept: columns beyond are worked on afterwards
USUAL_STEPS = 64  # of which so many columns are kept at once


@any_array
def square_root(
    A: Operator,
    x: ArrayLike,
    preconditioner: Operator | None = None,
    *,
    nugget: float = 0.0,
    rtol: float = 1e-6,
    maximum: int = 300,
) -> Array:
    """S x with S Sᵀ = A + nugget I, as x.

    A               symmetric positive definite, with shape and @
    x               (n,) or (n, count), where A lives
    preconditioner  `vecchia(…)` or `block_jacobi(…)`; without one S is the symmetric square root
    nugget          added to the diagonal of A
    rtol            ends when a third more steps change B^½ x by less than rtol ‖B^½ x‖
    maximum         of steps; all vectors of x in use are kept in every step

    Raises ValueError for bad arguments, LinAlgError for a matrix that is not positive definite and where `maximum`
    steps do not suffice. Source: Chow & Saad (2014).

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> S = solvers.square_root(K, np.eye(400), solvers.vecchia(sites, cov), rtol=1e-8)
    >>> bool(np.allclose(S @ S.T, K, atol=1e-5))
    True
    """
    n = check_square(A)
    x = check_vectors(x, n, "x")
    if not 0 < rtol < 1:
        raise ValueError(f"rtol: expected a number between 0 and 1, got {brief(rtol)}")
    apply, X = whitened(A, preconditioner, nugget, n), x.reshape(n, -1)
    y, columns = array_module(x).empty_like(X), max(1, BASIS_BYTES // (USUAL_STEPS * X.dtype.itemsize * n))
    with phase("square root", X.shape[1]) as advance:
        for first in range(0, X.shape[1], columns):
            part = slice(first, first + columns)
            root = root_of(apply, X[:, part], rtol, maximum)
            y[:, part] = root if preconditioner is None else preconditioner.colour(root)
            advance(root.shape[1])
    return y.reshape(x.shape)


def root_of(apply, X, rtol, maximum, power=0.5, dots=column_dots, against=None):
    """B^power X; dots and against as for `Lanczos`."""
    run, before, change = Lanczos(apply, X, True, dots, against), np.zeros((X.shape[1], 0)), np.inf
    while run.steps < maximum:
        for _ in range(min(check_steps(run.steps), maximum) - run.steps):
            run.step()
        theta, S = run.spectra()
        c = np.einsum("cij,cj->ci", S, theta**power * S[:, 0])
        difference = c.copy()
        difference[:, : before.shape[1]] -= before
        change = float((np.linalg.norm(difference, axis=1) / np.linalg.norm(c, axis=1)).max(initial=0))
        if change <= rtol:
            return _combined(run, c)
        before = c
    raise np.linalg.LinAlgError(
        f"square_root: {maximum} steps leave an error of {change:.2g}, above rtol {rtol:g}; give a preconditioner "
        "(h2gpu.solvers.vecchia) with more neighbours, a larger maximum, or a nugget"
    )


def _combined(run, c):
    """‖x‖ V c of every column."""
    c = array_module(run.basis[0]).asarray(c.astype(run.norms.dtype) * run.norms[:, None])
    return sum(V * c[:, j] for j, V in enumerate(run.basis))
