"""Stacks of matrices that are zero but for some rows and their leading columns, in the memory of these alone.

    y_b = A_b x_b,   x_b = Aᵀ_b y_b     of vectors that are padded as the stack is

On a GPU all cells of a colour are eliminated together, padded to the largest of them: a third of Y and T is zero. What
a step keeps of them is packed. `blocksparse.Nested` multiplies with few columns, a launch for 16 whatever the sizes;
for many a padded stack is made again, by one launch.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.batched.copies import join
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.blocksparse.nested import Nested
from h2gpu.solvers.skeletonization.triangles import stacked, twin

WIDE = 32  # columns, two launches of 16, beyond which a padded stack is made and multiplied by batched.gemm


@dataclass(frozen=True, eq=False)
class RaggedStack:
    """A stack (count, m, n) of which matrix b is zero but for a part of it, some rows and their leading columns.

    parts   MatrixBatch of the parts
    first   (count,) int64 their first rows
    shape   (count, m, n)
    """

    parts: MatrixBatch
    first: np.ndarray
    shape: tuple

    @property
    def nbytes(self):
        """Bytes of the entries."""
        return self.parts.nbytes

    @cached_property
    def _products(self):
        """The parts with the rows that they meet; lists of panels are made with the first product."""
        (count, m, n), none = self.shape, np.zeros(0, np.int64)
        which, bounds = np.arange(count), np.zeros(1, np.int64)
        return Nested(self.parts, self.parts[:0], m * which + self.first, none, n * which, none, bounds, count * n)

    @cached_property
    def _table(self):
        """(4, count) int64 with the entries: where each part begins, its first row, rows and columns."""
        parts = self.parts
        return parts.xp.asarray(np.stack([parts.offsets, self.first, parts.rows, parts.columns]))

    def stack(self, which=None):
        """They as an array, where they are, or those of these numbers, (count,) int64 there."""
        count = self.shape[0] if which is None else len(which)
        A = self.parts.xp.empty((count, *self.shape[1:]), self.parts.dtype)
        twin(A).unpack_parts(self.parts.buffer, *self._table, which, A)
        return A

    def __matmul__(self, x):
        """The products with (count, n, columns), C-contiguous: (count, m, columns)."""
        (count, m, n), columns = self.shape, x.shape[2]
        if columns > WIDE:
            return batched.gemm(self.stack(), x)
        y = array_module(x).zeros((count * m, columns), x.dtype)
        return self._products.down_outer(x.reshape(count * n, columns), y).reshape(count, m, columns)

    def transposed_product(self, y):
        """The products of the transposed matrices with (count, m, columns), C-contiguous: (count, n, columns)."""
        (count, m, n), columns = self.shape, y.shape[2]
        if columns > WIDE:
            return batched.gemm(self.stack(), y, transa=True)
        return self._products.up(y.reshape(count * m, columns)).reshape(count, n, columns)

    def on_host(self):
        """The stack as an array of the host, padded."""
        stack = np.zeros(self.shape, self.parts.dtype)
        for A, first, part in zip(stack, self.first, self.parts.to(np).matrices()):
            A[first : first + len(part), : part.shape[1]] = part
        return stack


def packed(above, columns, *stacks):
    """A RaggedStack of each (array, s, below), copied at once: padded rows go, and what is above s moves down to it.

    array            (count, m, n), C-contiguous: above[b] rows from the first one, below[b] from row s, are not padded
    above, columns   (count,) rows and leading columns, on the host
    below            (count,) rows
    """
    rows = [np.stack([above, below], axis=1).ravel() for _, _, below in stacks]
    sources = [_runs(A, s, height, columns) for (A, s, _), height in zip(stacks, rows)]
    rows, columns = np.concatenate(rows), np.tile(np.repeat(columns, 2), len(stacks))
    parts = join(sources, MatrixBatch.empty(rows, columns, sources[0].dtype, sources[0].xp)).pairs()
    count = len(above)
    pieces = [parts[i * count : (i + 1) * count] for i in range(len(stacks))]
    return [RaggedStack(part, s - above, A.shape) for part, (A, s, _) in zip(pieces, stacks)]


def _runs(A, s, rows, columns):
    """Rows of each matrix of a stack from the first one and from row s, two matrices each."""
    count, m, n = A.shape
    offsets = m * n * np.arange(count)[:, None] + np.array([0, s * n])
    return MatrixBatch(A.reshape(-1), offsets.ravel(), rows, np.full(2 * count, n))


def transposed_product(A, y):
    """The products of Aᵀ_b, A a stack (count, m, n), an array or a RaggedStack, with y (count, m, columns)."""
    return A.transposed_product(y) if isinstance(A, RaggedStack) else A.swapaxes(1, 2) @ y


def on_host(A):
    """A stack, an array, Triangles or a RaggedStack, as an array of the host."""
    return A.on_host() if isinstance(A, RaggedStack) else to_host(stacked(A))
