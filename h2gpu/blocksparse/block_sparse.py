"""Sparse matrices of dense blocks.

    y_i = Σ_j A_ij x_j     over the stored blocks (i, j), of any sizes

Blocks are sorted by column, then row, so that all blocks of a column form one tall matrix, the panel. A symmetric
matrix stores one of A_ij = A_jiᵀ: the one with i ≥ j.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from h2gpu.arrays import moved_together
from h2gpu.batched.copies import gather
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges, runs_of
from h2gpu.batched.device.plans import planned
from h2gpu.batched.products import triple_product

twin = twins_of(__package__)


class Pairs:
    """What has a block row and a block column for each of its blocks: `rows` and `columns`, on the host.

    And `shapes`, of two arrays: how many rows and columns each block has.
    """

    @property
    def sizes(self):
        """Entries of each block, (blocks,)."""
        m, n = self.shapes
        return m * n

    def counted(self):
        """[(rows, columns)] of all blocks on the host, in parts and in any order: enough to count."""
        return [(self.rows, self.columns)]

    def pairs(self, xp):
        """(rows, columns) in the memory of the array module xp; copied once."""
        if xp is np:
            return self.rows, self.columns
        key = "pairs", xp.cuda.Device().id
        return planned(self, key, lambda: moved_together(xp, self.rows, self.columns))


@dataclass(frozen=True, eq=False)
class BlockSparse(Pairs):
    """A sparse matrix of dense blocks.

    blocks       MatrixBatch, one matrix a stored block, sorted by (column, row); in float32, it multiplies vectors of
                 float64 too, in float64
    rows         (blocks,) int64: block row i of each
    columns      (blocks,) int64: block column j of each
    row_starts   (block rows,) int64: where y_i begins in y
    col_starts   (block columns,) int64: where x_j begins in x
    symmetric    whether A_ji = A_ijᵀ is meant by every stored A_ij, i > j
    constant     whether the entries stay as they are; else kernels before a product may write them
    """

    blocks: MatrixBatch
    rows: np.ndarray
    columns: np.ndarray
    row_starts: np.ndarray
    col_starts: np.ndarray
    symmetric: bool
    constant: bool = True
    evaluated = False  # the blocks are in memory

    def __len__(self):
        return len(self.blocks)

    @property
    def dtype(self):
        """Precision of the entries."""
        return self.blocks.dtype

    @property
    def xp(self):
        """The array module of the entries."""
        return self.blocks.xp

    @property
    def nbytes(self):
        """Bytes of the stored entries."""
        return self.blocks.nbytes

    @property
    def shapes(self):
        """Rows and columns of each block: two arrays (blocks,)."""
        return self.blocks.rows, self.blocks.columns

    @property
    def sizes(self):
        """Entries of each block, (blocks,)."""
        return self.blocks.sizes

    @cached_property
    def panel_counts(self):
        """Blocks of each block column that has any, in order."""
        return np.diff(runs_of(self.columns))

    @cached_property
    def panels(self):
        """The blocks of a column stacked, one matrix a block column that has any."""
        return self.blocks.stacked(self.panel_counts)

    @cached_property
    def panel_rows(self):
        """For every row of every panel, the row of y it adds to."""
        return ranges(self.row_starts[self.rows], self.blocks.rows)

    @cached_property
    def panel_firsts(self):
        """For every panel: its block column's start in x, first entry in panel_rows, rows of its diagonal block."""
        first = offsets_of(self.panel_counts)[:-1]
        diagonal = np.where(self.rows[first] == self.columns[first], self.blocks.rows[first], 0)
        return self.col_starts[self.columns[first]], offsets_of(self.panels.rows), diagonal

    def select(self, index):
        """The blocks of the given indices, sharing memory."""
        return self.blocks[index]

    def part(self, index):
        """The matrix of the blocks of ascending indices alone, which are copied."""
        blocks, rows, columns = gather(self.blocks, index), self.rows[index], self.columns[index]
        return replace(self, blocks=blocks, rows=rows, columns=columns)

    def factors(self, index, transpose, bounds=None):
        """A_index[b] or A_index[b]ᵀ of each b, and whether they are still to be transposed; no block is copied.

        bounds   nothing depends on them where the blocks exist
        """
        return self.blocks.resident[index], transpose

    def triple_products(self, F, index, G, out):
        """out_b = F_b A_index[b] G_bᵀ."""
        S = self.blocks.resident[index].bounded((F.bounds[1], G.bounds[1]))
        return triple_product(F, S, G, out)

    def multiply(self, x, size, transpose=False, out=None):
        """A x, or Aᵀ x, of `size` rows, for x (·, right-hand sides); added to `out` where it is given."""
        return block_multiply(self, x, size, transpose, out)

    def to(self, xp):
        """The same matrix in the memory of the array module xp."""
        return replace(self, blocks=self.blocks.to(xp))

    @property
    def T(self):
        """Aᵀ; copies the blocks unless the matrix is symmetric."""
        if self.symmetric:
            return self
        order = np.lexsort((self.columns, self.rows))
        blocks = gather(self.blocks, order, True)
        rows, columns = self.columns[order], self.rows[order]
        return BlockSparse(blocks, rows, columns, self.col_starts, self.row_starts, False)


def block_multiply(A, x, size, transpose=False, out=None):
    """y = A x (or Aᵀ x) for a BlockSparse A; x (·, right-hand sides) C-contiguous, y has `size` rows.

    out   y is added to it where it is given, C-contiguous, and it is what comes back
    """
    return twin(A.blocks).block_multiply(A, x, size, transpose, out)
