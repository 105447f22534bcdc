"""What eliminations have added to the covariance, on the GPU: as `changes`, in one buffer, by tables of addresses.

    D_ab[i, j] = buffer[offset_ab + i · size_b + j],  a ≤ b;     buffer[0] = 0 stands for rows that are padded

A colour of a level is one gather into its panels and one scatter of its updates: cells of a colour change blocks of
their own. Indices keep their slots in the blocks of a level until the next one, however few of them are left. Tables
are made once a level, and addresses of them where the buffer is, by 32-bit numbers where these suffice.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.solvers.skeletonization.cells import between, slot_of

MOST = 1 << 24  # entries of blocks that are looked up at a time, some 80 bytes each
UPDATES = 1 << 26  # entries of Y Yᵀ that are made at a time
SHORT = 2**31  # entries of a buffer that 32-bit addresses suffice for
twin = twins_of("h2gpu.solvers.skeletonization", cpu="entries")


class Panels(NamedTuple):
    """Addresses of panels: entry (i, j) of panel b is at base[b, i] + step[b, i] · slot[b, j].

    base, step   (cells, rows); 0 where padded
    slot         (cells, rows) of each row's index in the blocks of its cell; 0 where padded
    real         (cells, rows) mask of those that are not padded
    """

    base: object
    step: object
    slot: object
    real: object


@dataclass(eq=False)
class FlatChanges:
    """D of one level, every pair of near cells stored; all arrays are where the work is done.

    pairs     (2, pairs) cells a ≤ b
    offset    (pairs,) where each block begins in the buffer
    size      (cells,) indices of each cell when the level began
    near      (cells, 5^dim) as the level's
    strides   (3, cells, 5^dim) for the block of a cell and a near one: its offset, and what a slot of the near cell's
              and one of its own add to it
    relative  (3^dim, 3^dim): `cells.between`
    slot      (indices + 1,) of each of level.members, among those of its cell then; 0 for the padded one
    entries   how many the buffer has
    buffer    they, or None before they are made and after they were merged
    """

    pairs: object
    offset: object
    size: object
    near: object
    strides: object
    relative: object
    slot: object
    entries: int
    buffer: object = None
    threaded = False  # the work is the GPU's
    packed = True  # steps keep what is not padded alone

    @classmethod
    def zeros(cls, level):
        """D = 0."""
        changes = cls.of(level)
        changes.empty()
        return changes

    @classmethod
    def of(cls, level):
        """The tables of a level."""
        xp = array_module(level.members)
        pairs, numbers = level.pairs
        size, near, first = (xp.array(part) for part in (level.count, level.near, level.first))  # counts will change
        offset = 1 + offsets_of(size[pairs[0]] * size[pairs[1]])
        total = int(offset[-1])
        integer = np.int32 if total < SHORT else np.int64
        own = xp.arange(len(level))[:, None]
        turned = near > own
        strides = offset[numbers], xp.where(turned, 1, size[:, None]), xp.where(turned, size[near], 1)
        strides = xp.stack(strides).astype(integer)
        slot = xp.arange(len(level.members), dtype=integer)
        cell = xp.searchsorted(first, slot, side="right") - 1
        slot = (slot - first[cell]).astype(integer)  # the padded index begins a cell of its own
        relative = xp.asarray(between(level.places.shape[1]))
        return cls(pairs, offset[:-1], size, near, strides, relative, slot, total)

    def empty(self):
        """D becomes 0."""
        self.buffer = array_module(self.slot).zeros(self.entries)

    def places(self, level, cells, rows):
        """The Panels of these cells (cells,), whose rows are those of `cells.Rows`."""
        xp = array_module(self.buffer)
        offset, row, step = self.strides[:, xp.asarray(cells)].reshape(3, -1)
        slot = self.slot[rows.at]
        base = row[rows.which]
        base *= slot
        base += offset[rows.which]
        base *= rows.real
        step = step[rows.which]
        step *= rows.real
        return Panels(base, step, slot, rows.real)

    def add(self, K, places):
        """D_ab added to the panels K of all cells b, (cells, rows and others, columns), in place."""
        twin(K).add_blocks(K, self.buffer, *places)

    def update(self, level, cells, rows, places, part, S, kept, Y):
        """− Y Yᵀ added to the blocks of S ∪ N(b) of part of the cells b, and their slots restricted to S."""
        xp, s, beside = array_module(Y), S.shape[1], slice(rows.own, rows.own + Y.shape[1] - S.shape[1])
        first, cells, part = xp.asarray(np.stack([level.first[cells[part]], cells[part], part]))
        none = level.adjacent  # cell of a padded row
        own = twin(Y).along(places.slot[part, : rows.own], S, 1)
        around = xp.where(rows.real[part, beside], rows.which[part, beside] % level.near.shape[1], none)
        which = xp.concatenate([xp.where(rows.own > S, 0, none), around], axis=1).astype(np.int32)
        self._subtract(Y, cells, xp.concatenate([own, places.slot[part, beside]], axis=1), which, none)
        at = xp.where(rows.own > S, first[:, None] + xp.arange(s), len(self.slot) - 1)
        self.slot[at] = own

    def _subtract(self, Y, cells, slot, which, none):
        """buffer −= Y Yᵀ; slot, which (cells, m): slot and neighbour of each row of Y, `none` where it is padded."""
        xp, count, near = array_module(Y), len(cells), self.near[cells][:, :none]
        strides = xp.zeros((3, count, none + 1, none + 1), self.strides.dtype)
        strides[:, :, :none, :none] = self.strides.reshape(3, -1)[:, near[:, None] * self.near.shape[1] + self.relative]
        strides *= xp.tri(none + 1, dtype=bool)  # each block once
        lead = (none + 1) * xp.arange(count)[:, None]
        base, row, step = strides.reshape(3, -1, none + 1)[:, which + lead]  # of each row, with each neighbour
        row *= slot[:, :, None]
        base += row
        together = max(1, UPDATES // max(1, which.shape[1] ** 2))
        for i in range(0, count, together):
            part = slice(i, i + together)
            U = Y[part] @ Y[part].swapaxes(1, 2)
            twin(Y).subtract_updates(self.buffer, U, *(table[part] for table in (base, step, which, slot)))

    def merged(self, level, above, parent, start):
        """D of the level above, whose cells `parent` hold these cells' indices from `start` on; this one is emptied."""
        merged, xp, moves = FlatChanges.of(above), array_module(self.buffer), []
        parent, start, places = (xp.asarray(part) for part in (parent, start, above.places))
        for a, b, (pair, i, j), old in self._entries(level):
            p, q = parent[a], parent[b]
            offset, row, column = (part[pair] for part in merged.strides[:, q, slot_of(places[p] - places[q])])
            i, j = i + start[a].astype(i.dtype)[pair], j + start[b].astype(i.dtype)[pair]
            both = ((p == q) & (a != b))[pair]  # the other half of a diagonal block
            turned = xp.where(both, offset + j * row + i * column, 0)
            moves.append((self.buffer[old], offset + i * row + j * column, turned))
        self.buffer = None  # before the larger one is made
        merged.empty()
        for values, *addresses in moves:
            for address in addresses:
                merged.buffer[address] = values
        merged.buffer[0] = 0
        return merged

    def add_to_all(self, A, level):
        """D added to the matrix A of all indices left, cell by cell."""
        xp = array_module(A)
        first = xp.asarray(offsets_of(level.count))
        for a, b, (pair, i, j), old in self._entries(level):
            i, j = i + first[a][pair], j + first[b][pair]
            values = self.buffer[old]
            A[i, j] += values
            A[j, i] += xp.where((a != b)[pair], values, 0)

    def _entries(self, level):
        """Some MOST entries that are left at a time: cells a, b of their blocks; pair, row and column of every entry;
        its address."""
        xp, integer = array_module(self.buffer), self.slot.dtype
        count, first = (xp.asarray(part) for part in (level.count, level.first))
        some = xp.flatnonzero((count[self.pairs] > 0).all(axis=0))
        pairs, offset = self.pairs[:, some], self.offset[some].astype(integer)
        ends = offsets_of(count[pairs[0]] * count[pairs[1]])
        for these, entries in _pieces(ends):
            a, b = pairs[:, these]
            wide, entry = count[b].astype(integer), xp.arange(entries, dtype=integer)
            begin = (ends[:-1][these] - ends[these.start]).astype(integer)
            pair = xp.searchsorted(begin, entry, side="right") - 1
            entry -= begin[pair]
            i, j = xp.divmod(entry, wide[pair])
            slot_i, slot_j = (self.slot[first[cell].astype(integer)[pair] + at] for cell, at in ((a, i), (b, j)))
            slot_i *= self.size[b].astype(integer)[pair]
            yield a, b, (pair, i, j), offset[these][pair] + slot_i + slot_j


def _pieces(ends):
    """Runs of blocks of about MOST entries, and how many these are, where blocks end at `ends`, (blocks + 1,)."""
    xp = array_module(ends)
    total = int(ends[-1])
    cuts = xp.searchsorted(ends, xp.arange(0, total + MOST, MOST)).clip(0, len(ends) - 1)
    cuts, counts = to_host(xp.stack([cuts, ends[cuts]]))
    for i in np.flatnonzero(np.diff(cuts)).tolist():
        yield slice(int(cuts[i]), int(cuts[i + 1])), int(counts[i + 1] - counts[i])
