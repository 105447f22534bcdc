"""Stacks of matrices that are zero beyond their leading parts, in the memory of these alone.

    y_b = A_b x_b,   x_b = Aᵀ_b y_b     of vectors that are padded as the stack is

On a GPU all cells of a colour are eliminated together, padded to the largest of them: a third of Y and T is zero. What
a step keeps of them is packed, and `blocksparse.Nested` multiplies with it, a launch whatever the sizes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.copies import join
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse.nested import Nested


@dataclass(frozen=True, eq=False)
class RaggedStack:
    """A stack (count, m, n) of which matrix b is zero but for its leading part.

    parts   MatrixBatch of the leading parts
    shape   (count, m, n)
    """

    parts: MatrixBatch
    shape: tuple

    @property
    def nbytes(self):
        """Bytes of the entries."""
        return self.parts.nbytes

    @cached_property
    def _products(self):
        """The parts with the rows that they meet; lists of panels are made with the first product."""
        (count, m, n), none = self.shape, np.zeros(0, np.int64)
        first = np.arange(count)
        return Nested(self.parts, self.parts[:0], m * first, none, n * first, none, np.zeros(1, np.int64), count * n)

    def __matmul__(self, x):
        """The products with (count, n, columns), C-contiguous: (count, m, columns)."""
        (count, m, n), columns = self.shape, x.shape[2]
        y = array_module(x).zeros((count * m, columns), x.dtype)
        return self._products.down_outer(x.reshape(count * n, columns), y).reshape(count, m, columns)

    def transposed_product(self, y):
        """The products of the transposed matrices with (count, m, columns), C-contiguous: (count, n, columns)."""
        (count, m, n), columns = self.shape, y.shape[2]
        return self._products.up(y.reshape(count * m, columns)).reshape(count, n, columns)

    def on_host(self):
        """The stack as an array of the host, padded."""
        stack = np.zeros(self.shape, self.parts.dtype)
        for A, part in zip(stack, self.parts.to(np).matrices()):
            A[: len(part), : part.shape[1]] = part
        return stack


def packed(*stacks):
    """A RaggedStack of each (array, rows, columns), all copied at once.

    array           (count, m, n), C-contiguous
    rows, columns   (count,) of the leading parts, on the host
    """
    arrays, rows, columns = zip(*stacks)
    sizes = map(np.concatenate, (rows, columns))
    out = MatrixBatch.empty(*sizes, arrays[0].dtype, array_module(arrays[0]))
    join([MatrixBatch.from_stack(A) for A in arrays], out)
    ends, found = offsets_of([len(A) for A in arrays]), []
    for A, i, j in zip(arrays, ends, ends[1:]):
        parts = MatrixBatch(out.buffer, *(side[i:j] for side in (out.offsets, out.rows, out.columns)))
        found.append(RaggedStack(parts, A.shape))
    return found


def transposed_product(A, y):
    """The products of Aᵀ_b, A a stack (count, m, n), an array or a RaggedStack, with y (count, m, columns)."""
    return A.transposed_product(y) if isinstance(A, RaggedStack) else A.swapaxes(1, 2) @ y


def on_host(A):
    """A stack, an array or a RaggedStack, as an array of the host."""
    return A.on_host() if isinstance(A, RaggedStack) else to_host(A)
