"""Preconditioned conjugate gradients for many right-hand sides at once.

    (A + nugget I) x_j = b_j:   one product A P a step, P holding the directions of all columns that have not converged

Each column has its own coefficients and stops on its own at ‖b − A x‖ ≤ rtol ‖b‖. The recurrence's residual drifts from
the true one, by rounding and by a matrix that is not quite symmetric; the true one is computed at the end, and columns
that missed start again from where they are, as long as that helps.

Reference: Hestenes & Stiefel (1952); Saad (2003), Iterative methods for sparse linear systems, algorithm 9.1.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.progress import phase
from h2gpu.solvers.operators import (
    LESS_ACCURATE,
    check_preconditioner,
    check_square,
    check_vectors,
    column_dots,
    column_norms,
    shifted,
)
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Operator

RESTARTS = 5
HELPED = 0.5  # a restart that leaves more of the residual than this is the last one
ROUNDING = 1.05  # the true residual of a converged column may be larger than the recurrence's by so much


@dataclass(frozen=True, eq=False)
class Solution:
    """What conjugate gradients found.

    x            (n,) or (n, count), as the right-hand sides
    iterations   (count,) products each column took part in
    residuals    (count,) ‖b − (A + nugget I) x‖ / ‖b‖, computed from x
    converged    (count,) whether that is within rtol
    indefinite   (count,) whether a direction p with pᵀ (A + nugget I) p ≤ 0 was met, where the column stopped
    rtol         what was asked for

    The last five are on the host.

    `checked` raises LinAlgError where a column did not converge.
    Source: Hestenes & Stiefel (1952); Saad (2003), algorithm 9.1.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> solution = solvers.conjugate_gradients(K, np.ones((400, 2)), solvers.vecchia(sites, cov))
    >>> solution.converged.tolist(), bool(solution.residuals.max() <= solution.rtol)
    ([True, True], True)
    """

    x: object
    iterations: np.ndarray
    residuals: np.ndarray
    converged: np.ndarray
    indefinite: np.ndarray
    rtol: float

    @property
    def message(self) -> str:
        """One sentence on what went wrong and what to do; empty when all columns converged."""
        count, failed = len(self.converged), ~self.converged
        if self.indefinite[failed].any():
            j = np.flatnonzero(self.indefinite & failed)
            return f"conjugate gradients met negative curvature in {_columns(j, count)}: {LESS_ACCURATE}"
        if failed.any():
            j = np.flatnonzero(failed)
            return (
                f"conjugate gradients left {_columns(j, count)} with residual {self.residuals[j].max():.2g} after "
                f"{self.iterations[j].max()} iterations, above rtol {self.rtol:g}; give a preconditioner "
                "(h2gpu.solvers.vecchia) with more neighbours, more iterations, a nugget or a larger rtol"
            )
        return ""

    def checked(self) -> Array:
        """x, when all columns converged; LinAlgError with the message otherwise."""
        if self.message:
            raise np.linalg.LinAlgError(self.message)
        return self.x


def conjugate_gradients(
    A: Operator,
    b: ArrayLike,
    preconditioner: Operator | None = None,
    *,
    nugget: float = 0.0,
    rtol: float = 1e-8,
    maximum: int = 1000,
    start: ArrayLike | None = None,
) -> "Solution":
    """Solve (A + nugget I) x = b: a Solution.

    A               symmetric positive definite, with shape and @: H2Matrix, array, sparse matrix, LinearOperator
    b               (n,) or (n, count) right-hand sides, where A lives
    preconditioner  approximates A⁻¹, with @: `vecchia(…)`, `block_jacobi(…)`, …; None for none
    nugget          added to the diagonal of A
    rtol            stops a column at ‖b − A x‖ ≤ rtol ‖b‖
    maximum         of iterations of a column
    start           first approximation of x, as b; zero if None

    Raises ValueError for bad arguments, LinAlgError where a product is not finite. Columns that do not converge, or
    meet negative curvature, are told in the Solution; `Solution.checked` raises for them.
    Source: Hestenes & Stiefel (1952); Saad (2003), algorithm 9.1.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> solution = solvers.conjugate_gradients(K, np.ones(400), solvers.vecchia(sites, cov), rtol=1e-8)
    >>> x = solution.checked()
    >>> bool(np.linalg.norm(K @ x - 1) <= 1e-8 * 20)
    True
    """
    n = check_square(A)
    b = check_vectors(b, n)
    check_preconditioner(preconditioner, n)
    if not 0 < rtol < 1:
        raise ValueError(f"rtol: expected a number between 0 and 1, got {brief(rtol)}")
    if not isinstance(maximum, (int, np.integer)) or maximum < 0:
        raise ValueError(f"maximum: expected a number of iterations ≥ 0, got {brief(maximum)}")
    apply, B, xp = shifted(A, nugget), b.reshape(n, -1), array_module(b)
    X = xp.zeros_like(B) if start is None else check_vectors(start, n, "start").astype(B.dtype).reshape(B.shape).copy()
    norms, count = column_norms(B), B.shape[1]
    if not norms.all():
        X[:, xp.asarray(np.flatnonzero(norms == 0))] = 0
    run = _Run(apply, preconditioner, X, rtol * norms, np.zeros(count, int), np.zeros(count, bool))
    residuals = run.solve(B, B.copy() if start is None else B - apply(X), maximum)
    converged = residuals <= ROUNDING * run.tolerances
    relative = np.divide(residuals, norms, out=np.zeros(count), where=norms > 0)
    return Solution(X.reshape(b.shape), run.iterations, relative, converged, run.indefinite & ~converged, float(rtol))


@dataclass(frozen=True, eq=False)
class _Run:
    """The columns X of one solve, what is wanted of them, and what became of them."""

    apply: object
    preconditioner: object
    X: object
    tolerances: np.ndarray
    iterations: np.ndarray
    indefinite: np.ndarray

    def solve(self, B, R, maximum):
        """Improve X, of residuals R, until its true residuals are small or cannot be made so: their norms, (count,)."""
        xp, before = array_module(B), column_norms(R)
        left = np.flatnonzero((before > self.tolerances) & (maximum > 0))
        with phase("solve", maximum) as advance:
            for _ in range(RESTARTS):
                if not len(left):
                    break
                self.recur(R[:, xp.asarray(left)], left, maximum, advance)
                R = B - self.apply(self.X)
                now = column_norms(R)
                left = left[(now[left] > ROUNDING * self.tolerances[left]) & (now[left] < HELPED * before[left])]
                left = left[~self.indefinite[left] & (self.iterations[left] < maximum)]
                before = now
        return before

    def recur(self, R, columns, maximum, advance):
        """Conjugate gradients from residuals R (n, active) of the given columns until each one stops."""
        xp, P, rho = array_module(R), None, None
        while len(columns):
            Z = R if self.preconditioner is None else self.preconditioner @ R
            rho, previous = to_host(column_dots(R, Z)), rho
            P = Z.copy() if P is None else Z + P * xp.asarray(rho / previous)
            Q = self.apply(P)
            curvature = to_host(column_dots(P, Q))
            if not np.isfinite(curvature).all():
                raise np.linalg.LinAlgError("A @ x: expected finite numbers, got NaN or infinity; check the matrix")
            positive = (curvature > 0) & (rho > 0)
            alpha = xp.asarray(np.divide(rho, curvature, out=np.zeros_like(rho), where=positive))
            self.X[:, xp.asarray(columns)] += alpha * P
            R = R - alpha * Q
            self.iterations[columns] += 1
            advance(1)
            norms = column_norms(R)
            self.indefinite[columns[~positive]] = True
            going = positive & (norms > self.tolerances[columns]) & (self.iterations[columns] < maximum)
            if not going.all():
                columns, keep = columns[going], xp.asarray(np.flatnonzero(going))
                R, P, rho = R[:, keep], P[:, keep], rho[going]


def _columns(indices, count):
    """The failing columns in words."""
    if count == 1:
        return "the right-hand side"
    return f"{len(indices)} of {count} columns (the first is {indices[0]})"
