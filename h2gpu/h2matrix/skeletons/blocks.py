"""Blocks of a matrix that is known by its entries: at pairs of index sets, as a BlockSparse."""

import numpy as np

from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.batched.device.threads import pieces
from h2gpu.memory import piece_entries

ENTRIES = 1 << 22  # asked for at a time on the CPU


class Entries:
    """A caller's function of index arrays, asked in pieces of bounded size.

    function   (i, j) integer arrays of one shape, where the matrix is to be → its entries there
    """

    def __init__(self, function, dtype, xp):
        self.function, self.dtype, self.xp = function, dtype, xp

    def __call__(self, i, j):
        """Entries at pairs of index arrays on the host, flat. ValueError for others than finite real numbers."""
        xp = self.xp
        found = xp.asarray(self.function(xp.asarray(i), xp.asarray(j)))
        fits = found.shape == i.shape and found.dtype.kind in "fiub"
        if not fits or not bool(xp.isfinite(found).all()):
            raise ValueError(
                f"entries: expected finite real numbers of shape {i.shape}, as the index arrays i and j have, got "
                f"{found.dtype} of shape {found.shape}" + (" with NaN or Inf" if fits else "")
            )
        return found.astype(self.dtype, copy=False)

    def transposed(self):
        """Entries of the transpose."""
        return Entries(lambda i, j: self.function(j, i), self.dtype, self.xp)

    def blocks(self, rows, row_counts, columns, column_counts):
        """M[rows_b, columns_b] of index sets, flat and how many each b has: a MatrixBatch."""
        out = MatrixBatch.empty(row_counts, column_counts, self.dtype, self.xp)
        firsts = offsets_of(row_counts), offsets_of(column_counts)
        for part in pieces(out.sizes, piece_entries(self.xp, ENTRIES)):
            m, n = row_counts[part], column_counts[part]
            i = np.repeat(rows[slice(*firsts[0][[part.start, part.stop]])], np.repeat(n, m))
            j = columns[ranges(np.repeat(firsts[1][part], m), np.repeat(n, m))]
            out[part].entries[...] = self(i, j)
        return out
