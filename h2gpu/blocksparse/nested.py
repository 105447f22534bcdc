"""Products with nested matrices: block-diagonal matrices one after the other.

    up     c_b = P_bᵀ v_b       v_b rows of x for the outer matrices, and of c for the inner ones
    down   v_b += P_b c_b       the same backwards

The inner matrices come in steps: those of a step read, upwards, only what outer matrices and earlier steps have made.
Rows v_b of one step do not overlap.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch

twin = twins_of(__package__, "cpu_nested", "cuda_nested")


@dataclass(frozen=True, eq=False)
class Nested:
    """Outer matrices, and inner ones in steps.

    outer, inner     MatrixBatch of P_b
    outer_rows       (outer,) int64: first row of v_b in x
    inner_rows       (inner,) int64: first row of v_b in c
    outer_columns    (outer,) int64: first row of c_b in c
    inner_columns    (inner,) int64: likewise
    bounds           (steps + 1,) the inner matrices of step s, upwards, are bounds[s] … bounds[s + 1] − 1
    size             rows of c
    """

    outer: MatrixBatch
    inner: MatrixBatch
    outer_rows: np.ndarray
    inner_rows: np.ndarray
    outer_columns: np.ndarray
    inner_columns: np.ndarray
    bounds: np.ndarray
    size: int

    @cached_property
    def all_written(self):
        """Whether every row of c is one of c_b, for a matrix with rows."""
        return sum(int(P.columns[P.rows > 0].sum()) for P in (self.outer, self.inner)) == self.size

    def up(self, x):
        """c of the given x (·, vectors)."""
        new = self.outer.xp.empty if self.all_written else self.outer.xp.zeros
        c = new((self.size, x.shape[1]), x.dtype)
        return twin(self.outer).up(self, x, c)

    def down(self, c, y):
        """y plus the products of c; c is overwritten with its sums over the steps."""
        return self.down_outer(self.down_inner(c), y)

    def down_inner(self, c):
        """The first part of `down`: c, overwritten with its sums over the steps."""
        return twin(self.outer).down_inner(self, c)

    def down_outer(self, c, y):
        """The rest of it: y plus the products of the outer matrices with these sums."""
        return twin(self.outer).down_outer(self, c, y)
