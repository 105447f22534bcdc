"""The H²-matrix.

A_ts = U_t S_ts V_sᵀ  for farfield pairs,     A_ts = D_ts  for nearfield pairs,     V = U when symmetric
"""

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from h2gpu.arrays import any_array, array_module, as_array, module_of_device
from h2gpu.batched.core.offsets import ranges
from h2gpu.batched.device.graphs import as_graph
from h2gpu.batched.device.streams import together, used
from h2gpu.h2matrix.basis import ClusterBasis, memory_by_part
from h2gpu.typing import Array, ArrayLike, Device, DType, Integers

LARGE = 1 << 15  # rows from which a nearfield has its own thread on the CPU: 2^17 94 → 75 ms, elsewhere 74 → 73
VECTORS_AT_A_TIME = 64  # right-hand sides of one pass: the coefficients of more would outgrow the matrix


@dataclass(frozen=True, eq=False)
class H2Matrix:
    """A hierarchical matrix with nested bases; `A @ x` in the caller's order of points.

    row_basis   ClusterBasis of the row clusters, U
    col_basis   ClusterBasis of the column clusters, V; the same object for a symmetric matrix
    couplings   BlockSparse of S_ts over cluster pairs, or MixedBlocks where some of them are stored in float32
    nearfield   likewise of D_ts over pairs of leaves, or an EvaluatedNearfield

    Works with scipy.sparse.linalg (aslinearoperator, cg, eigsh, …) and CuPy's twins of them.

    Made by `h2gpu.covariance_matrix`, `build`, `compress`, `from_entries` and `load`. Products raise ValueError for a
    vector of another length. Source: Hackbusch & Börm (2002); Börm (2010), chapter 3.

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> C = h2gpu.covariance_matrix(sites, cov, rtol=1e-8)
    >>> x = np.ones(600)
    >>> bool(np.linalg.norm(C @ x - cov(sites) @ x) <= 1e-8 * np.linalg.norm(cov(sites)) * np.linalg.norm(x))
    True
    >>> sorted(C.memory)
    ['coupling', 'leaf_basis', 'nearfield', 'total', 'transfer']
    """

    row_basis: ClusterBasis
    col_basis: ClusterBasis
    couplings: object
    nearfield: object

    __array_ufunc__ = None  # numpy arrays leave x @ A to us

    @staticmethod
    def from_samples(*args: Any, **kwargs: Any) -> "H2Matrix":
        """A matrix known by products and entries alone: `h2gpu.from_samples`."""
        from h2gpu.h2matrix.skeletons import known

        return known.from_samples(*args, **kwargs)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.row_basis.tree.n, self.col_basis.tree.n

    @property
    def dtype(self) -> DType:
        """float32 or float64: of what `A @ x` computes and gives, even where parts are stored in float32."""
        return self.row_basis.dtype

    @property
    def xp(self) -> ModuleType:
        """The array module of the entries: numpy or cupy."""
        return self.row_basis.leaf.xp

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns share one basis, and each pair of clusters is stored once."""
        return self.row_basis is self.col_basis

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by part: nearfield, leaf_basis, transfer, coupling, total."""
        return memory_by_part(self.nearfield, self.row_basis, self.col_basis, self.couplings)

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return self.memory["total"]

    @property
    def ranks(self) -> list[Integers]:
        """For each level of the row tree, root first, the ranks of its clusters."""
        tree = self.row_basis.tree
        return [self.row_basis.ranks[tree.level(l)] for l in range(tree.levels)]

    def __repr__(self):
        ranks, dense = self.row_basis.ranks, self.shape[0] * self.shape[1] * self.dtype.itemsize
        used = ranks[ranks > 0]
        span = f"ranks {used.min()}…{used.max()}" if len(used) else "dense"
        return (
            f"H2Matrix({self.shape[0]} × {self.shape[1]}, {self.dtype}, "
            f"{'symmetric, ' if self.symmetric else ''}{span}, {self.nbytes / 1e6:.4g} MB, "
            f"{dense / max(1, self.nbytes):.3g} times smaller than dense)"
        )

    def widened(self) -> "H2Matrix":
        """The same matrix, its bases in the precision of all; blocks stay as they are."""
        rows = self.row_basis.widened()
        return self.replace(row_basis=rows, col_basis=rows if self.symmetric else self.col_basis.widened())

    def replace(self, **parts: Any) -> "H2Matrix":
        """The same matrix with some parts exchanged."""
        return replace(self, **parts)

    def to_device(self, device: Device) -> "H2Matrix":
        """The same matrix on "cpu" or "cuda"; couplings must be stored."""
        xp = module_of_device(device)
        rows = self.row_basis.to(xp)
        cols = rows if self.symmetric else self.col_basis.to(xp)
        return H2Matrix(rows, cols, self.couplings.to(xp), self.nearfield.to(xp))

    @any_array
    def __matmul__(self, x: ArrayLike) -> Array:
        """A x for a vector (m,) or a block of vectors (m, count)."""
        return self._apply(x, False)

    @any_array
    def __rmatmul__(self, x: ArrayLike) -> Array:
        """x A = (Aᵀ xᵀ)ᵀ."""
        x = as_array(x)
        return self._apply(x.T, True).T

    matvec = matmat = dot = __matmul__

    @any_array
    def rmatvec(self, x: ArrayLike) -> Array:
        """Aᵀ x."""
        return self._apply(x, True)

    rmatmat = rmatvec

    @property
    def T(self) -> "H2Matrix":
        """The transpose; itself when symmetric."""
        if self.symmetric:
            return self
        return H2Matrix(self.col_basis, self.row_basis, self.couplings.T, self.nearfield.T)

    def diagonal(self) -> Array:
        """The diagonal of a symmetric matrix, (n,); ValueError for others: theirs may lie in farfield blocks."""
        if not self.symmetric:
            raise ValueError(
                f"diagonal: expected a symmetric matrix, got a rectangular one of shape {self.shape}; "
                "build it without col_points"
            )
        D, xp = self.nearfield, self.xp
        own = np.flatnonzero(D.rows == D.columns)
        blocks = D.select(own)
        m, step = blocks.rows, ranges(np.zeros_like(blocks.rows), blocks.rows)
        positions = ranges(D.row_starts[D.rows[own]], m)
        d = xp.empty(self.shape[0], self.dtype)
        rows = self.row_basis.tree.permutation[positions]
        d[xp.asarray(rows)] = blocks.buffer[xp.asarray(np.repeat(blocks.offsets, m) + step * (np.repeat(m, m) + 1))]
        return d

    def to_dense(self) -> Array:
        """All entries, (rows, columns): for small matrices."""
        return self @ self.xp.eye(self.shape[1], dtype=self.dtype)

    def __add__(self, B: "H2Matrix") -> "H2Matrix":
        """A + B for a matrix on the same trees and blocks, exact, of ranks that add: see `h2gpu.add`."""
        from h2gpu.h2matrix.algebra import sums

        return sums.add(self, B) if isinstance(B, H2Matrix) else NotImplemented

    def __sub__(self, B: "H2Matrix") -> "H2Matrix":
        """A − B, as A + B."""
        from h2gpu.h2matrix.algebra import sums

        return sums.add(self, B, beta=-1.0) if isinstance(B, H2Matrix) else NotImplemented

    def __mul__(self, alpha: float) -> "H2Matrix":
        """α A for a number."""
        from h2gpu.h2matrix.algebra import sums

        return sums.scaled(self, alpha)

    __rmul__ = __mul__

    def __truediv__(self, alpha: float) -> "H2Matrix":
        """A / α for a number."""
        from h2gpu.h2matrix.algebra import sums

        return sums.scaled(self, sums.reciprocal(alpha, self.dtype))

    def __neg__(self) -> "H2Matrix":
        """−A."""
        return self * -1.0

    def relative_error(self, B: "H2Matrix") -> float:
        """‖A − B‖_F / ‖A‖_F for a matrix B on the same trees, computed by blocks, exact to rounding."""
        from h2gpu.h2matrix.norms import relative_error

        return relative_error(self, B)

    def _apply(self, x, transpose):
        """A x or Aᵀ x, a few vectors at a time."""
        rows, cols = (self.col_basis, self.row_basis) if transpose else (self.row_basis, self.col_basis)
        xp = self.xp
        x = np.asarray(x) if xp is np and array_module(x) is np else x
        if array_module(x) is not xp or x.ndim not in (1, 2) or x.shape[0] != cols.tree.n:
            raise ValueError(
                f"A @ x: expected a {xp.__name__} array of shape ({cols.tree.n},) or ({cols.tree.n}, count), "
                f"got a {array_module(x).__name__} array of shape {x.shape}"
            )
        if x.dtype.kind not in "fiub":
            raise ValueError(f"A @ x: expected real numbers, got {x.dtype}; apply A to real and imaginary parts")
        vectors = x.reshape(len(x), -1)
        y = xp.empty((rows.tree.n, vectors.shape[1]), self.dtype)
        for first in range(0, vectors.shape[1], VECTORS_AT_A_TIME):
            part = slice(first, first + VECTORS_AT_A_TIME)
            z = vectors[:, part].astype(self.dtype, copy=False).take(cols.tree.permutation_on(xp), axis=0)
            y[rows.tree.permutation_on(xp), part] = self._in_tree_order(rows, cols, z, transpose)
        return y.reshape(rows.tree.n, *x.shape[1:])

    def _in_tree_order(self, rows, cols, x, transpose):
        """Forward transformation, couplings, backward transformation, plus the nearfield beside them."""

        def far(x):
            y_hat = self.couplings.multiply(cols.forward(x), int(rows.starts[-1]), transpose)
            return rows.backward(y_hat)

        def through_trees():
            return as_graph(self, transpose, far, x)

        def close():
            return self.nearfield.multiply(x, rows.tree.n, transpose)

        near, y = together(self.xp, close, through_trees, large=rows.tree.n >= LARGE)
        near += y
        used(self.xp)
        return near


def ranks_by_level(A):
    """Smallest, mean and largest rank of each level's clusters in use, for reports."""
    summary = []
    for ranks in A.ranks:
        used = ranks[ranks > 0]
        if len(used):
            summary.append({"min": int(used.min()), "mean": float(used.mean()), "max": int(used.max())})
        else:
            summary.append({"min": 0, "mean": 0.0, "max": 0})
    return summary
