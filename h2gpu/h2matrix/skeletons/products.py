"""Samples that are products with random vectors: of the whole matrix, less what is known of it already.

    leaves   Y_t = (A Ω)_t − Σ_near D_ts Ω_s             above   Y_t = [Y_c[J_c] − Σ_far S_cs Ω̂_s]  over the children c
             Ω̂_t = V_tᵀ Ω_t

What remains is A[candidates of t, farfield of t] Ω: the product meets every column, at linear cost.
"""

from h2gpu import batched
from h2gpu.arrays import array_module
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of


class Products:
    """A sampler for `skeletonized`; a symmetric matrix has one side, others two.

    nearfield   BlockSparse
    samples     a side (·, samples): A Ω, and Aᵀ Ψ, in tree order
    tests       a side: the random vectors with its own length, Ω for a symmetric matrix, else Ψ and Ω
    """

    @property
    def norm_of_one(self):
        """‖B Ω‖_F of a matrix with ‖B‖_F = 1, about."""
        return self.tests[0].shape[1] ** 0.5

    def __init__(self, nearfield, samples, tests):
        xp = nearfield.xp
        self.tests, self.known = tests, [xp.zeros((0, tests[0].shape[1]), tests[0].dtype) for _ in tests]  # Ω̂
        near = [nearfield.multiply(tests[-1], len(samples[0]))]
        near += [nearfield.multiply(tests[0], len(samples[1]), True)] if len(samples) > 1 else []
        self.points = [Y - D for Y, D in zip(samples, near)]  # of all points, and of all skeletons
        self.skeletons = [xp.zeros((0, Y.shape[1]), Y.dtype) for Y in samples]

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


def _taken(rows, index):
    """Some of the rows; index on the host."""
    return rows[array_module(rows).asarray(index)]


def _cut(rows, counts):
    """Consecutive rows as matrices."""
    return MatrixBatch.from_rows(rows, offsets_of(counts)[:-1], counts)
