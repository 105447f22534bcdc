"""The factor: C ≈ G Gᵀ, a product of sparse triangular factors, the root's last.

    G⁻¹ y:   y_R ← L⁻¹ (y_R − Tᵀ y_S),  y_SN −= Y y_R                       step by step, then the root
    G⁻ᵀ z:   the root, then backwards   z_R ← L⁻ᵀ (z_R − Yᵀ z_SN),  z_S −= T z_R
    G z:     the root, then backwards   z_SN += Y z_R,  z_R ← L z_R + Tᵀ z_S
    Gᵀ y:    y_S += T y_R,  y_R ← Lᵀ y_R + Yᵀ y_SN                          step by step, then the root

Reference: Minden, Ho, Damle & Ying (2017), section 3.3.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from h2gpu import batched
from h2gpu.arrays import any_array, array_module
from h2gpu.batched.device.graphs import as_graph
from h2gpu.solvers.operators import check_vectors
from h2gpu.solvers.skeletonization.cells import Grid
from h2gpu.solvers.skeletonization.certificate import Certificate, certified
from h2gpu.solvers.skeletonization.ragged import RaggedStack, transposed_product
from h2gpu.solvers.skeletonization.triangles import Triangles, stacked
from h2gpu.solvers.skeletonization.variances import explained
from h2gpu.typing import Array, ArrayLike, DType, Operator, Seed


@dataclass(frozen=True, eq=False)
class Step:
    """What the elimination of a group of cells keeps; n stands for a padded index.

    On a GPU, where cells of a group differ much in size, T and Y are of the class `RaggedStack`, L of `Triangles`.

    R        (cells, r) int32 indices that were eliminated
    SN       (cells, s + neighbours) int32 that they are coupled with, the skeleton first, on a GPU after its padding
    T        (cells, s, r)
    L        (cells, r, r) lower triangular
    Y        (cells, s + neighbours, r)
    depth    level of the cells
    places   (cells, dim) their integer coordinates, on the host
    """

    R: object
    SN: object
    T: object
    L: object
    Y: object
    depth: int
    places: np.ndarray

    @property
    def s(self):
        """Most indices of a skeleton."""
        return self.T.shape[1]


@dataclass(frozen=True, eq=False)
class Skeletonization:
    """C ≈ G Gᵀ; `G @ x` is C⁻¹ x, so that it serves as a preconditioner. Vectors are in the caller's order.

    n        sites
    eta      tolerance that it was made with, relative to conditional variances
    steps    of the elimination: `Step`
    top      (indices,) int32, left for the root
    root     (indices, indices) its Cholesky factor, or `Triangles` of this one
    grid     `cells.Grid` of the steps' cells, in the coordinates that the covariance measures in

    Its methods raise ValueError for vectors of another length. Source: Minden, Ho, Damle & Ying (2017), section 3.3.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> G = solvers.skeletonize(sites, cov, eta=0.01)
    >>> bool(abs(G.log_determinant() - np.linalg.slogdet(K)[1]) < 0.01)
    True
    """

    n: int
    eta: float
    steps: list
    top: object
    root: object
    grid: Grid

    __array_ufunc__ = None  # numpy arrays leave x @ G to us

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.n, self.n

    @property
    def dtype(self) -> DType:
        """float64."""
        return np.dtype(np.float64)

    @property
    def data(self) -> Any:
        """An array that lives where the factor does."""
        return self.top

    @property
    def L(self) -> Any:
        """(indices, indices) the root's Cholesky factor."""
        return self.root.stack()[0] if isinstance(self.root, Triangles) else self.root

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by part: {"indices", "interpolations" T, "triangles" L, "couplings" Y, "root", "total"}.

        Lists of panels, which the first product of each kind makes on a GPU, are not counted: some 200 bytes a cell.
        """
        parts = {"indices": self.top.nbytes + sum(s.R.nbytes + s.SN.nbytes + s.places.nbytes for s in self.steps)}
        for name, letter in (("interpolations", "T"), ("triangles", "L"), ("couplings", "Y")):
            parts[name] = sum(getattr(step, letter).nbytes for step in self.steps)
        parts["root"] = self.root.nbytes
        return {**parts, "total": sum(parts.values())}

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return self.memory["total"]

    def log_determinant(self) -> float:
        """log det G Gᵀ, a float."""
        xp = array_module(self.top)
        parts = [xp.log(xp.einsum("bii->bi", stacked(step.L))).sum() for step in self.steps]
        return 2 * float(sum(parts) + xp.log(xp.diagonal(self.L)).sum())

    @any_array
    def solve(self, b: ArrayLike) -> Array:
        """G⁻ᵀ G⁻¹ b of b (n,) or (n, count): C⁻¹ b. Raises ValueError for another shape and what is not finite.

        On a GPU the steps of one column are a CUDA graph from the second time on, which keeps what it works with.
        """
        return self._of(b, self._forward, self._backward)

    @any_array
    def solve_half(self, b: ArrayLike) -> Array:
        """G⁻¹ b of b (n,) or (n, count): uncorrelated, of variance one, for b of covariance G Gᵀ. Raises as `solve`."""
        return self._of(b, self._forward)

    @any_array
    def solve_half_transposed(self, z: ArrayLike) -> Array:
        """G⁻ᵀ z of z (n,) or (n, count). Raises as `solve`."""
        return self._of(z, self._backward)

    @any_array
    def multiply_half(self, z: ArrayLike) -> Array:
        """G z of z (n,) or (n, count): of covariance G Gᵀ for z of independent standard normal numbers."""
        return self._of(z, self._multiplied)

    @any_array
    def multiply_half_transposed(self, y: ArrayLike) -> Array:
        """Gᵀ y of y (n,) or (n, count): `multiply_half` of it is C y. Raises as `solve`."""
        return self._of(y, self._multiplied_transposed)

    def certificate(self, C: Operator, probes: int = 16, random_state: Seed = 0) -> Certificate:
        """How far G Gᵀ is from a matrix C: a `certificate.Certificate`, by Lanczos with G as preconditioner.

        C   with shape and @, the matrix or its accurate compression: H2Matrix, array, LinearOperator

        Raises ValueError for bad arguments, LinAlgError where G⁻¹ C G⁻ᵀ is not positive definite.
        """
        return certified(self, C, probes, random_state)

    def explained(self, located: Any, coincident: Any = None) -> Any:
        """kᵀ (G Gᵀ)⁻¹ k of every target, k = cov(sites, target): (m,), so that C(0) − it is the kriging variance.

        located      `covariance.sites.Sites`: targets as rows, the factor's sites as columns
        coincident   (targets, sites) of those at one place, where the covariance has a nugget

        Only cells next to a target's know of it (`explained`). Raises ValueError for other sites than the factor's.
        """
        return explained(self, located, coincident)

    __matmul__ = matvec = matmat = rmatvec = rmatmat = solve
    whiten, whiten_transposed, colour = solve_half, solve_half_transposed, multiply_half

    def __repr__(self):
        return f"Skeletonization({self.n} × {self.n}, eta {self.eta:g}, {self.nbytes / 1e6:.3g} MB)"

    def _of(self, x, *works):
        """The works one after the other on (n + 1, count) columns, whose last row belongs to padded indices."""
        x = check_vectors(x, self.n, "b")
        xp = array_module(x)
        y = xp.zeros((self.n + 1, x.size // self.n), np.float64)
        y[:-1] = x.reshape(self.n, -1)
        for work in works:
            y = work(y)
        return y[:-1].reshape(x.shape).astype(x.dtype, copy=False)

    def _as_graph(self, name, steps, y):
        """The steps as a graph where they are packed: CuPy records none of cuBLAS's products with padded stacks."""
        packed = self.steps and all(isinstance(step.T, RaggedStack) for step in self.steps)
        return as_graph(self, name, steps, y) if packed else steps(y)

    def _forward(self, y):
        y = self._as_graph("forward", self._eliminated, y)
        y[self.top] = batched.trsm(self.L[None], y[self.top][None])[0]
        return y

    def _eliminated(self, y):
        for step in self.steps:
            z = y[step.R] - transposed_product(step.T, y[step.SN[:, : step.s]])
            z = batched.trsm(stacked(step.L), z)
            y[step.R] = z
            y[step.SN] -= step.Y @ z
            y[-1] = 0
        return y

    def _backward(self, z):
        z[self.top] = batched.trsm(self.L[None], z[self.top][None], trans=True)[0]
        return self._as_graph("backward", self._substituted, z)

    def _substituted(self, z):
        for step in reversed(self.steps):
            x = z[step.R] - transposed_product(step.Y, z[step.SN])
            x = batched.trsm(stacked(step.L), x, trans=True)
            z[step.R] = x
            z[step.SN[:, : step.s]] -= step.T @ x
            z[-1] = 0
        return z

    def _multiplied(self, z):
        z[self.top] = self.L @ z[self.top]
        for step in reversed(self.steps):
            x = z[step.R]
            z[step.SN] += step.Y @ x
            z[step.R] = stacked(step.L) @ x + transposed_product(step.T, z[step.SN[:, : step.s]])
            z[-1] = 0
        return z

    def _multiplied_transposed(self, y):
        for step in self.steps:
            x = y[step.R]
            y[step.SN[:, : step.s]] += step.T @ x
            y[step.R] = stacked(step.L).swapaxes(1, 2) @ x + transposed_product(step.Y, y[step.SN])
            y[-1] = 0
        y[self.top] = self.L.T @ y[self.top]
        return y
