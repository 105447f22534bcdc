"""H²-matrices of what is no covariance function: known by entries, by products, or stored densely.

The points say only which indices are near each other. Blocks between clusters that are well apart must be of low rank,
or the accuracy is not reached, and the error says so. What `skeletonized` makes is compressed and then checked on
random rows; where it misses rtol, there are more samples and a smaller tolerance the next time.
"""

import math
from collections.abc import Callable
from functools import cached_property, partial
from operator import matmul

import numpy as np

from h2gpu.arrays import any_array, array_module, as_array
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.compression.compress import compress
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.h2matrix.skeletons.blocks import Entries
from h2gpu.h2matrix.skeletons.build import dense_blocks, skeletonized
from h2gpu.h2matrix.skeletons.columns import Columns
from h2gpu.h2matrix.skeletons.products import Draws
from h2gpu.memory import require
from h2gpu.typing import Array, ArrayLike, Integers, Operator, Storage

ATTEMPTS = 5
ROWS_CHECKED, ROWS_TOGETHER = 128, 32  # and columns, of a matrix that is not symmetric
TIGHTEN = 8.0  # of the tolerance, where the checked error misses rtol
FIRST_SAMPLES, SPARE = 64, 8  # samples of the first attempt, and those beyond the largest rank
COLUMNS = 4  # times as many columns, which are worse samples than products


@any_array
def from_entries(
    points: ArrayLike,
    entries: Callable[[Integers, Integers], Array],
    rtol: float = 1e-6,
    *,
    col_points: ArrayLike | None = None,
    leaf_size: int = 64,
    eta: float = 1.0,
    storage: Storage = "auto",
    seed: int = 0,
) -> H2Matrix:
    """The compressed H²-matrix of M_ij = entries(i, j) with ‖A − M‖_F ≤ rtol ‖M‖_F, checked on random rows.

    points       (n, dim) NumPy or CuPy array: where index i lies; the matrix is made where it is, in its precision
    entries      function of two integer arrays of one shape, where the points are, to real numbers; asked for
                 some thousands of entries a point
    col_points   (m, dim) points of the column indices; None: the points, and M symmetric
    leaf_size, eta, storage   as for `build` and `compress`
    seed         of the choice of columns

    Raises ValueError for bad arguments, for entries that are not finite, and where rtol is not reached; TypeError where
    entries is no function.
    Source: Bebendorf & Venn (2012); Cai et al. (2023).

    >>> import numpy as np
    >>> import h2gpu
    >>> x = np.random.default_rng(0).random((500, 1))
    >>> A = h2gpu.from_entries(x, lambda i, j: 1 / (1 + abs(x[i, 0] - x[j, 0])), rtol=1e-6)
    >>> dense = 1 / (1 + abs(x - x.T))
    >>> bool(np.linalg.norm(A.to_dense() - dense) <= 1e-6 * np.linalg.norm(dense))
    True
    """
    _check_functions(entries=entries)
    problem = _Problem(points, col_points, entries, rtol, leaf_size, eta, storage, seed)
    return problem.solved(lambda count, rng: Columns(problem.blocks, problem.entries, COLUMNS * count, rng))


@any_array
def from_samples(
    points: ArrayLike,
    product: Callable[[Array], Array] | Operator,
    entries: Callable[[Integers, Integers], Array],
    rtol: float = 1e-6,
    *,
    transposed: Callable[[Array], Array] | None = None,
    col_points: ArrayLike | None = None,
    leaf_size: int = 64,
    eta: float = 1.0,
    storage: Storage = "auto",
    seed: int = 0,
) -> H2Matrix:
    """The same, from products of M with random vectors, and some hundreds of entries a point.

    product      function of an (m, k) array X, where the points are, to M X; or what has shape and @: `H2Matrix`, a
                 sparse matrix, SciPy's or CuPy's LinearOperator
    transposed   function of an (n, k) array Y to Mᵀ Y; needed where col_points are given, unless product has a .T
    others       as for `from_entries`

    Every column takes part in a sample, so that no far one is overlooked. There are 64 products; where ranks before
    compression come near to their number, or the error misses rtol, as many again, and so on, and those of before are
    kept. So their number grows as the ranks do. Products need not be exact, since all other numbers are entries; those
    that depart from 128 rows of entries by more than a tenth are refused.

    Raises as `from_entries`, and ValueError for an operator of another shape. Source: Boukaram et al. (2025).

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> K = cov(sites)
    >>> A = h2gpu.from_samples(sites, lambda x: K @ x, lambda i, j: K[i, j], rtol=1e-5)
    >>> bool(np.linalg.norm(A.to_dense() - K) <= 1e-5 * np.linalg.norm(K))
    True
    """
    functions = _functions(product, transposed, col_points is not None)
    _check_functions(entries=entries)
    problem = _Problem(points, col_points, entries, rtol, leaf_size, eta, storage, seed)
    if getattr(product, "shape", problem.shape) != problem.shape:
        raise ValueError(f"product: expected an operator of shape {problem.shape}, as the points, got {product.shape}")
    nearfield = dense_blocks(problem.blocks, problem.entries)
    draws = Draws(functions, problem.trees, nearfield, problem.checks, np.random.default_rng(seed))
    return problem.solved(lambda count, _: draws.sampler(count), nearfield)


@any_array
def from_dense(
    points: ArrayLike,
    M: ArrayLike,
    rtol: float = 1e-6,
    *,
    col_points: ArrayLike | None = None,
    leaf_size: int = 64,
    eta: float = 1.0,
    storage: Storage = "auto",
    seed: int = 0,
) -> H2Matrix:
    """The same of a dense matrix.

    points   as for `from_entries`, and the others too
    M        (n, m) array where the points are; without col_points it must be symmetric

    Raises as `from_entries`, and ValueError for a shape that does not fit.
    Source: as `from_entries`: Bebendorf & Venn (2012).

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> A = h2gpu.from_dense(sites, cov(sites), rtol=1e-5)
    >>> bool(np.linalg.norm(A.to_dense() - cov(sites)) <= 1e-5 * np.linalg.norm(cov(sites)))
    True
    """
    M = as_array(M)
    columns = points if col_points is None else col_points
    if M.ndim != 2 or M.shape != (len(points), len(columns)) or array_module(M) is not array_module(as_array(points)):
        raise ValueError(
            f"from_dense: expected points, then M of shape {(len(points), len(columns))} where they are, got {M.shape}"
        )
    if M.dtype.kind not in "fiub" or not bool(array_module(M).isfinite(M).all()):
        raise ValueError(f"from_dense: expected M of finite real numbers, got {M.dtype}, or NaN or Inf among them")
    if col_points is None and not bool((M == M.T).all()):
        raise ValueError("from_dense: expected a symmetric M, or col_points; for a square one, its points twice")
    turned = None if col_points is None else lambda Y: M.T @ Y
    parameters = {"col_points": col_points, "leaf_size": leaf_size, "eta": eta, "storage": storage, "seed": seed}
    return from_samples(points, lambda X: M @ X, lambda i, j: M[i, j], rtol, transposed=turned, **parameters)


def _functions(product, transposed, rectangular):
    """X ↦ M X, and Y ↦ Mᵀ Y of what is not symmetric: as given, or by @ of an operator."""
    if _is_operator(product):
        if rectangular and transposed is None and hasattr(product, "T"):
            transposed = partial(matmul, product.T)
        product = partial(matmul, product)
    if (transposed is None) == rectangular:
        raise ValueError("from_samples: expected transposed(Y) = Mᵀ Y and col_points together, or none of them")
    functions = {"product": product} | ({"transposed": transposed} if rectangular else {})
    _check_functions(**functions)
    return list(functions.values())


def _is_operator(product):
    """Whether it has shape and @, and is no dense array."""
    arrays = "__array_interface__", "__cuda_array_interface__"
    return all(hasattr(product, name) for name in ("shape", "__matmul__")) and not any(
        map(partial(hasattr, product), arrays)
    )


def _check_functions(**functions):
    """TypeError unless all of the named arguments are functions."""
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{name}: expected a function, got {type(function).__name__}; from_dense takes matrices")


class _Problem:
    """What all ways have in common: trees, blocks, accuracy, and attempts."""

    def __init__(self, points, col_points, entries, rtol, leaf_size, eta, storage, seed):
        points = as_array(points)
        rows = ClusterTree.build(points, leaf_size)
        cols = rows if col_points is None else ClusterTree.build(as_array(col_points), leaf_size)
        self.blocks = BlockTree.build(rows, cols, Admissibility(eta))
        self.trees, self.shape = [rows] if col_points is None else [rows, cols], (rows.n, cols.n)
        self.entries = Entries(
            entries, np.dtype(points.dtype if points.dtype.kind == "f" else float), array_module(points)
        )
        self.accuracy, self.storage, self.seed = Accuracy.of(rtol, self.entries.dtype), storage, seed
        sizes = [tree.sizes[c] for tree, c in zip((rows, cols), self.blocks.near)]
        require(int(sizes[0] @ sizes[1]) * self.entries.dtype.itemsize, self.entries.xp, "nearfield")

    @cached_property
    def checks(self):
        """A _Check of M, and one of Mᵀ where that is another matrix."""
        checks = [_Check(self.entries, *self.shape, self.seed)]
        if not self.blocks.symmetric:
            checks.append(_Check(self.entries.transposed(), *self.shape[::-1], self.seed))
        return checks

    def solved(self, sampler, nearfield=None):
        """The compressed matrix. sampler: function of how many samples, and a random generator."""
        nearfield = nearfield or dense_blocks(self.blocks, self.entries)
        clusters, most = max(len(tree) for tree in self.trees), max(tree.n for tree in self.trees)
        count, tolerance, error = FIRST_SAMPLES, self.accuracy.interpolation, math.inf
        for attempt in range(ATTEMPTS):
            rng = np.random.default_rng((self.seed, attempt))
            atol = tolerance * self.checks[0].norm / clusters**0.5
            samples = sampler(count, rng)
            A = skeletonized(self.blocks, self.entries, nearfield, samples, atol * samples.norm_of_one)
            largest = max(int(basis.ranks.max(initial=0)) for basis in (A.row_basis, A.col_basis))
            if largest + SPARE > count and count < most:
                count = min(most, max(2 * count, largest + SPARE))
                continue
            B = compress(A, self.accuracy.compression.rtol, storage=self.storage)
            error = max(check.error(M) for check, M in zip(self.checks, (B, B.T)))
            if error <= self.accuracy.rtol:
                return B
            count, tolerance = min(most, 2 * count), tolerance / TIGHTEN
        raise ValueError(
            f"rtol: {self.accuracy.rtol:g} was not reached with {count} samples: the error on {ROWS_CHECKED} rows is "
            f"{error:.2g}; far blocks are not of low rank on these points{self._hint()}"
        )

    def _hint(self):
        return ", or the matrix is not symmetric" if self.blocks.symmetric else ""


class _Check:
    """Random rows of a matrix as its entries tell them. norm: ‖M‖_F as they foretell it."""

    def __init__(self, entries, n, m, seed):
        self.drawn = np.random.default_rng(seed).permutation(n)[:ROWS_CHECKED]
        rows = entries(np.repeat(self.drawn, m), np.tile(np.arange(m), len(self.drawn)))
        self.exact, self.xp = rows.reshape(len(self.drawn), m), entries.xp
        self.length = float(self.xp.linalg.norm(self.exact.astype(np.float64)))
        self.norm = math.sqrt(n / len(self.drawn)) * self.length

    def departure(self, X, Y):
        """‖(Y − M X)[drawn]‖_F / ‖M[drawn] X‖_F of what is said to be M X."""
        xp, expected = self.xp, self.exact @ X
        off, length = (float(xp.linalg.norm(part)) for part in (Y[xp.asarray(self.drawn)] - expected, expected))
        return off / length if length else off

    def error(self, B):
        """‖(B − M)[drawn]‖_F / ‖M[drawn]‖_F."""
        xp, square = self.xp, 0.0
        for part in np.array_split(np.arange(len(self.drawn)), -(-len(self.drawn) // ROWS_TOGETHER)):
            unit = xp.zeros((len(part), B.shape[0]), B.dtype)
            unit[xp.arange(len(part)), xp.asarray(self.drawn[part])] = 1
            square += float(xp.sum((unit @ B - self.exact[xp.asarray(part)]).astype(np.float64) ** 2))
        return math.sqrt(square) / self.length if self.length else math.sqrt(square)
