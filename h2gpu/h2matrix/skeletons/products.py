"""Samples that are products with random vectors: of the whole matrix, less what is known of it already.

    leaves   Y_t = (A Ω)_t − Σ_near D_ts Ω_s             above   Y_t = [Y_c[J_c] − Σ_far S_cs Ω̂_s]  over the children c
             Ω̂_t = V_tᵀ Ω_t

What remains is A[candidates of t, farfield of t] Ω: the product meets every column, at linear cost.
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of

NAMES = "product(X)", "transposed(Y)"
DEPARTURE = 0.1  # of products from the entries: bases need no exact ones, and couplings are entries


class Draws:
    """Random vectors and what a matrix makes of them, drawn once: where more are needed, only those are asked for.

    functions   X ↦ A X, and Y ↦ Aᵀ Y where A is not symmetric
    trees       of rows, and of columns where A is not symmetric
    nearfield   BlockSparse, taken from every product at once
    checks      of every function: departure(X, Y) of Y from A X, relative, as the entries have it
    rng         numpy Generator
    """

    def __init__(self, functions, trees, nearfield, checks, rng):
        self.functions, self.trees, self.nearfield, self.checks, self.rng = functions, trees, nearfield, checks, rng
        self.count = 0
        self.tests, self.samples = ([np.zeros(0)] * len(trees) for _ in range(2))

    def sampler(self, count):
        """Products with at least so many random vectors."""
        if count > self.count:
            self._more(count - self.count)
            self.count = count
        return Products(self.samples, self.tests)

    def _more(self, count):
        """Further columns: in tree order, the nearfield's part taken away."""
        near, xp = self.nearfield, self.nearfield.xp
        drawn = [xp.asarray(self.rng.standard_normal((tree.n, count)), near.dtype) for tree in self.trees]
        for k, (tree, X) in enumerate(zip(self.trees, reversed(drawn))):
            Y = self._multiplied(k, X, tree.n)[tree.permutation_on(xp)]
            X = X[self.trees[-1 - k].permutation_on(xp)]
            _append(self.samples, k, Y - near.multiply(X, tree.n, k == 1), xp)
            _append(self.tests, len(self.trees) - 1 - k, X, xp)

    def _multiplied(self, k, X, rows):
        """A X in the precision of the matrix. Raises ValueError for what is no product."""
        xp = self.nearfield.xp
        Y = xp.asarray(self.functions[k](X))
        fits = Y.shape == (rows, X.shape[1]) and Y.dtype.kind in "fiub"
        if not fits or not bool(xp.isfinite(Y).all()):
            raise ValueError(
                f"from_samples: expected {NAMES[k]} of finite real numbers {(rows, X.shape[1])}, got {Y.dtype} of "
                f"shape {Y.shape}" + (" with NaN or Inf" if fits else "")
            )
        departure = self.checks[k].departure(X, Y)
        if departure > DEPARTURE:
            hint = "" if len(self.functions) > 1 else "; without col_points the matrix must be symmetric"
            raise ValueError(
                f"from_samples: {NAMES[k]} and entries are not of one matrix: they differ by {departure:.2g} of it"
                + hint
            )
        return Y.astype(X.dtype, copy=False)


class Products:
    """A sampler for `skeletonized`; a symmetric matrix has one side, others two.

    samples     a side (·, samples): A Ω, and Aᵀ Ψ, in tree order, less what the nearfield makes of Ω and Ψ
    tests       a side: the random vectors with its own length, Ω for a symmetric matrix, else Ψ and Ω
    """

    @property
    def norm_of_one(self):
        """‖B Ω‖_F of a matrix with ‖B‖_F = 1, about."""
        return self.tests[0].shape[1] ** 0.5

    def __init__(self, samples, tests):
        self.tests, self.known = tests, [X[:0] for X in tests]  # Ω̂
        self.points, self.skeletons = samples, [Y[:0] for Y in samples]  # of all points, and of all skeletons

    def rows(self, k, side, t, candidates, counts):
        """Y of the candidates."""
        return _cut(_taken(self._of(k, side, t, self.points, self.skeletons), candidates), counts)

    def settled(self, k, side, t, candidates, counts, U, chosen):
        """Keep Y of the skeletons, and the coefficients Ω̂ of their clusters."""
        xp = U.xp
        Y = _taken(self._of(k, side, t, self.points, self.skeletons), candidates[chosen])
        tests = _cut(_taken(self._of(k, side, t, self.tests, self.known), candidates), counts)
        W = batched.gemm(U, tests, transa=True).entries.reshape(-1, Y.shape[1])
        self.skeletons[k], self.known[k] = xp.concatenate([self.skeletons[k], Y]), xp.concatenate([self.known[k], W])

    def coupled(self, S):
        """Take from Y what couplings make of Ω̂."""
        if len(S):
            self.skeletons[0] -= S.multiply(self.known[-1], len(self.skeletons[0]))
            if len(self.skeletons) > 1:
                self.skeletons[1] -= S.multiply(self.known[0], len(self.skeletons[1]), True)

    @staticmethod
    def _of(k, side, t, leaves, above):
        return (leaves if side.tree.first_child[t[0]] < 0 else above)[k]


def _append(parts, k, columns, xp):
    """Columns beside those of parts[k], if there are any."""
    parts[k] = xp.concatenate([parts[k], columns], axis=1) if parts[k].ndim == 2 else columns


def _taken(rows, index):
    """Some of the rows; index on the host."""
    return rows[array_module(rows).asarray(index)]


def _cut(rows, counts):
    """Consecutive rows as matrices."""
    return MatrixBatch.from_rows(rows, offsets_of(counts)[:-1], counts)
