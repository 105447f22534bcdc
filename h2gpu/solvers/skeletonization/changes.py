"""What eliminations have added to the covariance: D in A_ab = K_ab + D_ab, for cells a, b at distance ≤ 2.

Each pair is stored once, a ≤ b, with room for the indices that the cells had when their level began; those that are
left are in front. K is evaluated where it is needed, and never stored.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch


@dataclass(frozen=True, eq=False)
class Changes:
    """D of one level.

    keys     (pairs,) a · cells + b, ascending
    cells    how many
    blocks   2-D views, one a pair
    """

    keys: np.ndarray
    cells: int
    blocks: list

    @classmethod
    def zeros(cls, level, xp):
        """D = 0."""
        rows, slots = np.nonzero(level.near >= np.arange(len(level))[:, None])
        columns = level.near[rows, slots]
        keys = np.sort(rows * len(level) + columns)
        rows, columns = keys // len(level), keys % len(level)
        blocks = MatrixBatch.zeros(level.count[rows], level.count[columns], np.float64, xp)
        return cls(keys, len(level), blocks.matrices())

    def of(self, a, b):
        """Numbers of the blocks of cells a and b (arrays alike), and which of them are stored transposed."""
        number = np.searchsorted(self.keys, np.minimum(a, b) * self.cells + np.maximum(a, b))
        return number.tolist(), (a > b).tolist()

    def block(self, number, turned, rows, columns):
        """The leading part of D_ab, a view."""
        block = self.blocks[number]
        return block[:columns, :rows].T if turned else block[:rows, :columns]

    def merged(self, level, above, parent, start, xp):
        """D of the level above, whose cells `parent` hold these cells' indices from `start` on."""
        merged = Changes.zeros(above, xp)
        a, b = self.keys // self.cells, self.keys % self.cells
        numbers, turned = merged.of(parent[a], parent[b])
        count, start = level.count.tolist(), start.tolist()
        same = (parent[a] == parent[b]).tolist()
        pairs = zip(a.tolist(), b.tolist(), same)
        for block, number, flag, (i, j, own) in zip(self.blocks, numbers, turned, pairs):
            D = merged.blocks[number].T if flag else merged.blocks[number]
            rows, columns = slice(start[i], start[i] + count[i]), slice(start[j], start[j] + count[j])
            D[rows, columns] = block[: count[i], : count[j]]
            if own and i != j:
                D[columns, rows] = block[: count[i], : count[j]].T
        return merged
