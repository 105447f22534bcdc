"""Stacks of lower triangular matrices that are the identity beyond their orders, in the memory of the triangles alone.

    entries[first_b + i (i + 1) / 2 + j] = L_b[i, j],   j ≤ i < r_b

A step of the elimination keeps its Cholesky factors so on a GPU, and unpacks them, by one launch, when it solves: the
bits are those of the stack. Reference: Anderson et al. (1999), LAPACK Users' Guide, section 5.3.2, packed storage.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.offsets import offsets_of

twin = twins_of("h2gpu.solvers.skeletonization", cpu="entries")


@dataclass(frozen=True, eq=False)
class Triangles:
    """A stack (count, n, n) of L_b.

    entries   float64, those of all triangles
    table     (2, count) int64, with the entries: first_b and r_b
    shape     (count, n, n)
    """

    entries: object
    table: object
    shape: tuple

    @classmethod
    def of(cls, L, orders):
        """Of the stack L (count, n, n); orders (count,) on the host."""
        xp, ends = array_module(L), offsets_of(orders * (orders + 1) // 2)
        found = cls(xp.empty(int(ends[-1])), xp.asarray(np.stack([ends[:-1], orders])), L.shape)
        twin(L).pack_triangles(xp.ascontiguousarray(L), *found.table, found.entries)
        return found

    @property
    def nbytes(self):
        """Bytes of entries and table."""
        return self.entries.nbytes + self.table.nbytes

    def stack(self, which=None):
        """They as an array, where they are, or those of these numbers, (count,) int64 there."""
        count = self.shape[0] if which is None else len(which)
        L = array_module(self.entries).empty((count, *self.shape[1:]))
        twin(L).unpack_triangles(self.entries, *self.table, which, L)
        return L


def stacked(A, which=None):
    """A stack, an array or a packed one, as an array where it is; of matrices `which` alone where these are given."""
    if hasattr(A, "stack"):
        return A.stack(which)
    return A if which is None else A[which]
