"""Generalized least squares: the trend, and the weights of all predictions.

    β = (Fᵀ K⁻¹ F)⁻¹ Fᵀ K⁻¹ y,     w = K⁻¹ (y − F β),     one solve for [y, F] together

The columns of F are scaled to unit range and orthonormalized first, so that far-away origins cost no digits.
Reference: Cressie (1993), Statistics for spatial data, section 3.4.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.batched.arrays import array_module, to_host

DEPENDENT = 1e-10  # of the largest: a singular value of F below means that its columns are linearly dependent


@dataclass(frozen=True, eq=False)
class Regression:
    """The solved equations.

    coefficients  (p,) β on the host, for the columns of F as given
    weights       (n,) w = K⁻¹ (y − F β)
    quadratic     (y − F β)ᵀ w
    solved        (n, p) K⁻¹ Q of the orthonormal columns Q = F change
    change        (p, p) on the host
    information   (p, p) Qᵀ K⁻¹ Q on the host
    """

    coefficients: np.ndarray
    weights: object
    quadratic: float
    solved: object
    change: np.ndarray
    information: np.ndarray

    @property
    def log_determinant(self):
        """log det Fᵀ K⁻¹ F, which the restricted likelihood needs."""
        return float(np.linalg.slogdet(self.information)[1] - 2 * np.linalg.slogdet(self.change)[1])

    @property
    def covariance(self):
        """(Fᵀ K⁻¹ F)⁻¹, the covariance of β, (p, p)."""
        return self.change @ np.linalg.solve(self.information, self.change.T)


def regression(system, y, F):
    """The Regression of y (n,) on the columns of F (n, p), for a covariance system with `solve`.

    Raises ValueError where the columns of F are linearly dependent.
    """
    xp, p = array_module(y), F.shape[1]
    change = orthonormalizer(F)
    Q = F @ xp.asarray(change)
    both = system.solve(xp.concatenate([y[:, None], Q], axis=1))
    information = to_host(Q.T @ both[:, 1:])
    information = 0.5 * (information + information.T)
    gamma = np.linalg.solve(information, to_host(Q.T @ both[:, 0])) if p else np.zeros(0)
    weights = both[:, 0] - both[:, 1:] @ xp.asarray(gamma)
    quadratic = float(weights @ (y - Q @ xp.asarray(gamma)))
    return Regression(change @ gamma, weights, quadratic, both[:, 1:], change, information)


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
