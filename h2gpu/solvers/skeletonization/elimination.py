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
from h2gpu.batched.core.offsets import offsets_of, ranges

FEWEST = 16  # indices of a cell that is worth an elimination


@dataclass(frozen=True, eq=False)
class Step:
    """What the elimination of a group of cells keeps; n stands for a padded index.

    R      (cells, r) indices that were eliminated
    SN     (cells, s + neighbours) those that they are coupled with, the skeleton first
    T      (cells, s, r)
    L      (cells, r, r) lower triangular
    Y      (cells, s + neighbours, r)
    """

    R: object
    SN: object
    T: object
    L: object
    Y: object

    @property
    def nbytes(self):
        """Bytes of all that."""
        return sum(part.nbytes for part in (self.R, self.SN, self.T, self.L, self.Y))

    @property
    def s(self):
        """Most indices of a skeleton."""
        return self.T.shape[1]


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

    def between(self, I, J):
        """K of padded lists of indices (cells, i) and (cells, j): (cells, i, j), zero where one is padded."""
        xp = array_module(self.points)
        K = self.values(self.points[I][:, :, None], self.points[J][:, None, :])
        K *= xp.asarray(self.n > I)[:, :, None]
        K *= xp.asarray(self.n > J)[:, None, :]
        return K

    def own(self, I):
        """K of padded lists with themselves, the nugget added, and one for padded indices."""
        xp = array_module(self.points)
        K = self.between(I, I)
        xp.einsum("bii->bi", K)[...] += xp.where(xp.asarray(self.n > I), self.nugget[I], 1.0)
        return K


def eliminate(field, level, changes, depth, cells):
    """The Step of a group of cells of one colour, (cells,); level and changes are brought up to date."""
    xp, n = array_module(field.points), field.n
    near = level.near[cells, 1:]
    adjacent = near[:, : level.adjacent - 1]
    I, N, M = (_padded(level, some, n) for some in (cells[:, None], adjacent, near[:, level.adjacent - 1 :]))
    D, places = _gathered(level, changes, cells, near, I.shape[1], N.shape[1], M.shape[1], xp)
    own = D[:, : I.shape[1]]
    A = field.own(I) + own
    middles = field.grid.corner + (level.places[cells] + 0.5) * field.grid.width(depth)
    P, roots = field.proxies.around(middles, field.grid.width(depth))
    seen = field.values(xp.asarray(P)[:, :, None], field.points[I][:, None, :])
    seen *= xp.asarray(roots)[:, :, None] * xp.asarray(n > I)[:, None, :]
    far = I.shape[1] + N.shape[1]
    F = xp.concatenate([field.between(M, I) + D[:, far:], seen], axis=1)
    order, kept, T = skeletons(F, A, field.eta, n > I)
    s, r = kept.max(), T.shape[2]
    S, R = _split(order, kept, (n > I).sum(axis=1), s, r, I.shape[1])
    A = xp.concatenate([A, field.between(N, I) + D[:, I.shape[1] : far]], axis=1)
    L, Y = _eliminated(A, S, R, T)
    _updated(level, changes, cells, D, places, S, kept, Y, I, N.shape[1])
    I = np.concatenate([I, np.full((len(I), 1), n)], axis=1)
    SN = np.concatenate([np.take_along_axis(I, S, 1), N], axis=1)
    return Step(xp.asarray(np.take_along_axis(I, R, 1)), xp.asarray(SN), T, L, Y)


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
    W = batched.qr(F, "r") if F.shape[1] > n else F
    _, triangles, pivots, ranks = batched.pivoted_qr(W, to_host(tau))
    s = int(ranks.max(initial=0))
    R11 = triangles[:, :s, :s].copy()
    beyond = np.arange(s) >= ranks[:, None]
    R11 *= xp.asarray(~beyond)[:, None, :]
    xp.einsum("bii->bi", R11)[...] += xp.asarray(beyond)
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
    xp.einsum("bii->bi", X_R)[...] += xp.asarray(n == R)
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
    count = np.where(cells < 0, 0, level.count[cells])
    total = count.sum(axis=1)
    padded = np.full((len(cells), int(total.max(initial=0))), n)
    rows, columns = np.repeat(np.arange(len(cells)), total), ranges(np.zeros_like(total), total)
    padded[rows, columns] = level.members[ranges(level.first[cells].ravel(), count.ravel())]
    return padded


def _gathered(level, changes, cells, near, n, adjacent, far, xp):
    """D_ab of every cell b with itself, N(b), M(b), padded: (cells, n + adjacent + far, n).

    places   for each cell the list of its blocks: (number, turned, first row, rows, neighbour)
    """
    D, places, split = xp.zeros((len(cells), n + adjacent + far, n)), [], level.adjacent - 1
    every = np.concatenate([cells[:, None], near], axis=1)
    own, slots = np.nonzero(every >= 0)
    others = every[own, slots]
    numbers, turned = changes.of(others, cells[own])
    count, width = level.count[others], level.count[cells]
    starts = np.array([0, n, n + adjacent])[1 * (slots > 0) + (slots > split)]
    group = np.stack([own, starts], axis=1)
    new = np.r_[True, (np.diff(group, axis=0) != 0).any(axis=1)]
    before = offsets_of(count)[:-1]
    starts = starts + before - before[new][np.cumsum(new) - 1]
    width = width.tolist()
    sides = (side.tolist() for side in (own, starts, count, others))
    for (b, start, rows, cell), number, flag in zip(zip(*sides), numbers, turned):
        D[b, start : start + rows, : width[b]] = changes.block(number, flag, rows, width[b])
        if start == 0:
            places.append([])
        places[b].append((number, flag, start, rows, cell))
    return D, places


def _updated(level, changes, cells, D, places, S, kept, Y, I, adjacent):
    """Blocks with b restricted to S, and − Y Yᵀ added to those of S ∪ N(b)."""
    n, s = I.shape[1], S.shape[1]
    D = _columns(D, S)
    D[:, :s] = _rows(D[:, :n], S)
    U = Y @ Y.swapaxes(1, 2)
    D[:, :s] -= U[:, :s, :s]
    D[:, n : n + adjacent] -= U[:, s:, :s]
    for b, (cell, k) in enumerate(zip(cells.tolist(), kept.tolist())):
        for number, flag, start, rows, _ in places[b]:
            rows = k if start == 0 else rows
            changes.block(number, flag, rows, k)[...] = D[b, start : start + rows, :k]
        beside = [place for place in places[b] if n <= place[2] < n + adjacent]
        first, second = np.tril_indices(len(beside))
        names = np.array([place[4] for place in beside], np.int64)
        numbers, turned = changes.of(names[first], names[second])
        for number, flag, i, j in zip(numbers, turned, first.tolist(), second.tolist()):
            (_, _, at, rows, _), (_, _, to, columns, _) = beside[i], beside[j]
            at, to = at - n + s, to - n + s
            changes.block(number, flag, rows, columns)[...] -= U[b, at : at + rows, to : to + columns]
        level.keep(cell, I[b, S[b, :k]])


def _refuse(info):
    """NotDefinite where a factor does not exist."""
    if bool((info != 0).any()):
        raise NotDefinite("a pivot that is not positive")


class NotDefinite(np.linalg.LinAlgError):
    """The approximation lost its definiteness."""
