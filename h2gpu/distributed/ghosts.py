"""What a rank needs of others: ghosts, the column clusters of its blocks that it does not own.

    diagonal   t, s both of the rank           off-diagonal   any other block (t, s) of a t with points of the rank

A symmetric matrix's off-diagonal blocks are kept by the owners of t and of s, so that only x̂ travels. Both know of
them, so that each works out what it sends and receives without asking. Cf. Zampini et al. (2022), section 3.2.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from h2gpu import batched
from h2gpu.arrays import moved_together, to_host
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.batched.device.plans import planned
from h2gpu.distributed.partition import by_rank, distinct


@dataclass(frozen=True, eq=False)
class Share:
    """A rank's part of the far or near blocks.

    diagonal   (blocks,) which of the blocks given are diagonal ones of the rank
    off        (blocks,) which are off-diagonal ones, sorted by (ghost, row); a block may be there twice
    turned     (blocks,) whether the rank keeps the transpose
    rows       (blocks,) row clusters of off-diagonal blocks, as kept, in the partition's tree
    columns    (blocks,) their ghosts, numbers in `ghosts`
    ghosts     (ghosts,) clusters of the column partition's tree, ascending
    sends      {rank: clusters}, of which this rank has points and the other blocks; itself among them
    receives   {rank: numbers of ghosts}, in the same order
    above      clusters above the cut that are ghosts of any rank, ascending: the same on all ranks
    """

    diagonal: np.ndarray
    off: np.ndarray
    turned: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    ghosts: np.ndarray
    sends: dict
    receives: dict
    above: np.ndarray

    @classmethod
    def of(cls, pairs, symmetric, row_partition, col_partition, rank, once=False):
        """Of blocks (2, blocks) between clusters of two partitioned trees, all of them or those of the rank.

        once   each of a symmetric matrix with one of its owners, by turns, a cluster above the cut as the ghost
        """
        t, s = pairs
        rows, columns = row_partition.homes.take(t), col_partition.homes.take(s)
        diagonal = np.flatnonzero((rows == rank) & (columns == rank))
        off = np.flatnonzero((rows != columns) | (rows < 0))
        turned = np.zeros(len(off), bool)
        t, s = t[off], s[off]
        if symmetric and once:
            turns = (row_partition.numbers[t] + row_partition.numbers[s]) % 2 == 1
            turned = np.where(row_partition.above[t] == row_partition.above[s], turns, row_partition.above[t])
            t, s = np.where(turned, s, t), np.where(turned, t, s)
        elif symmetric:
            both = t != s
            off, turned = np.append(off, off[both]), np.append(turned, np.ones(int(both.sum()), bool))
            t, s = np.append(t, s[both]), np.append(s, t[both])
        spans = (row_partition.first[t], row_partition.last[t]), (col_partition.first[s], col_partition.last[s])
        mine, theirs = ((first <= rank) & (rank <= last) for first, last in spans)
        ghosts = distinct(s[mine])
        sends = by_rank(s[theirs], *(side[theirs] for side in spans[0]))
        from_ranks = by_rank(ghosts, col_partition.first[ghosts], col_partition.last[ghosts])
        receives = {q: np.searchsorted(ghosts, clusters) for q, clusters in from_ranks.items()}
        order = np.flatnonzero(mine)
        order = order[np.argsort(s[order] << 32 | t[order], kind="stable")]
        columns, above = np.searchsorted(ghosts, s[order]), distinct(s[col_partition.above[s]])
        return cls(diagonal, off[order], turned[order], t[order], columns, ghosts, sends, receives, above)

    def agreed(self, comm, partition):
        """The same with what is above of all ranks, where each knows its own blocks; partition: of the columns."""
        parts = comm.gather(partition.numbers[self.above], "ghosts above the cut")
        return replace(self, above=np.searchsorted(partition.numbers, np.unique(np.concatenate(parts))))

    def peers(self):
        """Other ranks' clusters below the cut: (sends, receives) without those above."""
        sends = {q: clusters[~np.isin(clusters, self.above)] for q, clusters in self.sends.items()}
        numbers = np.flatnonzero(np.isin(self.ghosts, self.above))
        receives = {q: g[~np.isin(g, numbers)] for q, g in self.receives.items()}
        return ({q: i for q, i in part.items() if len(i)} for part in (sends, receives))


@dataclass(frozen=True, eq=False)
class Halo:
    """Rows of vectors that travel: of clusters of one side to ghosts of the others.

    size      rows of the vector of all ghosts
    sends     {rank: rows of the local vector}
    receives  {rank: rows of the ghosts' vector}, each at most once
    starts    (ghosts + 1,) where each ghost's rows begin
    above     rows of the clusters above the cut, of which every rank has a part: those of the local vector; which of
              them are this rank's ghosts; and rows of the ghosts' vector. None where there are no such ghosts

    What is above travels by a sum over the ranks, whose time grows with log P: messages between all pairs would be P
    for each rank, 1023 of 1024 at 2²² sites.
    """

    size: int
    sends: dict
    receives: dict
    starts: np.ndarray
    above: tuple | None = None

    @classmethod
    def of(cls, share, numbers, starts, sizes, ghost_sizes):
        """Of the clusters' rows starts[i] … + sizes[i] of a local vector; numbers: whole tree → i."""
        first = offsets_of(ghost_sizes)
        sends, receives = share.peers()
        sends = {q: numbers(clusters) for q, clusters in sends.items()}
        sends = {q: ranges(starts[i], sizes[i]) for q, i in sends.items()}
        receives = {q: ranges(first[g], ghost_sizes[g]) for q, g in receives.items()}
        above = None
        if len(share.above):
            i, g = numbers(share.above), np.flatnonzero(np.isin(share.ghosts, share.above))
            chosen = np.searchsorted(share.above, share.ghosts[g])
            chosen = ranges(offsets_of(sizes[i])[chosen], ghost_sizes[g])
            above = ranges(starts[i], sizes[i]), chosen, ranges(first[g], ghost_sizes[g])
        return cls(int(first[-1]), sends, receives, first, above)

    def on(self, xp):
        """The same with its rows in the memory of the array module xp."""
        there = iter(moved_together(xp, *self.sends.values(), *self.receives.values(), *(self.above or ())))
        sends, receives = (dict(zip(part, there)) for part in (self.sends, self.receives))
        return Halo(self.size, sends, receives, self.starts, self.above and tuple(there))


def with_ghosts(batch, ghosts):
    """A MatrixBatch of the local clusters' matrices, then the ghosts'."""
    return batched.join([batch, ghosts]) if len(ghosts) else batch


@dataclass(frozen=True, eq=False)
class Route:
    """How rows of several halos' vectors travel to ghosts: one gather packs all, and one a halo unpacks them.

    pack       rows of the vectors, one below the other, that are sent, rank by rank, and then those that are summed
    sends      {rank: slice of the packed rows}, itself among them        sums   slices of them that are summed
    receives   {rank: slice of the rows that arrive}
    arrivals   for each halo rows of what arrives, then of the rank's own packed rows, then of the sums
    others     halos but the first, which keeps this
    """

    pack: np.ndarray
    sends: dict
    sums: list
    receives: dict
    arrivals: list
    others: tuple

    @classmethod
    def of(cls, xp, rank, halos, heights):
        """Of halos, and rows of their vectors."""
        none, first = np.zeros(0, np.int64), offsets_of(np.array(heights))
        sides = [[{q: to_host(i) for q, i in side.items()} for side in (h.sends, h.receives)] for h in halos]
        to, of = (sorted({q for side in sides for q in side[k]}) for k in (0, 1))
        sent = {q: np.concatenate([f + side[0].get(q, none) for f, side in zip(first, sides)]) for q in to}
        above = [f + to_host(h.above[0]) for f, h in zip(first, halos) if h.above]
        slices = slices_behind([*sent.values(), *above])
        sends, sums = dict(zip(sent, slices)), slices[len(sent) :]
        arrivals, place = [np.full(h.size, -1) for h in halos], 0
        receives = {}
        for q in [*(q for q in of if q != rank), *(q for q in of if q == rank)]:
            begin = place
            for rows, side in zip(arrivals, sides):
                i = side[1].get(q, none)
                rows[i] = np.arange(place, place + len(i))
                place += len(i)
            if q != rank:
                receives[q] = slice(begin, place)
        for rows, h in zip(arrivals, halos):
            if h.above:
                local, chosen, ghosts = map(to_host, h.above)
                rows[ghosts] = place + chosen
                place += len(local)
        if any((rows < 0).any() for rows in arrivals):
            raise ValueError("expected each ghost from another rank or above the cut")
        pack, *arrivals = moved_together(xp, np.concatenate([*sent.values(), *above, none]), *arrivals)
        return cls(pack, sends, sums, receives, arrivals, tuple(halos[1:]))


def slices_behind(parts):
    """Slices of arrays that stand behind one another."""
    first = offsets_of(np.array([len(part) for part in parts], np.int64))
    return [slice(int(i), int(j)) for i, j in pairwise(first)]


def travel(comm, halos, vectors, name):
    """Begin one exchange for several halos; returns a function that ends it and gives their ghosts' vectors.

    vectors   (rows, count) of each halo, local ones, whose rows go to ghosts
    """
    xp, count, heights = comm.xp, vectors[0].shape[1], tuple([len(v) for v in vectors])
    key = comm.rank, heights, *map(id, halos[1:])
    route = planned(halos[0], key, lambda: Route.of(xp, comm.rank, halos, heights))
    packed = (vectors[0] if len(vectors) == 1 else xp.concatenate(vectors))[route.pack]
    received = xp.empty((max((s.stop for s in route.receives.values()), default=0), count), packed.dtype)
    sends = {q: packed[s].reshape(-1) for q, s in route.sends.items() if q != comm.rank}
    end = comm.start(sends, {q: received[s].reshape(-1) for q, s in route.receives.items()}, name)
    sums = [comm.start_sum(packed[s], f"{name}, above the cut") for s in route.sums]

    def arrived():
        end()
        own = packed[route.sends.get(comm.rank, slice(0, 0))]
        parts = [part for part in (received, own, *(total() for total in sums)) if len(part)]
        found = parts[0] if len(parts) == 1 else xp.concatenate([received[:0], *parts])
        return [found[rows] for rows in route.arrivals]

    return arrived


def travel_back(comm, halos, vectors, name):
    """The same of ghosts' vectors, whose rows go back to local ones; of rows from several ranks the sum is taken.

    Returns a function of the rows of the local vectors.
    """
    xp, count, dtype = comm.xp, vectors[0].shape[1], vectors[0].dtype
    peers = [sorted({q for halo in halos for q in getattr(halo, side)}) for side in ("receives", "sends")]
    none = xp.zeros(0, np.int64)

    def packed(q):
        return xp.concatenate([v[halo.receives.get(q, none)] for halo, v in zip(halos, vectors)]).ravel()

    sends = {q: packed(q) for q in peers[0]}
    rows = {q: [halo.sends.get(q, none) for halo in halos] for q in peers[1]}
    buffers = {q: xp.empty(sum(map(len, parts)) * count, dtype) for q, parts in rows.items() if q != comm.rank}
    own = sends.pop(comm.rank, None)
    end = comm.start(sends, buffers, name)
    if own is not None:
        buffers[comm.rank] = own
    summed = [_above(comm, halo, v, name) for halo, v in zip(halos, vectors)]

    def arrived(sizes):
        end()
        found = [xp.zeros((size, count), dtype) for size in sizes]
        for q in sorted(buffers):
            values, first = buffers[q].reshape(-1, count), 0
            for v, i in zip(found, rows[q]):
                v[i] += values[first : first + len(i)]
                first += len(i)
        for v, total in zip(found, summed):
            i, values = total()
            v[i] += values
        return found

    return arrived


def _above(comm, halo, v, name):
    """Begin the sum over the ranks of the ghosts above the cut; returns a function that gives local rows and values."""
    if halo.above is None:
        return lambda: (slice(0, 0), 0)
    local, chosen, ghosts = halo.above
    part = comm.xp.zeros((len(local), v.shape[1]), v.dtype)
    part[chosen] = v[ghosts]
    total = comm.start_sum(part, f"{name}, above the cut")
    return lambda: (local, total())
