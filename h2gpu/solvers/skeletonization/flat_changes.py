"""What eliminations have added to the covariance, on the GPU: as `changes`, in one buffer, by tables of addresses.

    D_ab[i, j] = buffer[offset_ab + i · size_b + j],  a ≤ b;     buffer[0] = 0 stands for what is not stored

A colour of a level is one gather into its panels and one scatter of its updates: cells of a colour change blocks of
their own. Indices keep their slots in the blocks of a level until the next one, however few of them are left.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.solvers.skeletonization.changes import Changes


@dataclass(eq=False)
class FlatChanges:
    """D of one level.

    pairs    `changes.Changes` without blocks: numbers of pairs of cells
    size     (cells,) indices of each cell when the level began
    slot     (indices,) of each of level.members, among those of its cell then
    offset   (pairs,) where each block begins in the buffer, 0 for zeros
    buffer   where the work is done
    """

    pairs: Changes
    size: np.ndarray
    slot: np.ndarray
    offset: np.ndarray
    buffer: object
    threaded = False  # the buffer grows

    @classmethod
    def zeros(cls, level, xp):
        """D = 0."""
        pairs = Changes.zeros(level)
        slot = np.arange(len(level.members)) - np.repeat(level.first[:-1], np.diff(level.first))
        return cls(pairs, level.count.copy(), slot, np.zeros(len(pairs.keys), np.int64), xp.zeros(1))

    def places(self, level, cells, adjacent, far):
        """For each cell: addresses of the first entries of its panel's rows (cells, rows), and what a slot of a column
        adds to them; the slots of its columns (cells, columns), −1 where padded."""
        near = level.near[cells]
        parts = near[:, :1], near[:, 1 : level.adjacent], near[:, level.adjacent :]
        found = [level.positions(part) for part in parts]
        at = np.concatenate([position for position, _ in found], axis=1)
        starts = 0, 1, level.adjacent
        which = np.concatenate([which + start for (_, which), start in zip(found, starts)], axis=1)
        own = np.broadcast_to(cells[:, None], near.shape)
        offset, row, column = self._strides(near, own, self._numbers(near, own))
        which += near.shape[1] * np.arange(len(cells))[:, None]
        offset, row, column = (part.take(which) for part in (offset, row, column))
        stored = (at >= 0) & (offset > 0)
        base = np.where(stored, offset + self.slot[at] * row, 0)
        own = found[0][0]
        return [*zip(base, np.where(stored, column, 0), np.where(own < 0, -1, self.slot[own]))]

    def add(self, K, places):
        """D_ab added to the panels K of all cells b."""
        xp = array_module(K)
        base, column, own = (xp.asarray(np.stack(part)) for part in zip(*places))
        D = self.buffer[base[:, :, None] + column[:, :, None] * xp.maximum(own, 0)[:, None]]
        K[:, : base.shape[1]] += D * (own >= 0)[:, None]

    def update(self, level, cells, places, S, kept, Y, adjacent, far):
        """Slots of the cells b restricted to S, and − Y Yᵀ added to the blocks of S ∪ N(b)."""
        xp, near, s = array_module(Y), level.near[cells][:, : level.adjacent], S.shape[1]
        real, first = np.arange(s) < kept[:, None], level.first[cells][:, None]
        own = self.slot[np.where(real, first + S, 0)]
        at, which = level.positions(near[:, 1:])
        around = Y.shape[1] - s
        slot = np.concatenate([own, self.slot[at[:, :around]]], axis=1)
        which = np.concatenate([np.zeros_like(own), which[:, :around] + 1], axis=1)
        real_rows = np.concatenate([real, at[:, :around] >= 0], axis=1)
        self.slot[(first + np.arange(s))[real]] = own[real]
        shape = (len(cells), near.shape[1], near.shape[1])
        a, b = np.broadcast_to(near[:, :, None], shape), np.broadcast_to(near[:, None, :], shape)
        once = (a >= 0) & (b >= 0) & np.tri(shape[1], dtype=bool)
        number = self._numbers(a, b)
        self._store(number[once], xp)
        offset, row, column = self._strides(a, b, number)
        tables = (np.where(once, part, 0).reshape(len(cells), -1) for part in (offset, row, column))
        self._subtract(Y, *map(xp.asarray, (slot, which, real_rows)), *map(xp.asarray, tables), shape[1])

    def _subtract(self, Y, slot, which, real, offset, row, column, cells):
        """buffer −= Y Yᵀ, where pairs of rows have an address."""
        xp, (count, m) = array_module(Y), slot.shape
        pair = (which[:, :, None] * cells + which[:, None]).reshape(count, -1)
        offset, row, column = (xp.take_along_axis(part, pair, 1).reshape(count, m, m) for part in (offset, row, column))
        address = offset + slot[:, :, None] * row + slot[:, None] * column
        address *= (offset > 0) & real[:, :, None] & real[:, None]
        self.buffer[address] -= Y @ Y.swapaxes(1, 2)
        self.buffer[0] = 0

    def merged(self, level, above, parent, start, xp):
        """D of the level above, whose cells `parent` hold these cells' indices from `start` on."""
        merged = FlatChanges.zeros(above, xp)
        a, b, (pair, i, j), old = self._entries(level, xp)
        p, q = parent[a], parent[b]
        number = merged._numbers(p, q)
        merged._store(number, xp)
        offset, row, column = (xp.asarray(part) for part in merged._strides(p, q, number))
        i, j = i + xp.asarray(start[a])[pair], j + xp.asarray(start[b])[pair]
        values = self.buffer[old]
        merged.buffer[offset[pair] + i * row[pair] + j * column[pair]] = values
        both = xp.asarray((p == q) & (a != b))[pair]  # the other half of a diagonal block
        merged.buffer[xp.where(both, offset[pair] + j * row[pair] + i * column[pair], 0)] = values
        merged.buffer[0] = 0
        return merged

    def add_to_all(self, A, level):
        """D added to the matrix A of all indices left, cell by cell."""
        xp, first = array_module(A), offsets_of(level.count)
        a, b, (pair, i, j), old = self._entries(level, xp)
        i, j = i + xp.asarray(first[a])[pair], j + xp.asarray(first[b])[pair]
        values = self.buffer[old]
        A[i, j] += values
        A[j, i] += xp.where(xp.asarray(a != b)[pair], values, 0)

    def _entries(self, level, xp):
        """Cells a, b of the blocks that are stored and not empty; pair, row and column of every entry that is left; its
        address."""
        stored = np.flatnonzero(self.offset)
        a, b = np.divmod(self.pairs.keys[stored], self.pairs.cells)
        some = level.count[a] * level.count[b] > 0
        stored, a, b = stored[some], a[some], b[some]
        rows, columns = level.count[a], level.count[b]
        first = xp.asarray(offsets_of(rows * columns))
        entry = xp.arange(int((rows * columns).sum()))
        pair = xp.searchsorted(first, entry, side="right") - 1
        entry = entry - first[pair]
        wide = xp.asarray(columns)[pair]
        i, j = entry // wide, entry % wide
        slot = xp.asarray(self.slot)
        slot_i, slot_j = slot[xp.asarray(level.first[a])[pair] + i], slot[xp.asarray(level.first[b])[pair] + j]
        address = xp.asarray(self.offset[stored])[pair] + slot_i * xp.asarray(self.size[b])[pair] + slot_j
        return a, b, (pair, i, j), address

    def _numbers(self, a, b):
        """Of the pairs of cells a and b, arrays alike."""
        return np.searchsorted(self.pairs.keys, np.minimum(a, b) * self.pairs.cells + np.maximum(a, b))

    def _strides(self, a, b, number):
        """Offset of D_ab, 0 for what is not stored or no pair, and what a slot of its rows and of its columns adds.

        number   of each pair
        """
        offset = np.where((a >= 0) & (b >= 0), self.offset[np.minimum(number, len(self.offset) - 1)], 0)
        turned = a > b
        return offset, np.where(turned, 1, self.size[b]), np.where(turned, self.size[a], 1)

    def _store(self, numbers, xp):
        """Room for blocks that had none; a number may come several times."""
        wanted = np.zeros(len(self.offset), bool)
        wanted[numbers] = True
        new = np.flatnonzero(wanted & (self.offset == 0))
        a, b = np.divmod(self.pairs.keys[new], self.pairs.cells)
        ends = len(self.buffer) + offsets_of(self.size[a] * self.size[b])
        self.offset[new] = ends[:-1]
        self.buffer = xp.concatenate([self.buffer, xp.zeros(int(ends[-1]) - len(self.buffer))])
