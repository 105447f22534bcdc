"""What eliminations have added to the covariance, on the CPU: D in A_ab = K_ab + D_ab, for cells a, b at distance ≤ 2.

Each pair is stored once, a ≤ b, for the indices that are left in the cells; a pair that nothing has changed yet takes
no memory. K is evaluated where it is needed, and never stored.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from h2gpu.batched.core.offsets import offsets_of


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
    threaded = True  # cells of a colour change blocks of their own

    @classmethod
    def zeros(cls, level, xp=np):
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

    def places(self, level, cells, adjacent, far):
        """For each cell its blocks with cells at distance ≤ 2, itself first: (number, turned, first row, rows, other).

        Rows as in its panel, where those of N(b) begin at `adjacent` and those of M(b) at `far`.
        """
        near = level.near[cells]
        own, slots = np.nonzero(near >= 0)
        others = near[own, slots]
        numbers, turned = self.of(others, cells[own])
        count, first = level.count[others], np.array([0, adjacent, far])[1 * (slots > 0) + (slots >= level.adjacent)]
        new = np.r_[True, (own[1:] != own[:-1]) | (first[1:] != first[:-1])]
        before = offsets_of(count)[:-1]
        first = first + before - before[new][np.cumsum(new) - 1]
        places = list(zip(numbers, turned, first.tolist(), count.tolist(), others.tolist()))
        return [places[i:j] for i, j in pairwise(offsets_of(np.bincount(own)).tolist())]

    def add(self, K, places):
        """D_ab added to the panels K of all cells b."""
        for panel, own in zip(K, places):
            for number, turned, start, rows, _ in own:
                D = self.block(number, turned)
                if D is not None:
                    panel[start : start + rows, : D.shape[1]] += D

    def update(self, level, cells, places, S, kept, Y, adjacent, far):
        """Blocks with the cells b restricted to S, and − Y Yᵀ added to those of S ∪ N(b)."""
        U, s = Y @ Y.swapaxes(1, 2), S.shape[1]
        for b, k in enumerate(kept.tolist()):
            skeleton, beside = S[b, :k], []
            for number, turned, start, rows, cell in places[b]:
                D = self.block(number, turned)
                if D is not None:
                    self.put(number, turned, D[:, skeleton] if start else D[np.ix_(skeleton, skeleton)])
                if start < far:
                    start, rows = (start - adjacent + s, rows) if start else (0, k)
                    beside.append((cell, slice(start, start + rows)))
            names = np.array([cell for cell, _ in beside])
            first, second = np.tril_indices(len(beside))
            numbers, turned = self.of(names[first], names[second])
            for number, flag, i, j in zip(numbers, turned, first.tolist(), second.tolist()):
                self.subtract(number, flag, U[b, beside[i][1], beside[j][1]])

    def add_to_all(self, A, level):
        """D added to the matrix A of all indices left, cell by cell."""
        first = offsets_of(level.count)
        for key, block in zip(self.keys.tolist(), self.blocks):
            if block is None:
                continue
            a, b = divmod(key, self.cells)
            rows, columns = slice(first[a], first[a + 1]), slice(first[b], first[b + 1])
            A[rows, columns] += block
            if a != b:
                A[columns, rows] += block.T

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
