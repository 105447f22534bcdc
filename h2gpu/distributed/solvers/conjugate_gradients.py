"""Conjugate gradients by ranks, with one sum over the ranks a step.

    z = P r, w = A z;   γ = rᵀz, δ = zᵀw, rᵀr in one sum;   β = γ/γ₋,  α = γ/(δ − β γ/α₋);   p = z + β p, s = w + β s

The same iterates as those of `solvers.conjugate_gradients`, whose three sums wait for each other. The true residual is
computed at the end, and columns that missed start again. Chronopoulos & Gear (1989), s-step iterative methods.
"""

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.distributed.matrix import DistributedH2Matrix
from h2gpu.distributed.solvers.inverse_factor import DistributedInverseFactor
from h2gpu.progress import phase
from h2gpu.solvers.conjugate_gradients import HELPED, RESTARTS, ROUNDING, Solution
from h2gpu.solvers.operators import check_vectors, column_dots, shifted
from h2gpu.texts import brief
from h2gpu.typing import Array

NAME = "dot products"


def conjugate_gradients(
    A: DistributedH2Matrix,
    b: Array,
    preconditioner: DistributedInverseFactor | None = None,
    *,
    nugget: float = 0.0,
    rtol: float = 1e-8,
    maximum: int = 1000,
) -> Solution:
    """Solve (A + nugget I) x = b: a Solution of local vectors; a call of all ranks.

    A               symmetric positive definite DistributedH2Matrix
    b               (own,) or (own, count) local right-hand sides
    preconditioner  `distributed.solvers.vecchia(…)`, or None
    nugget, rtol, maximum   as for the serial one

    Raises, on all ranks, ValueError for bad arguments and LinAlgError where a product is not finite.
    Source: Chronopoulos & Gear (1989).

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> cov = cov + covariance.Nugget(0.1)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> W = distributed.solvers.vecchia(A, sites, cov)
    >>> x = distributed.solvers.conjugate_gradients(A, A.scatter(np.ones(600)), W).checked()
    >>> bool(np.allclose(A.gather(A @ x), 1, atol=1e-6))
    True
    """
    with A.comm.together("conjugate gradients"):
        b = check_vectors(b, A.local_shape[0])
        if not (A.symmetric and 0 < rtol < 1 and isinstance(maximum, (int, np.integer)) and maximum >= 0):
            raise ValueError(
                f"conjugate_gradients: expected a symmetric matrix, 0 < rtol < 1 and maximum ≥ 0, got {brief(A)}, "
                f"{rtol!r} and {maximum!r}"
            )
        B = b.reshape(len(b), 1 if b.ndim == 1 else b.shape[1])
        run = _Run(A, shifted(A, nugget), preconditioner, B, rtol)
        with phase("solve", maximum) as advance:
            run.solve(maximum, advance)
        relative = np.divide(run.residuals, run.norms, out=np.zeros(len(run.norms)), where=run.norms > 0)
        converged = run.residuals <= ROUNDING * run.tolerances
        indefinite = run.indefinite & ~converged
        return Solution(run.X.reshape(b.shape), run.iterations, relative, converged, indefinite, float(rtol))


class _Run:
    """The columns X of one solve, and what became of them; all but vectors on the host, equal on all ranks."""

    def __init__(self, A, apply, preconditioner, B, rtol):
        self.comm, self.apply, self.B = A.comm, apply, B
        self.precondition = (lambda R: R) if preconditioner is None else preconditioner.__matmul__
        self.X, count = array_module(B).zeros_like(B), B.shape[1]
        self.norms = np.sqrt(self.dots((B, B))[0])
        self.tolerances, self.residuals = rtol * self.norms, self.norms.copy()
        self.iterations, self.indefinite = np.zeros(count, int), np.zeros(count, bool)

    def dots(self, *pairs):
        """x_jᵀ y_j of the columns of each pair, (pairs, count) by one sum over the ranks; LinAlgError unless finite."""
        parts = array_module(self.B).stack([column_dots(X, Y).astype(np.float64) for X, Y in pairs])
        sums = self.comm.sum(self.comm.fetch(parts, NAME), NAME)
        if not np.isfinite(sums).all():
            raise np.linalg.LinAlgError("A @ x: expected finite numbers, got NaN or infinity; check the matrix")
        return sums

    def solve(self, maximum, advance):
        """Improve X until its true residuals are small or cannot be made so."""
        R, going = self.B.copy(), self.residuals > self.tolerances
        for _ in range(RESTARTS):
            going &= self.iterations < maximum
            if not going.any():
                break
            before = self.residuals.copy()
            self.recur(R, going, maximum, advance)
            R = self.B - self.apply(self.X)
            self.residuals = np.sqrt(self.dots((R, R))[0])
            going = (self.residuals > ROUNDING * self.tolerances) & (self.residuals < HELPED * before)
            going &= ~self.indefinite

    def recur(self, R, going, maximum, advance):
        """From residuals R; columns that have stopped go on with steps of zero."""
        xp, going, alpha, before, P, S = array_module(R), going.copy(), None, None, 0, 0
        while going.any():
            Z = self.precondition(R)
            W = self.apply(Z)
            gamma, delta, square = self.dots((R, Z), (Z, W), (R, R))
            going &= (np.sqrt(square) > self.tolerances) & (self.iterations < maximum)
            if not going.any():
                break
            beta = np.zeros_like(gamma) if before is None else _ratio(gamma, before)
            curvature = delta if alpha is None else delta - beta * _ratio(gamma, alpha)
            bad = going & ~((curvature > 0) & (gamma > 0))
            self.indefinite |= bad
            going &= ~bad
            alpha, before = np.where(going, _ratio(gamma, curvature), 0.0), gamma
            P, S = Z + P * _of(xp, beta, R), W + S * _of(xp, beta, R)
            self.X += P * _of(xp, alpha, R)
            R = R - S * _of(xp, alpha, R)
            self.iterations[going] += 1
            advance(1)


def _ratio(a, b):
    """a / b, zero where b is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0)


def _of(xp, numbers, R):
    """Numbers of the host beside R, in its precision."""
    return xp.asarray(numbers.astype(R.dtype))
