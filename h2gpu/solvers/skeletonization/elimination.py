"""One colour of a level: in each cell b the redundant indices R are eliminated, the skeleton S stays.

    F    = [A_{M(b),b}; √w K(P, b)],   F Π = Q R by pivoted QR,   T = R11⁻¹ R12,   up to τ = eta / max diag(A_bb⁻¹)
    X_RR = A_RR − Tᵀ A_SR − A_RS T + Tᵀ A_SS T = L Lᵀ,     X_SR = A_SR − A_SS T,     X_NR = A_NR − A_NS T
    Y    = [X_SR; X_NR] L⁻ᵀ,   A_{S∪N, S∪N} −= Y Yᵀ

η = eta bounds the far block that is dropped by the smallest conditional variance in the cell: relative to the far block
itself, as in the textbook, smooth fields lose their definiteness. Cells are worked on in groups of about one size,
padded: a padded index is one of variance 1 that nothing depends on. Reference: Minden et al. (2017), section 3.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.solvers.skeletonization.factor import Step

FEWEST = 16  # indices of a cell that is worth an elimination


@dataclass(frozen=True, eq=False)
class Field:
    """What eliminations ask of the covariance.

    points    (n + 1, dim) where the work is done; the last one is any
    values    of pairs of points
    nugget    (n + 1,) variance on the diagonal in addition
    proxies   `proxies.Proxies`
    grid      `cells.Grid`
    eta       see above
    """

    points: object
    values: object
    nugget: object
    proxies: object
    grid: object
    eta: float

    @property
    def n(self):
        """Number of sites."""
        return len(self.points) - 1

    def panel(self, I, others, P, roots):
        """K of lists (cells, rows), and √w K of the proxies P (cells, proxies), with I: (cells, rows + proxies, i).

        Zero where an index of `others` or I is padded.
        """
        xp = array_module(self.points)
        x = xp.concatenate([self.points[others], xp.asarray(P)], axis=1)
        K = self.values(x[:, :, None], self.points[I][:, None, :])
        K *= xp.asarray(np.concatenate([self.n > others, roots], axis=1))[:, :, None]
        if (self.n == I).any():
            K *= xp.asarray(self.n > I)[:, None, :]
        return K

    def diagonal(self, I):
        """What is added to the diagonal of K of a padded list (cells, i): the nugget, and one where it is padded."""
        xp = array_module(self.points)
        return xp.where(xp.asarray(self.n > I), self.nugget[I], 1.0)


def eliminate(field, level, changes, depth, together, cells):
    """The Steps of a group of cells of one colour, (cells,); level and changes are brought up to date.

    Skeletons are found for the whole group at once; redundant indices are eliminated from `together` cells at a time,
    of which about equally many are redundant, so that little is padded (a step of 8 of 64 cells: 10 % of the memory).
    """
    xp, n, split = array_module(field.points), field.n, level.adjacent
    near, width = level.near[cells], field.grid.width(depth)
    I, N, M = (_padded(level, some, n) for some in (near[:, :1], near[:, 1:split], near[:, split:]))
    middles = field.grid.corner + (level.places[cells] + 0.5) * width
    K = field.panel(I, np.concatenate([I, N, M], axis=1), *field.proxies.around(middles, width))
    A, far = K[:, : I.shape[1]], I.shape[1] + N.shape[1]
    add_to_diagonals(K, field.diagonal(I))
    places = changes.places(level, cells, I.shape[1], far)
    changes.add(K, places)
    order, kept, T = skeletons(K[:, far:], A, field.eta, n > I)
    sizes, beside = (n > I).sum(axis=1), (n > N).sum(axis=1)
    similar, steps = np.lexsort((beside, sizes - kept)), []
    for i in range(0, len(cells), together):
        part = similar[i : i + together]
        s, r, around = kept[part].max(), (sizes - kept)[part].max(), beside[part].max()
        S, R = _split(order[part], kept[part], sizes[part], s, r, I.shape[1])
        L, Y = _eliminated(K[part, : I.shape[1] + around], S, R, T[part, :s, :r])
        changes.update(level, cells[part], [places[b] for b in part], S, kept[part], Y, I.shape[1], far)
        own = np.concatenate([I[part], np.full((len(part), 1), n)], axis=1)
        skeleton = np.take_along_axis(own, S, 1)
        for cell, k, some in zip(cells[part].tolist(), kept[part].tolist(), skeleton):
            level.keep(cell, some[:k])
        SN = np.concatenate([skeleton, N[part, :around]], axis=1)
        indices = (xp.asarray(some.astype(np.int32)) for some in (np.take_along_axis(own, R, 1), SN))
        steps.append(Step(*indices, T[part, :s, :r].copy(), L, Y, depth, level.places[cells[part]]))
    return steps


def skeletons(F, A, eta, real):
    """Which columns of F (cells, m, n) stay, and how the others depend on them: F[:, R] ≈ F[:, S] T.

    A      (cells, n, n) A_bb, whose inverses tell the tolerances
    real   (cells, n) mask on the host: columns that are not padded, those in front

    The order of the columns (cells, n) and how many stay (cells,), on the host; T (cells, most, n − least), its columns
    in that order.
    """
    xp, n = array_module(F), F.shape[2]
    L, info = batched.cholesky(A, return_info=True)
    _refuse(info)
    inverse = batched.trsm(L, xp.ascontiguousarray(xp.broadcast_to(xp.eye(n), A.shape)))
    tau = eta / xp.where(xp.asarray(real), (inverse**2).sum(axis=1), 0).max(axis=1)
    W = batched.qr(F, "r") if F.shape[1] > n else F.copy()
    W /= tau[:, None, None]  # so that one tolerance, 1, serves all, and none comes to the host
    _, triangles, pivots, _ = batched.pivoted_qr(W, 1.0)
    ranks = to_host((abs(xp.diagonal(triangles, axis1=1, axis2=2)) > 1).sum(axis=1))
    s = int(ranks.max(initial=0))
    R11 = triangles[:, :s, :s].copy()
    beyond = np.arange(s) >= ranks[:, None]
    R11 *= xp.asarray(~beyond)[:, None, :]
    add_to_diagonals(R11, xp.asarray(beyond))
    T = batched.trsm(R11, xp.ascontiguousarray(triangles[:, :s]), lower=False)
    pivots = to_host(pivots).astype(np.int64)
    padded = ~np.take_along_axis(real, pivots, 1)
    position = np.where(np.arange(n) < ranks[:, None], -1, padded)  # the skeleton, redundant indices, padded ones
    order = np.argsort(position, axis=1, kind="stable")
    r = int((real.sum(axis=1) - ranks).max(initial=0))
    columns = np.minimum(ranks[:, None] + np.arange(r), n - 1)
    valid = ranks[:, None] + np.arange(r) < real.sum(axis=1)[:, None]
    columns = xp.asarray(np.take_along_axis(order, columns, 1))
    T = xp.take_along_axis(T, columns[:, None, :], 2) * xp.asarray(valid)[:, None, :]
    return np.take_along_axis(pivots, order, 1), ranks, T


def _split(order, kept, sizes, s, r, dummy):
    """Local positions of the skeleton (cells, s) and of the redundant indices (cells, r), padded by `dummy`."""
    order = np.concatenate([order, np.full((len(order), 1), dummy)], axis=1)
    j, k = np.arange(s), kept[:, None] + np.arange(r)
    S = np.where(j < kept[:, None], order[:, :s], dummy)
    R = np.where(k < sizes[:, None], np.take_along_axis(order, np.minimum(k, dummy), 1), dummy)
    return S, R


def _eliminated(A, S, R, T):
    """L and Y from A (cells, n + neighbours, n), the cell's own rows first."""
    xp, n = array_module(A), A.shape[2]
    X = _columns(A, R) - _columns(A, S) @ T
    X_R, X_S = _rows(X[:, :n], R), _rows(X[:, :n], S)
    X_R -= T.swapaxes(1, 2) @ X_S
    add_to_diagonals(X_R, xp.asarray(n == R))
    L, info = batched.cholesky(X_R, return_info=True)
    _refuse(info)
    X = xp.concatenate([X_S, X[:, n:]], axis=1)
    return L, batched.trsm(L, X, side="right", trans=True)


def _columns(A, which):
    """A[:, :, which], zero for the dummy."""
    xp, n = array_module(A), A.shape[2]
    found = xp.take_along_axis(A, xp.asarray(np.minimum(which, n - 1))[:, None, :], 2)
    return found * xp.asarray(which < n)[:, None, :]


def _rows(A, which):
    """A[:, which], zero for the dummy."""
    xp, n = array_module(A), A.shape[1]
    found = xp.take_along_axis(A, xp.asarray(np.minimum(which, n - 1))[:, :, None], 1)
    return found * xp.asarray(which < n)[:, :, None]


def _padded(level, cells, n):
    """The indices of several cells each, (cells, some) with −1 for none: (cells, most), padded by n."""
    at, _ = level.positions(cells)
    return np.where(at < 0, n, level.members[at])


def add_to_diagonals(A, d):
    """A_bii += d_bi of contiguous (cells, m, n) matrices, m ≥ n, in place; d (cells, n)."""
    n = A.shape[2]
    A.reshape(len(A), -1)[:, : n * n : n + 1] += d


def _refuse(info):
    """NotDefinite where a factor does not exist."""
    if bool((info != 0).any()):
        raise NotDefinite("a pivot that is not positive")


class NotDefinite(np.linalg.LinAlgError):
    """The approximation lost its definiteness."""
