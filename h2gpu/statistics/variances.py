"""Kriging variances: exact for few targets and direct factorizations, else an upper bound of measured error.

    σ²(x) = C(0) − kᵀ K⁻¹ k + uᵀ (Qᵀ K⁻¹ Q)⁻¹ u,     u = q(x) − Qᵀ K⁻¹ k      k = C(sites, x), q trend columns

The last term is exact for all targets: K⁻¹ Q is known. The others are the variance given all data. Given the nearest m
data alone it can only be larger. For each target m is doubled until that changes the standard deviation by less than
half of what is asked for; by how much it then exceeds the exact one is measured at random targets.

Reference: Cressie (1993), section 3.4; Stein (2002), The screening effect in kriging.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.device.threads import parallel
from h2gpu.progress import phase
from h2gpu.solvers.neighbours import nearest
from h2gpu.solvers.small_factors import cholesky, covariances, together

EXACT = 64  # targets whose variances are exact: one block of solves
CHECKED = 16  # random targets whose exact variances tell the error
FEWEST, MOST = 60, 480  # nearest sites
SETTLED = 0.5  # of rtol: where doubling m changes a standard deviation by less, it is taken
REPORTED = 32  # chunks between two reports of progress


@dataclass(frozen=True)
class VarianceError:
    """How the standard deviations of the last prediction are known.

    neighbours   nearest sites they are computed from, at most; None for all of them
    checked      random targets compared with the exact result
    mean, worst  relative excess of their standard deviations, in the mean and at most
    """

    neighbours: int | None
    checked: int = 0
    mean: float = 0.0
    worst: float = 0.0


def tell_error(error, std_rtol, stacklevel=4):
    """A warning where standard deviations are less accurate, by their VarianceError, than was asked for."""
    if error.worst > std_rtol:
        warnings.warn(
            f"standard deviations: {error.worst:.2g} too large at worst of {error.checked} random targets, beside "
            f"exact ones, where std_rtol={std_rtol:g} was asked; take std_rtol=0 for exact ones",
            stacklevel=stacklevel,
        )


def simple_variances(system, cross, noise, rtol, random_state=0, added=0.0):
    """C(0) − kᵀ K⁻¹ k of all targets on the host, (m,), and the VarianceError.

    system   of K
    cross    CrossCovariance of targets and sites
    noise    variance of the measurement errors, one number or (n,) on the host
    rtol     relative error of the standard deviations that is wanted; 0: exact everywhere
    added    variance that is added to them afterwards, the measurement error of new observations: it counts for rtol
    """
    m = cross.shape[0]
    if system.exact or m <= EXACT or rtol == 0 or hasattr(system, "explained_at"):
        return exact_variances(system, cross), VarianceError(None)
    variances, neighbours = Local(cross, noise).settled(rtol, added)
    some = drawn(m, random_state)
    exact = exact_variances(system, cross.of(some))
    return variances, compared(variances[some], exact, neighbours, added)


def drawn(m, random_state):
    """The targets of m whose exact variances are computed."""
    return np.sort(np.random.default_rng(random_state).permutation(m)[:CHECKED])


def compared(variances, exact, neighbours, added=0.0):
    """The VarianceError of variances beside exact ones of the same targets, (count,) on the host."""
    exact = np.sqrt(exact + added)
    excess = np.sqrt(variances + added) - exact
    relative = np.divide(excess, exact, out=np.zeros(len(exact)), where=exact > 0)
    return VarianceError(neighbours, len(exact), float(relative.mean()), float(relative.max()))


def exact_variances(system, cross):
    """C(0) − kᵀ K⁻¹ k of all targets on the host, (m,), EXACT of them at a time."""
    m, total = cross.shape[0], total_variances(cross)
    if m > EXACT and hasattr(system, "explained_at"):
        return np.maximum(total - to_host(system.explained_at(cross)), 0)
    variances = np.empty(m)
    with phase("variances", m) as advance:
        for first in range(0, m, EXACT):
            some = slice(first, min(first + EXACT, m))
            variances[some] = total[some] - to_host(system.explained(cross.columns(some)))
            advance(some.stop - first)
    return np.maximum(variances, 0)


def total_variances(cross):
    """C(0) of all targets on the host, (m,)."""
    located = cross.located
    return np.broadcast_to(to_host(located.cov.variances(located.points)) + cross.cov.nugget, (cross.shape[0],))


class Local:
    """Variances from the nearest sites; targets at a site observed without error have none."""

    def __init__(self, cross, noise):
        self.cross = cross
        self.x, self.y, self.cov = cross.located.points, cross.located.columns, cross.located.cov
        self.host, y = to_host(self.x), to_host(self.y)
        self.tree, self.both = cKDTree(y), array_module(self.x).asarray(np.concatenate([y, self.host]))
        self.noise = np.broadcast_to(noise, len(self.y))

    def settled(self, rtol, added):
        """(m,) variances on the host, each from enough neighbours, and how many were needed at most."""
        n, neighbours = len(self.y), min(FEWEST, len(self.y))
        left = np.arange(len(self.x))
        variances = self.variances(left, neighbours)
        while len(left) and neighbours < min(MOST, n):
            neighbours = min(2 * neighbours, n)
            before = variances[left]
            variances[left] = more = np.minimum(self.variances(left, neighbours), before)
            left = left[np.sqrt(before + added) > (1 + SETTLED * rtol) * np.sqrt(more + added)]
        return variances, neighbours

    def variances(self, some, neighbours):
        """(count,) variances on the host given the nearest sites of targets some (count,)."""
        xp, step = array_module(self.x), together(array_module(self.x), neighbours + 1)
        variances, starts = np.empty(len(some)), range(0, len(some), step)

        def work(start):
            own = some[start : start + step]
            variances[start : start + step] = self._of(own, neighbours)

        with phase("variances", len(some)) as advance:
            for first in range(0, len(starts), REPORTED):
                chunk = starts[first : first + REPORTED]
                parallel(work, chunk) if xp is np else [work(start) for start in chunk]
                advance(min(len(chunk) * step, len(some) - chunk[0]))
        return variances

    def _of(self, targets, neighbours):
        """L_mm² of the covariance of the nearest sites, then the target."""
        xp, nugget = array_module(self.x), self.cov.nugget
        distances, sites = nearest(self.tree, self.host[targets], neighbours)
        there = (distances == 0) & bool(nugget)
        known = ((distances == 0) & (self.noise[sites] == 0)).any(axis=1)
        own = np.concatenate([self.noise[sites] + nugget, np.full((len(targets), 1), nugget)], axis=1)
        own[known, -1] += self.cov.variance_at_zero  # any positive number: the factor is not used
        points = self.both[xp.asarray(np.concatenate([sites, len(self.y) + targets[:, None]], axis=1))]
        K = covariances(self.cov.pair_function, points, xp.asarray(own))
        if there.any():
            K[:, -1, :-1] += nugget * xp.asarray(there)
        L, _ = cholesky(K)
        return np.where(known, 0.0, to_host(L[:, -1, -1]) ** 2)


def trend_variances(information, q, products):
    """uᵀ (Qᵀ K⁻¹ Q)⁻¹ u of all targets, (m,).

    information   (p, p) Qᵀ K⁻¹ Q on the host
    q             (m, p) orthonormal trend columns at the targets
    products      (m, p) C K⁻¹ Q
    """
    xp = array_module(q)
    u = q - products
    return xp.einsum("ij,ij->i", u, u @ xp.asarray(np.linalg.inv(information)))
