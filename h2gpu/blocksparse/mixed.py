"""Sparse matrices of dense blocks, some of them stored in float32.

A = W + N        W of the blocks in float64, N of those in float32; y = W x + N x is computed in float64
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.batched.copies import gather
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.threads import parallel, pieces, thread_count
from h2gpu.batched.products import triple_product
from h2gpu.blocksparse.block_sparse import BlockSparse, Pairs
from h2gpu.memory import piece_entries

PIECE_ENTRIES = 1 << 21  # of blocks that are brought into float32 at a time on the CPU


@dataclass(frozen=True, eq=False)
class MixedBlocks(Pairs):
    """Answers what a `BlockSparse` answers; selected blocks are copies in float64.

    wide, narrow   BlockSparse of the blocks in float64 and of those in float32, of one structure
    narrowed       (blocks,) bool: which of all blocks, sorted by (column, row), are in float32
    rows, columns  (blocks,) int64 of all blocks
    """

    wide: BlockSparse
    narrow: BlockSparse
    narrowed: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    evaluated = True  # selected blocks are not yet in memory

    @classmethod
    def of(cls, A, narrowed, room=None):
        """The blocks of A (anything with `select`) stored in float32 where `narrowed`, else in float64.

        room   `counterpart` of all blocks of a BlockSparse in float32, which then takes them if all are narrowed
        """
        parts = [_stored(A, _indices(chosen), kind, room) for chosen, kind in _kinds(narrowed)]
        return cls(*parts, narrowed, A.rows, A.columns)

    def __len__(self):
        return len(self.rows)

    @property
    def dtype(self):
        """float64: of the products and of selected blocks."""
        return self.wide.dtype

    @property
    def xp(self):
        """The array module of the entries."""
        return self.wide.xp

    @property
    def symmetric(self):
        """Whether each block stands for its transpose too."""
        return self.wide.symmetric

    @property
    def row_starts(self):
        """Where y_i begins in y."""
        return self.wide.row_starts

    @property
    def col_starts(self):
        """Where x_j begins in x."""
        return self.wide.col_starts

    @property
    def nbytes(self):
        """Bytes of the stored entries."""
        return self.wide.nbytes + self.narrow.nbytes

    @cached_property
    def shapes(self):
        """Rows and columns of each block: two arrays (blocks,)."""
        shapes = np.zeros((2, len(self)), np.int64)
        for part, (chosen, _) in zip((self.wide, self.narrow), _kinds(self.narrowed)):
            shapes[:, chosen] = part.shapes
        return shapes

    @cached_property
    def places(self):
        """Each block's number in its part, (blocks,)."""
        return np.where(self.narrowed, np.cumsum(self.narrowed), np.cumsum(~self.narrowed)) - 1

    def select(self, index):
        """The blocks of the given indices (a slice, or an array on the host or the device), in float64."""
        index = np.arange(len(self))[index] if isinstance(index, slice) else to_host(index)
        out = MatrixBatch.empty(*self.shapes[:, index], self.dtype, self.xp)
        for part, (chosen, _) in zip((self.wide, self.narrow), _kinds(self.narrowed[index])):
            if chosen.any():
                copy(part.select(self.places[index[chosen]]), out[chosen])
        return out

    def part(self, index):
        """The matrix of the blocks of ascending indices alone, which are copied."""
        narrowed, places = self.narrowed[index], self.places[index]
        wide, narrow = self.wide.part(places[~narrowed]), self.narrow.part(places[narrowed])
        return MixedBlocks(wide, narrow, narrowed, self.rows[index], self.columns[index])

    def factors(self, index, transpose, bounds=None):
        """A_index[b] of each b in float64, and whether they are still to be transposed: as asked.

        bounds   nothing depends on them where the blocks exist
        """
        return self.select(index).resident, transpose

    def triple_products(self, F, index, G, out):
        """out_b = F_b A_index[b] G_bᵀ."""
        return triple_product(F, self.select(index).resident, G, out)

    def multiply(self, x, size, transpose=False, out=None):
        """A x, or Aᵀ x, of `size` rows, for x (·, right-hand sides); added to `out` where it is given."""
        parts = [part for part in (self.wide, self.narrow) if len(part)]
        for part in parts or [self.wide]:
            out = part.multiply(x, size, transpose, out)
        return out

    def to(self, xp):
        """The same matrix in the memory of the array module xp."""
        return replace(self, wide=self.wide.to(xp), narrow=self.narrow.to(xp))

    @property
    def T(self):
        """Aᵀ; copies the blocks unless the matrix is symmetric."""
        if self.symmetric:
            return self
        order = np.lexsort((self.columns, self.rows))
        return MixedBlocks(self.wide.T, self.narrow.T, self.narrowed[order], self.columns[order], self.rows[order])


def _kinds(narrowed):
    """Which blocks are of the first part and of the second, with their precision."""
    return (~narrowed, np.float64), (narrowed, np.float32)


def _indices(chosen):
    """Of those that are chosen: a slice of all, or an array."""
    return slice(None) if chosen.all() else np.flatnonzero(chosen)


def _stored(A, index, dtype, room=None):
    """The blocks of the given indices as a BlockSparse of this precision; A evaluated or converted piece by piece.

    room   as for MixedBlocks.of

    Where A has all its blocks in float32 beside, `in_float32`, they are taken.
    """
    every = isinstance(index, slice)
    blocks = getattr(A, "in_float32", None) if dtype == np.float32 else None
    if blocks is None and every and isinstance(A, BlockSparse):
        whole = A.blocks.packed()
        fits = room is not None and room.dtype == dtype
        blocks = room if fits else whole.counterpart(dtype)  # whose sizes are known, on a GPU as well
        _convert(whole.buffer, blocks.buffer)
    elif blocks is None:
        blocks = MatrixBatch.empty(*(side[index] for side in A.shapes), dtype, A.xp)
        if A.xp is not np and hasattr(A, "into") and len(blocks):
            _evaluate(A, index, blocks)
        else:
            index = np.arange(len(blocks)) if every else index
            for part in pieces(blocks.sizes, piece_entries(A.xp, PIECE_ENTRIES)):
                copy(A.select(index[part]), blocks[part])
    elif not every:
        blocks = gather(blocks, index)
    return BlockSparse(blocks, A.rows[index], A.columns[index], A.row_starts, A.col_starts, A.symmetric)


def _evaluate(A, index, blocks):
    """Blocks ← those of A of the given indices, written where the device knows their places; piece by piece."""
    MatrixBatch.place(blocks)
    for part in pieces(blocks.sizes, piece_entries(A.xp, PIECE_ENTRIES)):
        out, chosen = blocks[part], part if isinstance(index, slice) else index[part]  # on the host: nothing waits
        if A.dtype == out.dtype:
            A.into(chosen, out)
        else:
            _convert(A.into(chosen, out.counterpart(A.dtype)).buffer, out.entries)


def _convert(source, target):
    """target ← source; on the CPU by all threads."""

    def run(part):
        with np.errstate(over="ignore"):  # blocks that float32 cannot hold have infinite errors, and stay as they are
            target[part] = source[part]

    step = max(1, -(-len(source) // thread_count())) if isinstance(source, np.ndarray) else max(1, len(source))
    parallel(run, [slice(first, first + step) for first in range(0, len(source), step)])


def copy(blocks, out):
    """Blocks into places of the same shapes and of any precision."""
    blocks = blocks if blocks.is_packed else gather(blocks, np.arange(len(blocks)))
    if out.is_packed:
        _convert(blocks.entries, out.entries)
    else:
        gather(blocks.astype(out.dtype), np.arange(len(blocks)), out=out)
