"""Dense blocks between leaves that are evaluated where they are used.

    D_ts = covariance(points of t, points of s) (+ nugget I where t = s)

They remember points in place of entries: n · dim numbers, whatever the leaf size and admissibility.
"""

import threading
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from h2gpu.arrays import array_module, moved, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies import add_to_diagonals
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.plans import planned
from h2gpu.batched.device.threads import pieces
from h2gpu.blocksparse import BlockSparse
from h2gpu.blocksparse.block_sparse import Pairs
from h2gpu.covariance import pairwise
from h2gpu.memory import piece_entries
from h2gpu.texts import brief

NEARFIELDS = ("stored", "computed")
PIECE_ENTRIES = 1 << 22  # of blocks that exist at a time in a product on the CPU


@dataclass(frozen=True, eq=False)
class EvaluatedNearfield(Pairs):
    """Answers what a `BlockSparse` answers; a product evaluates all blocks, in pieces of bounded size.

    function                covariance of broadcast point arrays
    row_points, col_points  MatrixBatch of all clusters' points, points × dim
    rows, columns           (blocks,) leaves of each block, sorted by (column, row)
    nugget                  added to the diagonal of a symmetric matrix
    symmetric               whether each block stands for its transpose too
    """

    function: object
    row_points: MatrixBatch
    col_points: MatrixBatch
    rows: np.ndarray
    columns: np.ndarray
    nugget: float
    symmetric: bool

    @classmethod
    def of(cls, blocks, x, y, cov):
        """The nearfield of a block tree; x, y points in tree order."""
        row_tree, col_tree = blocks.row_tree, blocks.col_tree
        X = MatrixBatch.from_rows(x, row_tree.start, row_tree.sizes)
        Y = X if blocks.symmetric else MatrixBatch.from_rows(y, col_tree.start, col_tree.sizes)
        return cls(
            cov.pair_function, X, Y, *blocks.near, float(cov.nugget) if blocks.symmetric else 0.0, blocks.symmetric
        )

    def __len__(self):
        return len(self.rows)

    @property
    def dtype(self):
        """Precision of the points and of the entries."""
        return self.row_points.dtype

    @property
    def xp(self):
        """The array module of the points."""
        return self.row_points.xp

    @property
    def nbytes(self):
        """Bytes of the points."""
        return self.row_points.buffer.nbytes + (0 if self.symmetric else self.col_points.buffer.nbytes)

    @cached_property
    def shapes(self):
        """Rows and columns of each block: (2, blocks)."""
        return np.stack([self.row_points.rows[self.rows], self.col_points.rows[self.columns]])

    @cached_property
    def largest(self):
        """Rows and columns that no block exceeds."""
        return tuple(self.shapes.max(axis=1, initial=0).tolist())

    @property
    def row_starts(self):
        """Where y_i begins in y."""
        return self.row_points.offsets // self.row_points.columns

    @property
    def col_starts(self):
        """Where x_j begins in x."""
        return self.col_points.offsets // self.col_points.columns

    def select(self, index):
        """The blocks of the given indices (a slice, or an array), evaluated; their sizes are where an array is."""
        if isinstance(index, slice) or array_module(index) is np:
            return self.into(index, MatrixBatch.empty(*self.shapes[:, index], self.dtype, self.xp))
        return self.into(index, None)

    def into(self, index, out):
        """The same blocks written to `out`; returned. None: to memory whose sizes are where it is.

        Nothing is waited for if the index is on the host.
        """
        xp = self.xp
        there = index if isinstance(index, slice) else moved(index, xp)
        t, s = (clusters[there] for clusters in self.pairs(xp))
        X, Y = self.row_points[t], self.col_points[s]
        if out is None:
            X, Y = (Z.bounded((most, Z.bounds[1])) for Z, most in zip((X, Y), self.largest))
        D = pairwise(self.function, X, Y, out if out is None else out.resident)
        if self.nugget:
            index = index if isinstance(index, slice) else to_host(index)
            t, s = self.rows[index], self.columns[index]
            own = np.flatnonzero(t == s)
            own = own[self.row_points.rows[t[own]] > 0]
            if len(own):
                add_to_diagonals(D[moved(own, xp)], self.nugget)
        return D if out is None else out

    def part(self, index):
        """The matrix of the blocks of ascending indices alone."""
        return replace(self, rows=self.rows[index], columns=self.columns[index])

    def stored(self):
        """All blocks evaluated and kept: a BlockSparse."""
        return self._as_stored(slice(None), self.select(slice(None)))

    def multiply(self, x, size, transpose=False, out=None):
        """A x, or Aᵀ x, of `size` rows, for x (·, right-hand sides); added to `out` where it is given."""
        if out is None:
            y = self.nugget * x if self.nugget else self.xp.zeros((size, x.shape[1]), x.dtype)
        else:
            y = out
            if self.nugget:
                y += self.nugget * x
        t, s = self.pairs(self.xp)
        for part, piece in planned(self, self._caller(), self._pieces):
            pairwise(self.function, self.row_points[t[part]], self.col_points[s[part]], piece.blocks.resident)
            y = piece.multiply(x, size, transpose, y)
        return y

    def to(self, xp):
        """The same blocks, evaluated by the array module xp."""
        X = self.row_points.to(xp)
        return replace(self, row_points=X, col_points=X if self.symmetric else self.col_points.to(xp))

    @property
    def T(self):
        """Aᵀ."""
        if self.symmetric:
            return self
        order = np.lexsort((self.columns, self.rows))
        rows, columns = self.columns[order], self.rows[order]
        return replace(self, row_points=self.col_points, col_points=self.row_points, rows=rows, columns=columns)

    def _pieces(self):
        """Slices of the blocks, and a BlockSparse for each; one room for the entries of all, one after the other."""
        (m, n), xp = self.shapes, self.xp
        parts = pieces(m * n, piece_entries(xp, PIECE_ENTRIES))
        room = xp.empty(max((int((m * n)[part].sum()) for part in parts), default=0), self.dtype)
        batches = [MatrixBatch(room, offsets_of((m * n)[part])[:-1], m[part], n[part]) for part in parts]
        return [(part, replace(self._as_stored(part, blocks), constant=False)) for part, blocks in zip(parts, batches)]

    def _caller(self):
        """Who multiplies: products at the same time, in other threads or streams, need room of their own."""
        stream = None if self.xp is np else (self.xp.cuda.Device().id, self.xp.cuda.get_current_stream().ptr)
        return threading.get_ident(), stream

    def _as_stored(self, part, blocks):
        starts = self.row_starts, self.col_starts
        return BlockSparse(blocks, self.rows[part], self.columns[part], *starts, self.symmetric)


def check_nearfield(nearfield):
    """ValueError unless it is one of the ways to keep the nearfield."""
    if nearfield not in NEARFIELDS:
        raise ValueError(f'nearfield: expected "stored" or "computed", got {brief(nearfield)}')
