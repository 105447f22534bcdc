"""Generalized least squares: the trend, and the weights of all predictions.

    β = (Fᵀ K⁻¹ F)⁻¹ Fᵀ K⁻¹ y,     w = K⁻¹ (y − F β),     one solve for [y, F] together

The columns of F are scaled to unit range and orthonormalized first, so that far-away origins cost no digits.
Reference: Cressie (1993), Statistics for spatial data, section 3.4.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host

DEPENDENT = 1e-10  # of the largest: a singular value of F below means that its columns are linearly dependent


@dataclass(frozen=True, eq=False)
class Regression:
    """The trend's part of the equations, solved: it serves any data at the same sites.

    change        (p, p) on the host, Q = F change has orthonormal columns
    Q             (n, p)
    solved        (n, p) K⁻¹ Q
    information   (p, p) Qᵀ K⁻¹ Q on the host
    """

    change: np.ndarray
    Q: object
    solved: object
    information: np.ndarray

    def of(self, solution):
        """Coefficients of Q (p, count) and weights w (n, count) of data Y, from their solution K⁻¹ Y (n, count)."""
        gamma = array_module(solution).asarray(np.linalg.solve(self.information, to_host(self.Q.T @ solution)))
        return gamma, solution - self.solved @ gamma


def regression(system, Y, F):
    """The Regression on the columns of F (n, p), and K⁻¹ Y of data Y (n, count) from the same solve.

    Raises ValueError where the columns of F are linearly dependent.
    """
    change = orthonormalizer(F)
    xp, count = array_module(Y), Y.shape[1]
    Q = F @ xp.asarray(change)
    both = system.solve(xp.concatenate([Y, Q], axis=1))
    information = to_host(Q.T @ both[:, count:])
    return Regression(change, Q, both[:, count:], 0.5 * (information + information.T)), both[:, :count]


def orthonormalizer(F):
    """(p, p) on the host with F change orthonormal; ValueError where the columns of F are linearly dependent."""
    n, p = F.shape
    if not p:
        return np.zeros((0, 0))
    F = to_host(F)
    centres = F.mean(axis=0)
    level = _constant_column(F)
    shift = np.eye(p)
    if level is not None:  # centred: coordinates such as 5,400,000 … 5,400,100 keep their digits
        shift[level] -= centres / centres[level]
        shift[level, level] = 1
    G = F @ shift
    norms = np.linalg.norm(G, axis=0)
    _, s, Vt = np.linalg.svd(G / np.where(norms > 0, norms, 1), full_matrices=False)
    rank = int((s > DEPENDENT * s[0]).sum()) if n >= p else n
    small = norms < DEPENDENT * np.linalg.norm(F, axis=0)
    if rank < p or small.any():
        raise ValueError(
            f"trend: expected linearly independent columns at the sites, got {p} columns of rank "
            f'{min(rank, p - int(small.any()))} at {n} sites; use a simpler trend, such as "constant", or more sites'
        )
    return shift / norms @ (Vt.T / s)


def _constant_column(F):
    """The index of a column of one value, None without."""
    level = np.flatnonzero((np.ptp(F, axis=0) == 0) & (F[0] != 0))
    return int(level[0]) if len(level) else None
