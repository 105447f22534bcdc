"""What eliminations have added to the covariance: D in A_ab = K_ab + D_ab, for cells a, b at distance ≤ 2.

Each pair is stored once, a ≤ b, for the indices that are left in the cells; a pair that nothing has changed yet takes
no memory. K is evaluated where it is needed, and never stored.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Changes:
    """D of one level.

    keys     (pairs,) a · cells + b, ascending
    cells    how many
    blocks   one a pair: (count of a, count of b), or None for zeros
    """

    keys: np.ndarray
    cells: int
    blocks: list

    @classmethod
    def zeros(cls, level):
        """D = 0."""
        rows, slots = np.nonzero(level.near >= np.arange(len(level))[:, None])
        keys = np.sort(rows * len(level) + level.near[rows, slots])
        return cls(keys, len(level), [None] * len(keys))

    def of(self, a, b):
        """Numbers of the blocks of cells a and b (arrays alike), and which of them are stored transposed."""
        number = np.searchsorted(self.keys, np.minimum(a, b) * self.cells + np.maximum(a, b))
        return number.tolist(), (a > b).tolist()

    def block(self, number, turned):
        """D_ab, a view, or None for zeros."""
        block = self.blocks[number]
        return block.T if turned and block is not None else block

    def subtract(self, number, turned, U):
        """D_ab − U in place of D_ab, whose shape it has."""
        block = self.block(number, turned)
        if block is None:
            self.blocks[number] = np.negative(U.T if turned else U, order="C")
        else:
            block -= U

    def put(self, number, turned, block):
        """This in place of D_ab."""
        self.blocks[number] = block.T if turned else block

    def merged(self, level, above, parent, start, xp):
        """D of the level above, whose cells `parent` hold these cells' indices from `start` on; this one is emptied."""
        merged = Changes.zeros(above)
        a, b = self.keys // self.cells, self.keys % self.cells
        numbers, turned = merged.of(parent[a], parent[b])
        rows, columns = above.count[merged.keys // len(above)], above.count[merged.keys % len(above)]
        shapes = list(zip(rows.tolist(), columns.tolist()))
        start, stop = start.tolist(), (start + level.count).tolist()
        same = (parent[a] == parent[b]).tolist()
        for k, (number, flag, i, j, own) in enumerate(zip(numbers, turned, a.tolist(), b.tolist(), same)):
            block, self.blocks[k] = self.blocks[k], None
            if block is None or not block.size:  # a cell of which nothing is left may have no parent
                continue
            if merged.blocks[number] is None:
                merged.blocks[number] = xp.zeros(shapes[number])
            D = merged.block(number, flag)
            rows, columns = slice(start[i], stop[i]), slice(start[j], stop[j])
            D[rows, columns] = block
            if own and i != j:
                D[columns, rows] = block.T
        return merged
