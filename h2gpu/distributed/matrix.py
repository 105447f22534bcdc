"""The distributed H²-matrix: every rank keeps the rows of its clusters.

    y = (diagonal + off-diagonal blocks) x:    pack x̂ and x for others → send → diagonal product → wait → off-diagonal

One grouped exchange a product, behind the diagonal product; a second one beside it where blocks are kept once. On a
GPU all but the dense diagonal blocks, nine tenths of the bytes, goes on beside these, by a stream of its own. x̂ of a
cluster above the cut is the sum of what the ranks have of it. Cf. H2Opus: Zampini et al. (2022), section 3.2.
"""

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.device.streams import together, used
from h2gpu.distributed.communicators.communicator import Communicator
from h2gpu.distributed.ghosts import Halo, Share, travel, travel_back
from h2gpu.distributed.partition import LocalTree
from h2gpu.distributed.recording import recorded
from h2gpu.h2matrix.basis import ClusterBasis, memory_by_part
from h2gpu.h2matrix.matrix import VECTORS_AT_A_TIME
from h2gpu.typing import Array, ArrayLike, DType

NAME = "coefficients of far clusters and near points"


@dataclass(frozen=True, eq=False)
class Blocks:
    """Far or near blocks of a rank.

    diagonal   BlockSparse or MixedBlocks between the rank's own clusters
    off        the same from ghosts to its clusters, never symmetric
    halo       Halo of the ghosts
    ghosts     (ghosts,) their clusters' numbers in the tree of all ranks
    share      Share: where the blocks come from, and what travels
    """

    diagonal: object
    off: object
    halo: Halo
    ghosts: np.ndarray
    share: Share

    @property
    def turned(self):
        """Which off-diagonal blocks are transposes of those that a serial matrix would keep, (blocks,) bool."""
        return self.share.turned

    @property
    def nbytes(self):
        """Bytes of the entries."""
        return self.diagonal.nbytes + self.off.nbytes


@dataclass(frozen=True, eq=False)
class DistributedH2Matrix:
    """A rank's part of a hierarchical matrix with nested bases; `A @ x` of local vectors, together with all ranks.

    Local vectors hold the points that the rank owns, in tree order: numbers `A.rows.partition.points(rank)` of the
    caller's points (`A.cols` for x). `scatter` and `gather` go between those and whole vectors.

    comm        Communicator
    rows, cols  LocalTree; the same object for a symmetric matrix
    row_basis   ClusterBasis on rows.tree; of a cluster above the cut, the part at the rank's points
    col_basis   likewise; the same object for a symmetric matrix
    far, near   Blocks: couplings S_ts and dense blocks D_ts
    turned      whether this stands for the transpose
    once        whether off-diagonal blocks of a symmetric matrix are kept by one owner alone, by turns, not by both

    Made by `covariance_matrix` and `distribute`. Products raise ValueError for vectors of another length, and what
    another rank failed with. Source: Zampini et al. (2022), H2Opus, section 3.2.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> A.shape, A.local_shape
    ((600, 600), (600, 600))
    """

    comm: Communicator
    rows: LocalTree
    cols: LocalTree
    row_basis: ClusterBasis
    col_basis: ClusterBasis
    far: Blocks
    near: Blocks
    turned: bool = False
    once: bool = False

    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the whole matrix."""
        n, m = self.rows.partition.tree.n, self.cols.partition.tree.n
        return (m, n) if self.turned else (n, m)

    @property
    def local_shape(self) -> tuple[int, int]:
        """(rows, columns) that this rank owns: of local vectors."""
        n, m = self.rows.tree.n, self.cols.tree.n
        return (m, n) if self.turned else (n, m)

    @property
    def dtype(self) -> DType:
        """float32 or float64."""
        return self.row_basis.dtype

    @property
    def xp(self) -> ModuleType:
        """The array module of the entries: numpy or cupy."""
        return self.row_basis.leaf.xp

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns share one basis."""
        return self.row_basis is self.col_basis

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of this rank by part, as `H2Matrix.memory`; `off_diagonal`: of blocks that are counted in these."""
        parts = memory_by_part(self.near, self.row_basis, self.col_basis, self.far)
        return {**parts, "off_diagonal": self.near.off.nbytes + self.far.off.nbytes}

    @property
    def nbytes(self) -> int:
        """Bytes of this rank."""
        return self.memory["total"]

    def memory_by_rank(self) -> list[dict[str, int]]:
        """`memory` of all ranks, in a list; a call of all ranks."""
        return self.comm.gather(self.memory, "memory")

    def __repr__(self):
        return (
            f"DistributedH2Matrix({self.shape[0]} × {self.shape[1]}, {self.dtype}, rank {self.comm.rank} of "
            f"{self.comm.size}: {self.local_shape[0]} rows, {self.nbytes / 1e6:.4g} MB)"
        )

    @property
    def T(self) -> "DistributedH2Matrix":
        """The transpose, sharing memory; itself when symmetric."""
        return self if self.symmetric else replace(self, turned=not self.turned)

    def scatter(self, x: ArrayLike | None) -> Array:
        """The local part of a vector (m,) or block of vectors (m, count) of the columns that all ranks have."""
        side = self.rows if self.turned else self.cols
        return x[array_module(x).asarray(side.partition.points(self.comm.rank))]

    def gather(self, y: Array) -> Array | None:
        """The whole vector of the rows, on the host of all ranks, of local parts; a call of all ranks."""
        side = self.cols if self.turned else self.rows
        return gathered(self.comm, side.partition, y)

    def __matmul__(self, x: ArrayLike) -> Array:
        """A x for a local vector (own columns,) or a block of them; a call of all ranks."""
        return self._told(x, self.turned)

    matvec = matmat = dot = __matmul__

    def rmatvec(self, x: ArrayLike) -> Array:
        """Aᵀ x."""
        return self._told(x, not self.turned and not self.symmetric)

    rmatmat = rmatvec

    def _told(self, x, transpose):
        """A x or Aᵀ x; what one rank raises, all do."""
        try:
            return self._apply(x, transpose)
        except Exception as error:
            self.comm.fail(error)

    def _apply(self, x, transpose):
        """A x or Aᵀ x, a few vectors at a time."""
        sides = [self.cols.tree.n, self.rows.tree.n][:: -1 if transpose else 1]
        xp = self.xp
        if array_module(x) is not xp or x.ndim not in (1, 2) or x.shape[0] != sides[0] or x.dtype.kind not in "fiub":
            kind, shape = array_module(x).__name__, getattr(x, "shape", None)
            raise ValueError(
                f"A @ x: expected a real {xp.__name__} array of shape ({sides[0]},) or ({sides[0]}, count), the "
                f"points that this rank owns, got a {kind} array of shape {shape}; see A.scatter"
            )
        vectors = x.reshape(sides[0], -1) if x.size else x.reshape(sides[0], 1 if x.ndim == 1 else x.shape[1])
        y = xp.empty((sides[1], vectors.shape[1]), self.dtype)
        work = self._transposed if transpose else self._product
        for first in range(0, vectors.shape[1], VECTORS_AT_A_TIME):
            part = slice(first, first + VECTORS_AT_A_TIME)
            y[:, part] = work(xp.ascontiguousarray(vectors[:, part].astype(self.dtype, copy=False)))
            used(xp)
        return y.reshape(sides[1], *x.shape[1:])

    def _product(self, x):
        """The story of the head of this file."""
        return recorded(self.comm, self, "product", self._by_ranks, x)

    def _by_ranks(self, x):
        far, near, rows, n = self.far, self.near, int(self.row_basis.starts[-1]), self.rows.tree.n

        def begun():
            x_hat = self.col_basis.forward(x)
            arrived = travel(self.comm, (far.halo, near.halo), (x_hat, x), NAME)
            home = self._sent_home(x_hat, x) if self.once else None
            return far.diagonal.multiply(x_hat, rows), arrived, home

        def ended(parts, joined):
            y_hat, arrived, home = parts
            x_hat, ghosts = arrived()
            far.off.multiply(x_hat, rows, out=y_hat)
            off_hat, off = home((rows, n)) if home else (None, None)
            if home:
                y_hat += off_hat
            self.row_basis.nested.down_inner(y_hat)
            y = near.off.multiply(ghosts, n, out=joined())
            if home:
                y += off
            return self.row_basis.nested.down_outer(y_hat, y)

        return together(self.xp, lambda: near.diagonal.multiply(x, n), begun, ended)[1]

    def _sent_home(self, x_hat, x):
        """Begin the exchange of products with transposed off-diagonal blocks, which belong to the ghosts' owners."""
        far, near = self.far, self.near
        ghosts = far.off.multiply(x_hat, far.halo.size, True), near.off.multiply(x, near.halo.size, True)
        return travel_back(self.comm, (far.halo, near.halo), ghosts, NAME)

    def _transposed(self, x):
        """The same backwards: products with off-diagonal blocks go home, and are added there."""
        far, near, size = self.far, self.near, int(self.col_basis.starts[-1])
        x_hat = self.row_basis.forward(x)
        arrived = self._sent_home(x_hat, x)
        y = near.diagonal.multiply(x, self.cols.tree.n, True)
        y_hat = far.diagonal.multiply(x_hat, size, True)
        off_hat, off = arrived((size, self.cols.tree.n))
        y += off
        return self.col_basis.backward(y_hat + off_hat, y)


def gathered(comm, partition, y):
    """The whole vector, in the caller's order of points, on the host of all ranks."""
    whole = np.concatenate(comm.gather(comm.fetch(y, "a whole vector"), "a whole vector"))
    out = np.empty_like(whole)
    out[permutation_of(comm, partition)] = whole
    return out


def permutation_of(comm, partition):
    """The caller's numbers of all points in tree order, on the host of all ranks; a call of all ranks."""
    if not partition.by_ranks:
        return partition.tree.permutation
    return np.concatenate(comm.gather(partition.points(comm.rank), "numbers of points"))
