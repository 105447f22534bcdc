"""A sparse factor of an approximate inverse, as a preconditioner.

    A⁻¹ ≈ Wᵀ W,     W lower triangular in an order of the sites,     log det A ≈ −2 Σ log w_ii

With it the well-conditioned B = W A Wᵀ takes the place of A: conjugate gradients need Wᵀ W alone, determinants and
square roots W, Wᵀ and W⁻¹ as well.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import scipy

from h2gpu.arrays import any_array, array_module
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.typing import Array, ArrayLike, DType

twin = twins_of("h2gpu.solvers", cpu="inverse_factor")


@dataclass(frozen=True, eq=False)
class InverseFactor:
    """A⁻¹ ≈ Wᵀ W; `P @ x` is Wᵀ W x, in the caller's order of sites.

    order        (n,) the site of every row, on the host
    W            (n, n) sparse, lower triangular: row i belongs to site order[i], column j to site order[j]
    regularized  how many rows needed a larger diagonal than the covariance's, because it was singular to rounding

    Made by `vecchia` and `block_jacobi`. Products raise ValueError for vectors of another length.
    Source: Vecchia (1988); Schäfer, Katzfuss & Owhadi (2021), theorem 2.1.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> W = solvers.vecchia(sites, cov, neighbours=399)
    >>> bool(np.isclose(W.log_determinant, np.linalg.slogdet(K)[1]))
    True
    """

    order: np.ndarray
    W: object
    regularized: int = 0

    __array_ufunc__ = None  # numpy arrays leave x @ P to us

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.W.shape

    @property
    def dtype(self) -> DType:
        """float32 or float64."""
        return self.W.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the sparse factors kept: W, and after first use Wᵀ."""
        kept = [self.W, *(self.__dict__[name] for name in ("_rows", "_columns") if name in self.__dict__)]
        return sum(M.data.nbytes + M.indices.nbytes + M.indptr.nbytes for M in kept)

    @cached_property
    def log_determinant(self) -> float:
        """log det (Wᵀ W)⁻¹ = −2 Σ log w_ii, the approximate log det A."""
        xp = array_module(self.W.data)
        return -2 * float(xp.log(self.W.diagonal().astype(np.float64)).sum())

    @any_array
    def __matmul__(self, x: ArrayLike) -> Array:
        """Wᵀ W x of x (n,) or (n, count)."""
        return self.whiten_transposed(self.whiten(x))

    matvec = matmat = rmatvec = rmatmat = __matmul__

    def __repr__(self):
        n = self.shape[0]
        return f"InverseFactor({n} × {n}, {self.dtype}, {self.W.nnz / max(1, n):.3g} entries a row)"

    @any_array
    def whiten(self, x: ArrayLike) -> Array:
        """W x of x in the caller's order: uncorrelated, of variance one, for x of covariance (Wᵀ W)⁻¹."""
        return times(self._rows, x)

    @any_array
    def whiten_transposed(self, z: ArrayLike) -> Array:
        """Wᵀ z, in the caller's order."""
        return times(self._columns, z)

    @any_array
    def colour(self, z: ArrayLike) -> Array:
        """W⁻¹ z in the caller's order: of covariance (Wᵀ W)⁻¹ for z uncorrelated and of variance one."""
        xp = array_module(z)
        solve = import_module("scipy.sparse.linalg" if xp is np else "cupyx.scipy.sparse.linalg").spsolve_triangular
        x = xp.empty_like(z)
        x[xp.asarray(self.order)] = solve(self.W, z, lower=True)
        return x

    @property
    def squared_columns(self) -> Any:
        """diag Wᵀ W (n,), in the caller's order: about the diagonal of A⁻¹."""
        W = self._columns
        squares = type(W)((W.data.astype(np.float64) ** 2, W.indices, W.indptr), shape=W.shape)
        return times(squares, array_module(W.data).ones(self.shape[0]))

    @cached_property
    def _rows(self):
        """W with its columns in the caller's order."""
        xp = array_module(self.W.data)
        sites = xp.asarray(self.order.astype(self.W.indices.dtype))
        own = self.W.data.copy(), sites[self.W.indices], self.W.indptr  # which are put in another order
        return ascending(type(self.W)(own, shape=self.shape))

    @cached_property
    def _columns(self):
        """Wᵀ with its rows in the caller's order."""
        return ascending(self._rows.T.tocsr())


def times(W, x):
    """W x of a sparse matrix in compressed rows and x (n,) or (n, count) on its device: the same bits every time."""
    if len(x) != W.shape[1]:
        raise ValueError(f"expected {W.shape[1]} rows, got {len(x)}")
    return twin(W.data).row_products(W, x)


def row_products(W, x):
    """The same on the CPU, unchecked."""
    return W @ x


def sparse_rows(data, indices, indptr, n):
    """The n × n matrix in compressed rows on the device of its entries, indices ascending in each row."""
    xp = array_module(data)
    if xp is np:
        W = scipy.sparse.csr_array((data, indices, indptr), shape=(n, n))
    else:
        import cupyx.scipy.sparse

        W = cupyx.scipy.sparse.csr_matrix((data, xp.asarray(indices), xp.asarray(indptr)), shape=(n, n))
    return ascending(W)


def ascending(W):
    """W with the indices of each row, which differ, ascending, and marked so: else CuPy looks whether they are."""
    W.has_sorted_indices = False
    W.sort_indices()
    W.has_canonical_format = True
    return W
