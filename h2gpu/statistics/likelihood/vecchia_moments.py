"""The moments under Vecchia's approximation, with their derivatives in closed form, row by row.

    K_s = L Lᵀ, s = (N(i), i),   w = L⁻ᵀ e_last,   z = wᵀ B_s,   u = K_s⁻¹ B_s
    log det K ≈ −2 Σ log w_last,   M ≈ Σ z zᵀ
    ∂ log w_last = −½ wᵀ ∂K_s w,   ∂z = ½ z (wᵀ ∂K_s w) − uᵀ ∂K_s w

The first sites see all before them. One factor K = L Lᵀ has their rows: with P = L⁻¹ ∂K L⁻ᵀ and Φ its lower triangle,
half the diagonal,

    z = L⁻¹ B,   wᵀ ∂K_s w = P_ii,   ∂z = −Φ z

z is the standardized residual of site i given its neighbours. Rows are independent of each other: some of them, chosen
at random, give the moments of all to sampling error, and estimating equations that are still unbiased.

Reference: Guinness (2021), Gaussian process learning via Fisher scoring of Vecchia's approximation.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.device.threads import parallel
from h2gpu.covariance.sites import Sites
from h2gpu.progress import phase
from h2gpu.solvers.neighbours import nearest_earlier
from h2gpu.solvers.ordering import maximin_order
from h2gpu.solvers.small_factors import cholesky, covariances, last_rows, together
from h2gpu.statistics.likelihood.moments import Moments

SAME = "same"  # the derivative by the logarithm of the variance is the covariance itself
COLUMNS = 8  # of small triangular systems that are solved one after another, not by products


@dataclass(frozen=True, eq=False)
class VecchiaRows:
    """Which sites each row of Vecchia's approximation sees.

    sites    (n, dim) in the caller's order
    head     (m, ) the first sites in order: row i sees those before it
    tail     (rows, m + 1) sites of the others, each row's own last
    scale    by which sums over the tail's rows stand for all of them
    points   (n, dim) the sites in the coordinates in which these are neighbours, on the host
    """

    sites: object
    head: np.ndarray
    tail: np.ndarray
    scale: float = 1.0
    points: np.ndarray | None = None

    def some(self, rows, random_state=0):
        """At most so many rows of the tail, at random."""
        if rows >= len(self.tail):
            return self
        drawn = np.sort(np.random.default_rng(random_state).permutation(len(self.tail))[:rows])
        return replace(self, tail=self.tail[drawn], scale=len(self.tail) / rows)


def vecchia_rows(sites, cov, neighbours=30, random_state=0, known=None):
    """The VecchiaRows of (n, dim) sites; distances in the covariance's own coordinates.

    known   those by another covariance, all else being the same: they are these where distances are
    """
    x = to_host(Sites.of(sites, cov).points)
    if known is not None and np.array_equal(x, known.points):
        return known
    m = min(int(neighbours), len(x) - 1)
    order, places = maximin_order(x, random_state)
    tail = np.concatenate([nearest_earlier(x[order], places, m), np.arange(m, len(x))[:, None]], axis=1)
    return VecchiaRows(sites, order[:m], order[tail], points=x)


def row_scores(model, rows, noise, B):
    """∂ log p(residual of site i | its neighbours)/∂θ of each row of the tail, (rows, J), the trend being the one that
    fits these rows; arguments as for `vecchia_moments`."""
    z, _, dz, q = _tail(_Work(model, rows.sites, noise, B, True), rows, array_module(B))
    M = z.T @ z
    c = np.concatenate([[1.0], -np.linalg.solve(M[1:, 1:], M[1:, 0])])
    return -0.5 * q - (dz @ c) * (z @ c)[:, None]


def vecchia_moments(model, rows, noise, B, derivatives=False):
    """The Moments; arguments as for `moments.dense_moments`. Those of parts of the rows add up."""
    work = _Work(model, rows.sites, noise, B, derivatives)
    parts = [work.of_first(rows.head)] if len(rows.head) else []
    parts.append(_tail(work, rows, array_module(B)))
    z, logs, dz, q = (np.concatenate(part) for part in zip(*parts))
    weights = np.repeat([1.0, rows.scale], [len(rows.head), len(z) - len(rows.head)])
    return _summed(z, logs, dz, q, weights, derivatives)


def _tail(work, rows, xp):
    """What `_Work` gives for the rows of the tail, chunk by chunk."""
    step = together(xp, rows.tail.shape[1])
    chunks = [rows.tail[first : first + step] for first in range(0, len(rows.tail), step)]
    with phase("likelihood"):
        found = parallel(work, chunks) if xp is np else [work(chunk) for chunk in chunks]
    return tuple(np.concatenate(part) for part in zip(*found))


class _Work:
    """One chunk of rows at a time."""

    def __init__(self, model, sites, noise, B, derivatives):
        xp = array_module(sites)
        located = Sites.of(sites, model.cov)
        self.x, self.cov = located.points, located.cov
        self.B, n = B, len(sites)

        def nuggets(cov, nugget):
            own = 0.0 if cov is None else cov.nugget
            return xp.asarray(np.broadcast_to(noise(nugget) + own, n))

        self.nugget = nuggets(model.cov, model.nugget)
        self.derivatives = [
            (self._kept(cov, model), nuggets(cov, nugget))
            for cov, nugget in (model.derivatives() if derivatives else ())
        ]

    def _kept(self, derivative, model):
        """The derivative in the sites' units; None where it is zero between sites, SAME where it is the covariance."""
        if derivative is None or derivative.embedding is None:
            return None
        if model.is_itself(derivative):
            return SAME
        return derivative.placed(*model.cov.placement)

    def __call__(self, sites):
        """z (rows, columns), log w_last (rows,), ∂z (rows, J, columns), wᵀ ∂K w (rows, J) of rows (rows, m + 1)."""
        xp = array_module(self.x)
        s = xp.asarray(sites)
        x, B = self.x[s], self.B[s]
        K = covariances(self.cov.pair_function, x, self.nugget[s])
        L, _ = cholesky(K)
        V = forward(L, B)
        z, logs = V[:, -1], -xp.log(L[:, -1, -1])
        dz = xp.empty((len(s), len(self.derivatives), B.shape[2]))
        q = xp.empty((len(s), len(self.derivatives)))
        if self.derivatives:
            w, U = last_rows(L), backward(L, V)
        for j, (cov, nugget) in enumerate(self.derivatives):
            t = self._product(cov, nugget[s], x, K, w)
            q[:, j] = xp.einsum("im,im->i", t, w)
            dz[:, j] = 0.5 * z * q[:, j, None] - xp.einsum("imc,im->ic", U, t)
        return to_host(z), to_host(logs), to_host(dz), to_host(q)

    def of_first(self, sites):
        """The same of each of the first sites (m,), which sees those before it; on the host, where they are few."""
        s = array_module(self.x).asarray(sites)
        x, nugget, B = (to_host(part[s]) for part in (self.x, self.nugget, self.B))
        K = covariances(self.cov.pair_function, x[None], nugget)
        (L,), _ = cholesky(K)
        inverse = solve_triangular(L, np.eye(len(L)), lower=True)
        z, q = inverse @ B, np.empty((len(sites), len(self.derivatives)))
        dz = np.empty((*q.shape, B.shape[1]))
        for j, (cov, nugget) in enumerate(self.derivatives):
            D, diagonal = self._parts(cov, to_host(nugget[s]), x[None], K)
            P = inverse @ (D + D.swapaxes(1, 2) + np.diag(diagonal.ravel()))[0] @ inverse.T
            q[:, j] = np.diagonal(P)
            dz[:, j] = 0.5 * q[:, j, None] * z - np.tril(P) @ z
        return z, -np.log(np.diagonal(L)), dz, q

    def _product(self, cov, nugget, x, K, w):
        """∂K_s w."""
        if cov is None:
            return nugget * w
        xp, (D, diagonal) = array_module(x), self._parts(cov, nugget, x, K)
        return xp.einsum("imk,ik->im", D, w) + xp.einsum("imk,im->ik", D, w) + diagonal * w

    def _parts(self, cov, nugget, x, K):
        """∂K_s below its diagonal, and its diagonal; of K, as of every matrix here, the lower triangle is read."""
        xp = array_module(x)
        if cov is None:
            return xp.zeros_like(K), nugget
        D = xp.tril(K if cov is SAME else covariances(cov.values, x, 0.0), -1)
        return D, (self.cov if cov is SAME else cov).variances(x) + nugget


def forward(L, B):
    """L⁻¹ B for (batch, m, m) lower triangular factors and (batch, m, count), by halves."""
    m = L.shape[1]
    if m > COLUMNS:
        first, last = slice(m // 2), slice(m // 2, m)
        V = forward(L[:, first, first], B[:, first])
        W = forward(L[:, last, last], B[:, last] - L[:, last, first] @ V)
        return array_module(L).concatenate([V, W], axis=1)
    V = B.copy()
    for j in range(m):
        V[:, j] /= L[:, j, j, None]
        V[:, j + 1 :] -= L[:, j + 1 :, j, None] * V[:, j, None]
    return V


def backward(L, V):
    """L⁻ᵀ V for (batch, m, m) lower triangular factors and (batch, m, count), by halves."""
    m = L.shape[1]
    if m > COLUMNS:
        first, last = slice(m // 2), slice(m // 2, m)
        W = backward(L[:, last, last], V[:, last])
        U = backward(L[:, first, first], V[:, first] - L[:, last, first].swapaxes(1, 2) @ W)
        return array_module(L).concatenate([U, W], axis=1)
    U = V.copy()
    for j in reversed(range(m)):
        U[:, j] /= L[:, j, j, None]
        U[:, :j] -= L[:, j, :j, None] * U[:, j, None]
    return U


def _summed(z, logs, dz, q, weights, derivatives):
    """The Moments of all rows."""
    weighted = weights[:, None] * z
    logdet, gram = -2 * float(weights @ logs), z.T @ weighted
    if not derivatives:
        return Moments(logdet, gram)
    half = np.einsum("ijc,id->jcd", dz, weighted)

    def information(c):
        """Σ (expected information of row i given its neighbours): ∂ mean² + ½ ∂ log variance²."""
        means = dz @ c + 0.5 * q * (z @ c)[:, None]
        return (means.T * weights) @ means + 0.5 * (q.T * weights) @ q

    return Moments(logdet, gram, weights @ q, half + half.transpose(0, 2, 1), information)
