"""What eliminations have added to the covariance, on the CPU: D in A_ab = K_ab + D_ab, for cells a, b at distance ≤ 2.

Each pair is stored once, a ≤ b, for the indices that are left in the cells; a pair that nothing has changed yet takes
no memory. K is evaluated where it is needed, and never stored.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.solvers.skeletonization.cells import between, slot_of


@dataclass(frozen=True, eq=False)
class Changes:
    """D of one level.

    pairs     (2, pairs) cells a ≤ b
    numbers   (cells, 5^dim) of the pairs of each cell with its near ones
    blocks    one a pair: (count of a, count of b), or None for zeros
    """

    pairs: np.ndarray
    numbers: np.ndarray
    blocks: list
    threaded = True  # cells of a colour change blocks of their own
    packed = False  # cells of a step are of about one size

    @classmethod
    def zeros(cls, level):
        """D = 0."""
        pairs, numbers = level.pairs
        return cls(pairs, numbers, [None] * pairs.shape[1])

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

    def places(self, level, cells, rows):
        """For each cell its blocks with cells at distance ≤ 2, itself first: (number, turned, first row, rows, slot).

        rows   `cells.Rows` of their panels
        slot   of the other cell in level.near
        """
        near = level.near[cells]
        own, slots = np.nonzero(near >= 0)
        others = near[own, slots]
        numbers, turned = self.numbers[cells[own], slots].tolist(), (others > cells[own]).tolist()
        count, first = (
            level.count[others],
            np.array([0, rows.own, rows.far])[1 * (slots > 0) + (slots >= level.adjacent)],
        )
        new = np.r_[True, (own[1:] != own[:-1]) | (first[1:] != first[:-1])]
        before = offsets_of(count)[:-1]
        first = first + before - before[new][np.cumsum(new) - 1]
        places = list(zip(numbers, turned, first.tolist(), count.tolist(), slots.tolist()))
        return [places[i:j] for i, j in pairwise(offsets_of(np.bincount(own)).tolist())]

    def add(self, K, places):
        """D_ab added to the panels K of all cells b."""
        for panel, own in zip(K, places):
            for number, turned, start, rows, _ in own:
                D = self.block(number, turned)
                if D is not None:
                    panel[start : start + rows, : D.shape[1]] += D

    def update(self, level, cells, rows, places, part, S, kept, Y):
        """Blocks with part of the cells b restricted to S, and − Y Yᵀ added to those of S ∪ N(b)."""
        U, s, near = Y @ Y.swapaxes(1, 2), S.shape[1], level.near[cells[part], : level.adjacent]
        every = self.numbers[near[:, None], between(level.places.shape[1])]
        for b, k in enumerate(kept.tolist()):
            skeleton, beside, slots = S[b, :k], [], []
            for number, turned, start, count, slot in places[part[b]]:
                D = self.block(number, turned)
                if D is not None:
                    self.put(number, turned, D[:, skeleton] if start else D[np.ix_(skeleton, skeleton)])
                if slot < level.adjacent:
                    start, count = (start - rows.own + s, count) if start else (0, k)
                    beside.append(slice(start, start + count))
                    slots.append(slot)
            first, second = _lower(len(beside))
            i, j = np.array(slots)[[first, second]]
            numbers, turned = every[b, i, j].tolist(), (near[b, i] > near[b, j]).tolist()
            for number, flag, i, j in zip(numbers, turned, first.tolist(), second.tolist()):
                self.subtract(number, flag, U[b, beside[i], beside[j]])

    def add_to_all(self, A, level):
        """D added to the matrix A of all indices left, cell by cell."""
        first = offsets_of(level.count)
        for a, b, block in zip(*self.pairs.tolist(), self.blocks):
            if block is None:
                continue
            rows, columns = slice(first[a], first[a + 1]), slice(first[b], first[b + 1])
            A[rows, columns] += block
            if a != b:
                A[columns, rows] += block.T

    def merged(self, level, above, parent, start):
        """D of the level above, whose cells `parent` hold these cells' indices from `start` on; this one is emptied."""
        merged, (a, b) = Changes.zeros(above), self.pairs
        some = np.flatnonzero(level.count[a] * level.count[b])  # a cell of which nothing is left may have no parent
        a, b = a[some], b[some]
        p, q = parent[a], parent[b]
        numbers, turned = merged.numbers[q, slot_of(above.places[p] - above.places[q])].tolist(), (p > q).tolist()
        rows, columns = above.count[merged.pairs]
        shapes = list(zip(rows.tolist(), columns.tolist()))
        start, stop = start.tolist(), (start + level.count).tolist()
        pairs = zip(some.tolist(), a.tolist(), b.tolist(), (p == q).tolist())
        for number, flag, (k, i, j, own) in zip(numbers, turned, pairs):
            block, self.blocks[k] = self.blocks[k], None
            if block is None:
                continue
            if merged.blocks[number] is None:
                merged.blocks[number] = np.zeros(shapes[number])
            D = merged.block(number, flag)
            rows, columns = slice(start[i], stop[i]), slice(start[j], stop[j])
            D[rows, columns] = block
            if own and i != j:
                D[columns, rows] = block.T
        return merged


@cache
def _lower(n):
    """Rows and columns of the lower triangle of an n × n matrix."""
    return np.tril_indices(n)
