"""Lanczos tridiagonalization of a symmetric matrix, one for every start vector, side by side.

    B V_j = V_j T_j + β_j v_{j+1} e_jᵀ,     V_j orthonormal, v_1 = x/‖x‖:     f(B) x ≈ ‖x‖ V_j f(T_j) e_1

One product with a block of vectors a step. Where the basis V is kept, every new vector is made orthogonal to all of it;
without, orthogonality is lost where eigenvalues have converged, which repeats these and leaves quadrature intact.

Reference: Golub & Meurant (2010), Matrices, moments and quadrature, chapters 4 and 6.
"""

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.solvers.operators import LESS_ACCURATE, column_dots

ENDED = 10.0  # ε: a next vector that small against the matrix is rounding, the Krylov space is exhausted


class Lanczos:
    """The tridiagonalizations of B from start vectors X (n, count), a step at a time.

    apply   X ↦ B X
    dots    (X, Y) ↦ x_jᵀ y_j of the columns
    against (basis, U) ↦ the columns of U less their parts in the basis; None: one vector after the other
    basis   list of the vectors V_1, V_2, … (n, count) where they are to be kept, else None
    """

    def __init__(self, apply, X, keep=False, dots=column_dots, against=None):
        self.apply, self.dots, self.against = apply, dots, against or self._one_by_one
        self.norms = np.sqrt(to_host(dots(X, X)))
        self.basis = [] if keep else None
        self._alive = self.norms > 0
        self._next = X / self._row(X, np.where(self._alive, self.norms, 1))
        self._previous, self._scale = None, np.zeros_like(self.norms)
        self._alphas, self._betas = [], []

    @property
    def steps(self):
        """Products so far."""
        return len(self._alphas)

    def _one_by_one(self, basis, U):
        for Q in basis:
            U -= self.dots(Q, U) * Q
        return U

    def step(self):
        """One more product; LinAlgError where it is not finite."""
        V = self._next
        if self.basis is not None:
            self.basis.append(V)
        U = self.apply(V)
        if self._previous is not None:
            U = U - self._row(V, self._betas[-1]) * self._previous
        alpha = self.dots(U, V)
        U -= alpha * V
        if self.basis is not None:
            U = self.against(self.basis, U)
        alpha, beta = to_host(alpha), np.sqrt(to_host(self.dots(U, U)))
        if not np.isfinite(beta).all():
            raise np.linalg.LinAlgError("A @ x: expected finite numbers, got NaN or infinity; check the matrix")
        self._scale = np.maximum(self._scale, abs(alpha) + beta)
        ended = beta <= ENDED * np.finfo(U.dtype).eps * self._scale
        self._alphas.append(np.where(self._alive, alpha, 1))  # any positive number: its vector has no weight
        self._betas.append(np.where(ended, 0, beta))
        self._alive = self._alive & ~ended
        self._previous, self._next = V, U / self._row(U, np.where(ended, 1, beta))
        if ended.any():
            self._next[:, array_module(U).asarray(np.flatnonzero(ended))] = 0

    @staticmethod
    def _row(V, numbers):
        """A number for each column of V, where V is: one number as it is, which the host passes along."""
        return V.dtype.type(numbers[0]) if len(numbers) == 1 else array_module(V).asarray(numbers)

    @property
    def first(self):
        """v_1ᵀ B v_1, (count,) on the host."""
        return self._alphas[0].astype(np.float64)

    def spectra(self):
        """Eigenvalues of T_j (count, j) and eigenvectors (count, j, j), on the host; LinAlgError unless positive."""
        alpha, beta = (np.array(c, dtype=np.float64).T for c in (self._alphas, self._betas))
        T, j = np.zeros((len(alpha), self.steps, self.steps)), np.arange(self.steps)
        T[:, j, j] = alpha
        T[:, j[1:], j[:-1]] = beta[:, :-1]
        theta, S = np.linalg.eigh(T)
        negative = int((theta[:, 0] <= 0).sum())
        if negative:
            met = f"Lanczos met an eigenvalue of {theta.min():.2g} from {negative} of {len(theta)} vectors"
            raise np.linalg.LinAlgError(f"{met}: {LESS_ACCURATE}")
        return theta, S


def check_steps(before):
    """The next number of steps after which to look whether it suffices: a third more, at least two."""
    return max(before + 2, before * 4 // 3)
