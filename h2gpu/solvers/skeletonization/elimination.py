"""One colour of a level: in each cell b the redundant indices R are eliminated, the skeleton S stays.

    F    = [A_{M(b),b}; √w K(P, b)],   F Π = Q R by pivoted QR,   T = R11⁻¹ R12,   up to τ = eta / max diag(A_bb⁻¹)
    X_RR = A_RR − Tᵀ A_SR − A_RS T + Tᵀ A_SS T = L Lᵀ,     X_SR = A_SR − A_SS T,     X_NR = A_NR − A_NS T
    Y    = [X_SR; X_NR] L⁻ᵀ,   A_{S∪N, S∪N} −= Y Yᵀ

η = eta bounds the far block that is dropped by the smallest conditional variance in the cell: relative to the far block
itself, as in the textbook, smooth fields lose their definiteness. Cells are worked on in groups of about one size,
padded: a padded index is one of variance 1 that nothing depends on. Reference: Minden et al. (2017), section 3.
"""

from dataclasses import dataclass, field

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.batched.copies import add_to_diagonals, signs
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.covariance.pairs import pairwise
from h2gpu.solvers.skeletonization.cells import Rows, with_last
from h2gpu.solvers.skeletonization.factor import Step
from h2gpu.solvers.skeletonization.flat_changes import twin
from h2gpu.solvers.skeletonization.ragged import packed
from h2gpu.solvers.skeletonization.triangles import Triangles

FEWEST = 16  # indices of a cell that is worth an elimination


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Of Cholesky factors, read later and together: a GPU works on while the host prepares the next cells.

    pending   what factors say, (cells,) each: not zero where one does not exist; it is NaN then, and so is what follows
    """

    pending: list = field(default_factory=list)

    def add(self, info):
        """What a factor says; on the CPU NotDefinite at once."""
        if array_module(info) is np:
            _refuse(info)
        else:
            self.pending.append(info)

    def check(self):
        """NotDefinite where a factor does not exist; waits for a GPU."""
        told = self.pending[:]
        self.pending.clear()
        if told:
            _refuse(array_module(told[0]).concatenate(told))


@dataclass(frozen=True, eq=False)
class Field:
    """What eliminations ask of the covariance.

    points    (n + 1, dim) where the work is done; the last one is any
    function  of pairs of points, for `pairwise`
    nugget    (n + 1,) variance on the diagonal in addition
    proxies   `proxies.Proxies`
    grid      `cells.Grid`
    eta       see above
    verdicts  of its factors
    """

    points: object
    function: object
    nugget: object
    proxies: object
    grid: object
    eta: float
    verdicts: Verdicts = field(default_factory=Verdicts)

    @property
    def n(self):
        """Number of sites."""
        return len(self.points) - 1

    def panel(self, others, columns, P, roots):
        """K of lists (cells, rows), and √w K of the proxies P (cells, proxies), with the first of the lists' indices:
        (cells, rows + proxies, columns).

        Zero where an index is padded.
        """
        xp = array_module(self.points)
        x, I = xp.concatenate([self.points[others], P], axis=1), others[:, :columns]
        K = xp.empty((*x.shape[:2], columns))
        pairwise(self.function, *map(MatrixBatch.from_stack, (x, self.points[I], K)))
        twin(K).mask_panels(K, xp.concatenate([self.n > others, roots], axis=1))
        return K

    def diagonal(self, I):
        """What is added to the diagonal of K of a padded list (cells, i): the nugget, and one where it is padded."""
        xp = array_module(self.points)
        return xp.where(self.n > I, self.nugget[I], 1.0)


@dataclass(frozen=True, eq=False)
class Panels:
    """Panels of some cells b of one colour, and what their elimination brings up to date.

    field     what the entries come from; level, changes and depth: where the cells are
    cells     (cells,) their numbers
    rows      `cells.Rows` of the panels
    indices   (cells, rows) site numbers
    places    of the blocks of changes in the panels
    K         (cells, rows and proxies, most indices of a cell), A_bb first
    """

    field: object
    level: object
    changes: object
    depth: int
    cells: np.ndarray
    rows: Rows
    indices: object
    places: object
    K: object

    @classmethod
    def of(cls, field, level, changes, depth, cells):
        """Of these cells."""
        xp, width, rows = array_module(field.points), field.grid.width(depth), Rows.of(level, cells)
        own, indices = rows.own, level.members[rows.at]
        centres = field.grid.corner + (level.places[cells] + 0.5) * width
        proxies = field.proxies.around(centres, width, xp)
        K = field.panel(indices, own, *proxies)
        add_to_diagonals(K, field.diagonal(indices[:, :own]))
        places = changes.places(level, cells, rows)
        changes.add(K, places)
        return cls(field, level, changes, depth, cells, rows, indices, places, K)

    def step(self, part, some, S, R, T, kept):
        """The Step of part of the cells, level and changes brought up to date.

        part, some   numbers (part,) among the cells, on the host and as an index where the work is done
        S, R         (part, s), (part, r) positions of skeletons and redundant indices in the panels, padded by rows.own
        T            (part, s, r)
        kept         (part,) indices of the skeletons, on the host
        """
        level, rows, xp, n = self.level, self.rows, array_module(self.K), self.field.n
        end = rows.own + rows.beside[part].max()
        K = self.K if isinstance(some, slice) else self.K[some, :end]
        L, Y, info = _eliminated(K, end, S, R, T)
        self.field.verdicts.add(info)
        self.changes.update(level, self.cells, rows, self.places, part, S, kept, Y)
        inside = with_last(self.indices[some, : rows.own], n)
        skeleton = twin(K).along(inside, S, 1)
        level.keep(self.cells[part], kept, skeleton)
        SN = xp.concatenate([skeleton, self.indices[some, rows.own : end]], axis=1)
        R = twin(K).along(inside, R, 1)
        if self.changes.packed:
            redundant, s = rows.sizes[part] - kept, S.shape[1]
            L = Triangles.of(L, redundant)
            T, Y = packed(kept, redundant, (T, s, np.zeros_like(kept)), (Y, s, rows.beside[part]))
            SN[:, :s] = _moved_down(skeleton, xp.asarray(s - kept))
        return Step(R, SN, T, L, Y, self.depth, level.places[self.cells[part]])


def eliminate(field, level, changes, depth, together, cells):
    """The Steps of a group of cells of one colour, (cells,); level and changes are brought up to date.

    Skeletons are found for the whole group at once; redundant indices are eliminated from `together` cells at a time,
    of which about equally many are redundant, so that little is padded (a step of 8 of 64 cells: 10 % of the memory).
    """
    xp, panels = array_module(field.points), Panels.of(field, level, changes, depth, cells)
    rows, K, own, sizes = panels.rows, panels.K, panels.rows.own, panels.rows.sizes
    order, ranks, kept, T = skeletons(
        K[:, rows.far :], K[:, :own], field.eta, rows.real[:, :own], sizes, field.verdicts
    )
    similar, steps = np.arange(len(cells)), []
    if together < len(cells):
        similar = np.lexsort((rows.beside, sizes - kept))
    for i in range(0, len(cells), together):
        part = similar[i : i + together]
        s, r = kept[part].max(), (sizes - kept)[part].max()
        some = xp.asarray(part) if together < len(cells) else slice(None)
        S, R = _split(order[some], ranks[some], xp.asarray(sizes[part]), s, r, own)
        steps.append(panels.step(part, some, S, R, T[some, :s, :r].copy(), kept[part]))
    return steps


def skeletons(F, A, eta, real, sizes, verdicts):
    """Which columns of F (cells, m, n) stay, and how the others depend on them: F[:, R] ≈ F[:, S] T.

    Reads from a GPU once, behind the pivoted QR: verdicts and numbers of columns that stay.

    A          (cells, n, n) A_bb, whose inverses tell the tolerances
    real       (cells, n) mask of columns that are not padded, those in front
    sizes      (cells,) how many, on the host
    verdicts   `Verdicts`, that are read here

    The order of the columns (cells, n); how many stay (cells,), and these numbers on the host; T (cells, most,
    n − least), its columns in that order.
    """
    xp, n, along = array_module(F), F.shape[2], twin(F).along
    L, info = batched.cholesky(A, return_info=True)
    verdicts.add(info)
    inverse = batched.trsm(L, xp.ascontiguousarray(xp.broadcast_to(xp.eye(n), A.shape)))
    tau = eta / xp.where(real, (inverse**2).sum(axis=1), 0).max(axis=1)
    W = batched.qr(F, "r") if F.shape[1] > n else F.copy()
    W /= tau[:, None, None]  # so that one tolerance, 1, serves all, and none comes to the host
    try:
        triangles, pivots, _ = batched.pivoted_qr(W, 1.0, mode="r")
    except np.linalg.LinAlgError as error:  # NaN, of a factor whose verdict is still to be read
        raise NotDefinite("a pivot that is not positive") from error
    verdicts.check()
    ranks = (abs(xp.diagonal(triangles, axis1=1, axis2=2)) > 1).sum(axis=1)
    kept, column = to_host(ranks), xp.arange(n)
    s = int(kept.max(initial=0))
    R11 = triangles[:, :s, :s].copy()
    beyond = column[:s] >= ranks[:, None]
    R11 *= ~beyond[:, None, :]
    add_to_diagonals(R11, beyond)
    T = batched.trsm(R11, xp.ascontiguousarray(triangles[:, :s]), lower=False)
    padded = ~along(real, pivots, 1)
    position = xp.where(column < ranks[:, None], -1, padded)  # the skeleton, redundant indices, padded ones
    order = xp.argsort(position, axis=1, kind="stable")
    columns = ranks[:, None] + xp.arange(int((sizes - kept).max(initial=0)))
    valid = columns < xp.asarray(sizes)[:, None]
    columns = along(order, columns, 1)
    T = along(T, columns, 2) * valid[:, None, :]
    return along(pivots, order, 1), ranks, kept, T


def _split(order, kept, sizes, s, r, dummy):
    """Local positions of the skeleton (cells, s) and of the redundant indices (cells, r), padded by `dummy`."""
    xp = array_module(order)
    j, k = xp.arange(s), kept[:, None] + xp.arange(r)
    S = xp.where(j < kept[:, None], order[:, :s], dummy)
    R = xp.where(k < sizes[:, None], twin(order).along(order, k, 1), dummy)
    return S, R


def _eliminated(A, height, S, R, T):
    """L, Y and what L says (cells,), from the first `height` rows of A (cells, ·, n), the cell's own n before all."""
    xp, n = array_module(A), A.shape[2]
    along = twin(A).along
    X = along(A, R, 2, height) - along(A, S, 2, height) @ T
    X_R, X_S = along(X[:, :n], R, 1), along(X[:, :n], S, 1)
    X_R -= T.swapaxes(1, 2) @ X_S
    add_to_diagonals(X_R, n == R)
    L, info = batched.cholesky(X_R, return_info=True)
    X = xp.concatenate([X_S, X[:, n:]], axis=1)
    return L, batched.trsm(L, X, side="right", trans=True), info


def _moved_down(skeleton, padded):
    """Indices of skeletons (cells, s), of which the last padded (cells,) are padded, behind these."""
    xp, s = array_module(skeleton), skeleton.shape[1]
    return twin(skeleton).along(skeleton, (xp.arange(s) - padded[:, None]) % max(1, s), 1)


def _refuse(info):
    """NotDefinite where a factor does not exist."""
    if any(signs(info)):
        raise NotDefinite("a pivot that is not positive")


class NotDefinite(np.linalg.LinAlgError):
    """The approximation lost its definiteness."""
