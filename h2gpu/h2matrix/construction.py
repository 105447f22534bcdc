"""Points and a covariance → H²-matrix, by Chebyshev interpolation.

    A_ts ≈ U_t S_ts V_sᵀ  far,   A_ts = covariance(points of t, points of s)  near (plus the nugget on the diagonal)

See `interpolation.chebyshev` for the factors; Boukaram et al., section 8.3; Börm & Garcke (2007).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from h2gpu import batched
from h2gpu.arrays import any_array, array_module
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse import BlockSparse
from h2gpu.blocksparse.block_sparse import Pairs
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
from h2gpu.covariance import pairwise
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.interpolation import interpolation_basis, orders_of
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.h2matrix.nearfield import EvaluatedNearfield, check_nearfield
from h2gpu.memory import require
from h2gpu.progress import phase
from h2gpu.typing import ArrayLike, Split


@dataclass(frozen=True, eq=False)
class EvaluatedCouplings(Pairs):
    """Coupling matrices that are evaluated where they are used: they are only covariances between grid points.

    Answers what the stored couplings (`BlockSparse`) answer, so that compression need not know the difference and the
    uncompressed couplings never exist at once.

    function              covariance of broadcast point arrays
    row_grids, col_grids  MatrixBatch of all clusters' interpolation points, rank × dim
    rows, columns         (blocks,) clusters of each block, sorted by (column, row)
    symmetric             whether each block stands for its transpose too
    """

    function: object
    row_grids: MatrixBatch
    col_grids: MatrixBatch
    rows: np.ndarray
    columns: np.ndarray
    symmetric: bool
    evaluated = True  # the blocks are not in memory

    def __len__(self):
        return len(self.rows)

    @property
    def nbytes(self):
        """Bytes that the evaluated blocks would take."""
        entries = self.row_grids.rows[self.rows] @ self.col_grids.rows[self.columns]
        return int(entries) * self.row_grids.dtype.itemsize

    def select(self, index, transpose=False, bounds=None):
        """The blocks of the given indices (a slice, or an array on the host or the device), or their transposes.

        bounds   rows and columns that none of these exceeds; None: those of all, after which the device takes room
        """
        xp = self.row_grids.xp if isinstance(index, slice) else array_module(index)
        t, s = (clusters[index] for clusters in self.pairs(xp))
        grids = self.row_grids[t], self.col_grids[s]
        X, Y = reversed(grids) if transpose else grids
        if bounds is not None:
            X, Y = (grid.bounded((most, grid.bounds[1])) for grid, most in zip((X, Y), bounds))
        return pairwise(self.function, X, Y)

    def factors(self, index, transpose, bounds):
        """S_index[b] or S_index[b]ᵀ of each b evaluated, and whether they are still to be transposed: no.

        bounds   as for `select`
        """
        return self.select(index, transpose, bounds), False

    def triple_products(self, F, index, G, out):
        """out_b = F_b S_index[b] G_bᵀ, of blocks evaluated for it."""
        return batched.triple_product(F, self.select(index, bounds=(F.bounds[1], G.bounds[1])), G, out)

    def unfolded(self):
        """The same couplings, of a symmetric matrix every one and its transpose a block of its own."""
        if not self.symmetric:
            return self
        rows, columns = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        order = np.lexsort((rows, columns))
        return replace(self, rows=rows[order], columns=columns[order], symmetric=False)

    def stored(self):
        """All blocks evaluated and kept."""
        blocks = self.select(np.arange(len(self)))
        starts = (offsets_of(grids.rows)[:-1] for grids in (self.row_grids, self.col_grids))
        return BlockSparse(blocks, self.rows, self.columns, *starts, self.symmetric)


@any_array
def build(
    points: ArrayLike,
    cov: Covariance,
    *,
    col_points: ArrayLike | None = None,
    leaf_size: int = 64,
    eta: float = 1.0,
    order: int | Sequence[int] = 8,
    split: Split = "median",
    nearfield: str = "stored",
) -> H2Matrix:
    """The H²-matrix of a covariance at (n, dim) points by Chebyshev interpolation, uncompressed.

    points      (n, dim) NumPy array (work on the CPU) or CuPy array (on the GPU); float32 arrays give a float32 matrix
    cov         an `h2gpu.covariance` value
    col_points  (m, dim) points of the columns for a rectangular matrix; default: the same points, symmetric
    leaf_size   largest leaf cluster
    eta         admissibility: larger means fewer dense blocks, and more interpolation points for the same accuracy
    order       interpolation points a direction, a number or one for each level of the tree from the root on: rank
                order^dim, or the number of points where that is less
    split       "median" (balanced tree) or "mean" (the paper's)
    nearfield   "stored", or "computed" in every product from the points: slower, and cannot be saved

    Raises ValueError for arguments that do not fit, and MemoryError before the matrix takes more than is free.
    Source: Boukaram et al. (2018), section 8.3; Börm & Garcke (2007); Hackbusch & Börm (2002).

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> A = h2gpu.build(sites, cov, leaf_size=32, order=8)
    >>> bool(np.linalg.norm(A.to_dense() - cov(sites)) < 1e-5 * np.linalg.norm(cov(sites)))
    True
    """
    parameters = {"leaf_size": leaf_size, "eta": eta, "order": order, "split": split, "nearfield": nearfield}
    sites = Sites.of(points, cov, col_points)
    A = deferred(sites, **parameters)
    require(A.couplings.nbytes, sites.xp, "couplings")
    with phase("couplings"):
        return A.replace(couplings=A.couplings.stored())


def deferred(sites, *, leaf_size=64, eta=1.0, order=8, split="median", nearfield="stored", trees=(), blocks=None):
    """As `build` at the Sites, with couplings evaluated where they are used: for `compress` to consume.

    trees    the sites' cluster trees where a plan has grown them, to be cut at leaf_size: of the rows, and the columns'
    blocks   the BlockTree where there is one already
    """
    check_nearfield(nearfield)
    sites.interpolable()
    if blocks is None:
        with phase("cluster"):
            if trees:
                trees = [tree.cut(leaf_size) for tree in trees]
            else:
                sides = [sites.points] if sites.symmetric else [sites.points, sites.col_points]
                trees = [ClusterTree.build(side, leaf_size, split) for side in sides]
            blocks = BlockTree.build(trees[0], trees[-1], Admissibility(eta, sites.cov.kinks))
    A = from_trees(blocks, sites, order)
    if nearfield == "computed":
        return A
    require(A.nearfield.sizes.sum() * A.dtype.itemsize, sites.xp, "nearfield")
    with phase("nearfield"):
        return A.replace(nearfield=A.nearfield.stored())


def from_trees(blocks, sites, order):
    """The matrix on given trees of the sites, all blocks evaluated where used."""
    row_tree, col_tree, xp = blocks.row_tree, blocks.col_tree, sites.xp
    rows, cols = (orders_of(tree, order) for tree in (row_tree, col_tree))
    require(_entries(blocks, int(rows.max()) ** sites.dim) * sites.dtype.itemsize, xp, "bases")
    with phase("basis"):
        x = sites.points[row_tree.permutation_on(xp)]
        coupled = blocks.far if blocks.symmetric else blocks.far[0]
        row_basis, row_grids = interpolation_basis(row_tree, coupled, x, rows)
        if blocks.symmetric:
            col_basis, col_grids, y = row_basis, row_grids, x
        else:
            y = sites.col_points[col_tree.permutation_on(xp)]
            col_basis, col_grids = interpolation_basis(col_tree, blocks.far[1], y, cols)
    couplings = EvaluatedCouplings(sites.cov.pair_function, row_grids, col_grids, *blocks.far, blocks.symmetric)
    return H2Matrix(row_basis, col_basis, couplings, EvaluatedNearfield.of(blocks, x, y, sites.cov))


def _entries(blocks, largest_rank):
    """Entries of leaf and transfer matrices, at most."""
    entries = 0
    for tree in [blocks.row_tree] if blocks.symmetric else [blocks.row_tree, blocks.col_tree]:
        k = np.minimum(tree.sizes, largest_rank)
        entries += int(tree.sizes[tree.leaves] @ k[tree.leaves]) + int(k[1:] @ k[tree.parent[1:]])
    return entries
