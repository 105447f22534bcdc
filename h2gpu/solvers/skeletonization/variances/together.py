"""Kriging variances on a GPU: every step of the elimination with all pairs of a cell and a target next to it.

    x = L⁻¹ (k_R − Tᵀ k_S),   σ² −= |x|²,   k_SN −= Y x      of cells b and targets t at distance ≤ 1

On every level a target has the indices of the cells at distance ≤ 2, where those of N(b) are: what is further off has
not been changed, and is the covariance yet when a coarser level asks for it. So the k of a target has some thousand
entries at a time, however many sites there are. The targets of a cell come in tiles of a few columns.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, moved_together, to_host
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, stable_order
from h2gpu.covariance.pairs import pairwise
from h2gpu.memory import free_memory
from h2gpu.solvers.skeletonization.cells import REACH, key_of, number_of
from h2gpu.solvers.skeletonization.triangles import stacked
from h2gpu.solvers.skeletonization.variances.targets import SHIFTS, Cells, chunks_of, covariances

TARGETS = 1 << 14  # of a chunk, at most
ENTRIES = 1 << 25  # of the k of targets that are worked on together, at most
BYTES = 128  # that an entry of it takes there, with its site, its address and what a step works with
STEP_ENTRIES = 1 << 26  # of a step's tiles, rows by columns, or of their matrices Y, at most
TILES = 8, 64  # columns of a tile, at least and at most: powers of two
WHOLE_ENTRIES, WHOLE_BYTES = 1 << 27, 64  # the first two for targets that take all cells
SQUARES = {dim: np.array(list(product(range(-REACH, REACH + 1), repeat=dim))) for dim in (1, 2, 3)}  # by `number_of`


def explained(G, located, pairs, advance):
    """|G⁻¹ k|² of the covariances k of all targets: (m,)."""
    xp, cells = located.xp, Cells.of(G)
    values = xp.empty(len(located.points))
    chunks = chunks_of(cells, to_host(located.points).astype(np.float64), TARGETS)
    levels = _levels(G, cells, located) if any(chunk.inside for chunk in chunks) else []
    for chunk in chunks:
        if not chunk.inside:
            _by_all_cells(G, located, pairs, chunk.targets, values)
        else:
            for part in _parts(G, levels, chunk):
                targets, places = chunk.targets[part], chunk.places[part]
                values[xp.asarray(targets)] = _by_near_cells(G, cells, levels, located, pairs, targets, places)
        advance(len(chunk.targets))
    return values


def _by_all_cells(G, located, pairs, targets, values):
    """The same of some targets by the columns k as they are."""
    xp, everywhere = located.xp, located.xp.arange(G.n)
    most = max(1, int(min(WHOLE_ENTRIES, free_memory(xp) / WHOLE_BYTES)) // (G.n + 1))
    for first in range(0, len(targets), most):
        some = targets[first : first + most]
        k = covariances(located, pairs, some, everywhere, everywhere)
        values[xp.asarray(some)] = (G.solve_half(k[:-1]) ** 2).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Active:
    """The sites whose indices are left when a level begins; arrays are where the work is done.

    depth, shift   the level, and how many levels it is above the finest
    places         (n, dim) int32 cells of all sites
    keys           (active,) keys of the cells of those that are left, ascending
    members        (active,) int32 these sites
    slot           (n + 1,) int32 number of each in its cell; 0 for others
    number         (n + 1,) int32 of each site's cell, `number_of` the place
    """

    depth: int
    shift: int
    places: object
    keys: object
    members: object
    slot: object
    number: object

    @classmethod
    def of(cls, finest, left, depth, shift):
        """From cells (n, dim) of the finest level, and at which level each site is eliminated, (n,)."""
        xp, places = array_module(finest), finest >> shift
        members = xp.flatnonzero(left <= depth)
        keys = key_of(places[members])
        order = xp.argsort(keys, kind="stable")
        members, keys = members[order].astype(np.int32), keys[order]
        slot, number = xp.zeros((2, len(finest) + 1), np.int32)
        slot[members] = xp.arange(len(members)) - xp.searchsorted(keys, keys)
        number[:-1] = number_of(places)
        return cls(depth, shift, places, keys, members, slot, number)

    def blocks(self, places):
        """Where the members of the cells around places (m, dim) begin, and how many they are: (m, 5^dim) each."""
        xp = array_module(places)
        keys = key_of(places[:, None] + xp.asarray(SQUARES[places.shape[1]])).reshape(-1)
        first, stop = (
            xp.searchsorted(self.keys, keys, side=side).reshape(len(places), -1) for side in ("left", "right")
        )
        return first, stop - first


def _levels(G, cells, located):
    """The Active of every level with steps, the finest first."""
    xp = located.xp
    left = xp.zeros(G.n + 1, np.int8)
    for step in G.steps:
        left[step.R] = step.depth
    finest = G.grid.places(located.columns.astype(np.float64), cells.finest).astype(np.int32)
    return [Active.of(finest, left[:-1], depth, cells.finest - depth) for depth in sorted(cells.found, reverse=True)]


def _parts(G, levels, chunk):
    """Slices of a chunk's targets whose k are not too large on any level."""
    most = len(G.top)
    if levels:
        xp = array_module(levels[0].members)
        places = xp.asarray(chunk.places)
        counts = [level.blocks(places >> level.shift) for level in levels]
        most = np.maximum(most, to_host(xp.stack([count.sum(axis=1) for _, count in counts])).max(axis=0))
    ends = np.cumsum(np.broadcast_to(most, len(chunk.targets)))
    room = max(1, int(min(ENTRIES, free_memory(array_module(G.top)) / BYTES)))
    bounds = np.flatnonzero(np.diff(ends // room, prepend=-1))
    return [slice(a, b) for a, b in zip(bounds, np.append(bounds[1:], len(ends)))]


@dataclass(frozen=True, eq=False)
class Near:
    """The k of some targets on a level: that of target t and site i is values[begin[number_i + lead_t] + slot_i].

    active   `Active`
    places   (m, dim) the targets' cells
    values   (1 + entries,), the first of which is zero and stands for padded indices and targets
    begin    (m · 5^dim,) int32: where the values of each cell around each target begin
    lead     (m + 1,) int32; 0 for the padded target
    """

    active: Active
    places: object
    values: object
    begin: object
    lead: object

    def at(self, sites, targets, valid):
        """Where the values of sites and targets, int32 arrays that are broadcast, are; 0 where not `valid`."""
        index = self.active.number[sites] + self.lead[targets]
        index *= valid
        index = self.begin[index]
        index += self.active.slot[sites]
        index *= valid
        return index

    def knows(self, sites, targets):
        """Whether sites lie in the cells around targets; arrays that are broadcast."""
        known = True
        for axis in range(self.places.shape[1]):
            known &= abs(self.active.places[:, axis][sites] - self.places[:, axis][targets]) <= REACH
        return known


def _near(active, places, located, targets, before):
    """The Near of targets, whose cells on the finest level are places (m, dim), where the level begins.

    before   of the finer level, at its end; None for the finest
    """
    xp, m, places = array_module(places), len(places), places >> active.shift
    first, count = active.blocks(places)
    sizes, around = to_host(count.sum(axis=1)), count.shape[1]
    begin = offsets_of(count.reshape(-1))
    entry = xp.arange(int(sizes.sum()), dtype=np.int32)
    block = (xp.searchsorted(begin, entry, side="right") - 1).astype(np.int32)
    sites = active.members[(first.reshape(-1) - begin[:-1])[block] + entry]
    values = xp.zeros(1 + len(entry))
    _put_covariances(located, targets, sites, sizes, values)
    if before is not None:
        owner = block // around
        known = before.knows(sites, owner)
        values[1:] = xp.where(known, before.values[before.at(sites, owner, known)], values[1:])
    lead = xp.zeros(m + 1, np.int32)
    lead[:-1] = around * xp.arange(m) + around // 2 - number_of(places)
    return Near(active, places, values, (1 + begin[:-1]).astype(np.int32), lead)


def _put_covariances(located, targets, sites, sizes, values):
    """values[1:] become the covariances of targets (m,) with sizes[t] sites each, which follow one another."""
    points, columns = (part.astype(np.float64, copy=False) for part in (located.points, located.columns))
    X = MatrixBatch.from_stack(points[targets][:, None])
    begin = offsets_of(sizes)[:-1]
    Y = MatrixBatch.from_rows(columns[sites], begin, sizes)
    pairwise(located.cov.pair_function, X, Y, MatrixBatch(values, 1 + begin, np.ones_like(sizes), sizes))


def _by_near_cells(G, cells, levels, located, pairs, targets, places):
    """|G⁻¹ k|² of targets (m,) in cells (m, dim) of the finest level, on the host: (m,)."""
    xp, m = located.xp, len(targets)
    squares, numbers, there, near = xp.zeros(m + 1), xp.asarray(targets), xp.asarray(places), None
    for active in levels:
        near = _near(active, there, located, numbers, near)
        if active.shift == 0:
            _add_nugget(near, located, pairs, targets)
        _eliminate(G, cells, near, places, squares)
    k = covariances(located, pairs, targets, *_tops(G))[:-1]
    if near is not None:
        sites, everyone = G.top[:, None], xp.arange(m, dtype=np.int32)[None]
        known = near.knows(sites, everyone)
        k = xp.where(known, near.values[near.at(sites, everyone, known)], k)
    x = batched.trsm(G.L[None], k[None])[0]
    return squares[:-1] + (x**2).sum(axis=0)


def _tops(G):
    """Where each site is among the root's, which are some n + 1 for others, and the root's."""
    xp, top = array_module(G.top), G.top
    position = xp.full(G.n + 1, len(top))
    position[top] = xp.arange(len(top))
    return position, top


def _add_nugget(near, located, pairs, targets):
    """What a target shares with a site at one place."""
    xp, order = array_module(near.values), np.argsort(targets)
    own = np.flatnonzero(np.isin(pairs[0], targets))
    if len(own):
        sites, numbers = pairs[1, own], order[np.searchsorted(targets, pairs[0, own], sorter=order)]
        near.values[near.at(xp.asarray(sites), xp.asarray(numbers), True)] += located.cov.nugget


def _eliminate(G, cells, near, places, squares):
    """The steps of a level: values of `near` and squares (m + 1,) are brought up to date."""
    steps, which, targets = _tiles(cells, near.active, places)
    which, targets = moved_together(array_module(squares), which, targets)
    first = 0
    for step, tiles in steps:
        own, step = slice(first, first + tiles), G.steps[step]
        (_, rows, r), columns, first = step.Y.shape, targets.shape[1], own.stop
        together = max(1, STEP_ENTRIES // max(1, (rows + r) * max(columns, r)))
        for i in range(own.start, own.stop, together):
            part = slice(i, min(i + together, own.stop))
            _step(step, near, which[part], targets[part], squares)


def _tiles(cells, active, places):
    """Pairs of a cell and a target next to it: [(step, how many tiles)]; of all tiles which of the step's cells,
    (tiles,) int64, and the targets (tiles, columns) int32, padded by m; on the host."""
    m, dim = places.shape
    keys, numbers = cells.found[active.depth]
    wanted = key_of((places >> active.shift)[:, None] + SHIFTS[dim])
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    target, slot = np.nonzero(keys[at] == wanted)
    cell = numbers[at[target, slot]]
    order = stable_order(cell)
    cell, target = cell[order], target[order]
    lead = np.flatnonzero(np.diff(cell, prepend=-1))
    count = np.diff(np.append(lead, len(cell)))
    least, most = TILES
    columns = int(np.clip(1 << int(np.ceil(np.log2(max(1.0, count.mean() if len(count) else 1)))), least, most))
    tiles = -(-count // columns)
    within, begin = np.arange(len(cell)) - np.repeat(lead, count), offsets_of(tiles)
    padded = np.full((int(begin[-1]), columns), m, np.int32)
    padded[np.repeat(begin[:-1], count) + within // columns, within % columns] = target
    owner = np.repeat(cell[lead], tiles)
    steps, each = np.unique(cells.steps[owner], return_counts=True)
    return list(zip(steps.tolist(), each.tolist())), cells.rows[owner], padded


def _step(step, near, which, targets, squares):
    """One step for tiles (tiles, columns) of targets, each with a cell of number `which` (tiles,)."""
    xp, m, n = array_module(squares), len(squares) - 1, len(near.active.slot) - 1
    sites = xp.concatenate([step.R[which], step.SN[which]], axis=1)
    at = near.at(sites[:, :, None], targets[:, None], (sites < n)[:, :, None] & (targets < m)[:, None])
    (_, s, r), T, L, Y = step.T.shape, *(stacked(A, which) for A in (step.T, step.L, step.Y))
    at_R, at_SN = at[:, :r], at[:, r:]
    k = near.values[at_SN]
    x = batched.gemm(T, k[:, :s], near.values[at_R], -1, 1, transa=True)
    x = batched.trsm(L, x)
    near.values[at_SN] = batched.gemm(Y, x, k, -1, 1)
    x *= x
    squares[targets] += x.sum(axis=1)
