"""The top of a tree over points that lie with many ranks: clusters are halved where their points are.

    left half  =  the k smallest by (coordinate, rank, place),   the k-th found digit by digit from sums over the ranks

No point moves, and none is sorted; points are told apart where they are, counts are summed on the host. The halves are
those of `clustering.splitting`, to the last bit. A median by the digits of numbers: radix selection; Alabi et al.
(2012), Fast k-selection algorithms for graphics processing units.
"""

from typing import NamedTuple

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.clustering.splitting import median

DIGIT = 8  # bits that are settled in one sum over the ranks
NAME = "halves of clusters"


class Top(NamedTuple):
    """A cluster of the top, the same on all ranks.

    level, place   of the place-th cluster of a level from the left, if all clusters above had children
    start, size    its range of points
    above          points of its parent
    """

    level: int
    place: int
    start: int
    size: int
    above: int


def halved(comm, x, leaf_size, halve, depth):
    """Clusters of the levels before `depth` that are split, and the roots of what is below; a call of all ranks.

    x   (own, dim) this rank's share of the points, on the host or its GPU
    Returns [(Top, lower corner, upper corner)], and [(Top, this rank's points of it, ascending)] from the left; corners
    are on the host, points where x is.
    """
    n = int(comm.sum(np.array([len(x)]), NAME)[0])
    clusters, members, split, roots = [Top(0, 0, 0, n, n)], [array_module(x).arange(len(x))], [], []
    for level in range(depth):
        large = [cluster.size > leaf_size for cluster in clusters]
        roots += [pair for pair, goes in zip(zip(clusters, members), large) if not goes]
        clusters, members = ([a for a, goes in zip(part, large) if goes] for part in (clusters, members))
        if not clusters:
            break
        lower, upper = _corners(comm, [x[i] for i in members], x)
        split += zip(clusters, lower, upper)
        sizes = np.array([cluster.size for cluster in clusters])
        counts, left = _halves(comm, x, members, sizes, upper - lower, halve)
        members = [i[side] for i, mask in zip(members, left) for side in (mask, ~mask)]
        clusters = [child for pair in zip(clusters, counts) for child in _children(level, *pair)]
    roots += zip(clusters, members)
    return split, sorted(roots, key=lambda root: root[0].place << (depth - root[0].level))


def _children(level, cluster, left):
    sizes = int(left), cluster.size - int(left)
    starts = cluster.start, cluster.start + sizes[0]
    return [Top(level + 1, 2 * cluster.place + i, starts[i], sizes[i], cluster.size) for i in (0, 1)]


def _corners(comm, parts, like):
    """Lower and upper corners (clusters, dim) of points of all ranks: of equals the first and the last."""
    axes, size = array_module(like).arange(like.shape[1]), (len(parts), like.shape[1])
    lower, upper = np.full(size, np.inf, like.dtype), np.full(size, -np.inf, like.dtype)
    for i, x in enumerate(parts):
        if len(x):
            ends = x.argmin(0), len(x) - 1 - x[::-1].argmax(0)
            lower[i], upper[i] = (to_host(x[end, axes]) for end in ends)
    lowers, uppers = (np.stack(side) for side in zip(*comm.gather((lower, upper), NAME)))
    last = len(uppers) - 1 - uppers[::-1].argmax(0)
    return (np.take_along_axis(side, i[None], 0)[0] for side, i in ((lowers, lowers.argmin(0)), (uppers, last)))


def _halves(comm, x, members, sizes, sides, halve):
    """How many points of each cluster go left, (clusters,), and which of this rank's, a list of masks."""
    along = [x[i, axis] for i, axis in zip(members, sides.argmax(axis=1))]
    counts = median(None, sizes)
    if halve is not median:  # which may ask for all coordinates, in order
        for c in np.flatnonzero(sides.max(axis=1) > 0):
            every = np.sort(np.concatenate(comm.gather(to_host(along[c]), NAME)))
            counts[c] = halve(every, sizes[c : c + 1])[0]
    xp, own = array_module(x), [len(part) for part in along]
    owner = xp.repeat(xp.arange(len(along)), own)
    left = smallest(comm, _keys(xp.concatenate(along)), owner, counts)
    return counts, xp.split(left, offsets_of(own)[1:-1].tolist())


def _keys(x):
    """Integers in the order of the numbers; both zeros have one."""
    bits = (x.astype(np.float64) + 0.0).view(np.uint64)
    return array_module(x).where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))


def smallest(comm, keys, owner, counts):
    """Which keys (own,) are among the counts[c] ≥ 1 smallest of their cluster, of all ranks; equals in order of ranks.

    owner    (own,) their clusters, ascending, where the keys are
    counts   on the host
    """
    xp, clusters, left = array_module(keys), np.arange(len(counts)), counts.astype(np.int64)
    value, alike = np.zeros(len(counts), np.uint64), xp.arange(len(keys))
    for shift in range(64 - DIGIT, -1, -DIGIT):
        own = owner[alike]
        digits = (keys[alike] >> np.uint64(shift)).astype(np.int64) & (2**DIGIT - 1)
        bins = to_host(xp.bincount(own << DIGIT | digits, minlength=len(counts) << DIGIT))
        ends = np.cumsum(comm.sum(bins, NAME).reshape(len(counts), -1), axis=1)
        digit = (ends < left[:, None]).sum(axis=1)
        left -= np.where(digit > 0, ends[clusters, digit - 1], 0)
        value |= digit.astype(np.uint64) << np.uint64(shift)
        alike = alike[digits == xp.asarray(digit)[own]]
    own = owner[alike]
    equal = to_host(xp.bincount(own, minlength=len(counts)))
    left -= sum(comm.gather(equal, NAME)[: comm.rank], start=np.zeros_like(equal))
    chosen = keys < xp.asarray(value)[owner]
    among = xp.arange(len(alike)) - xp.asarray(offsets_of(equal))[own]
    chosen[alike[among < xp.asarray(left)[own]]] = True
    return chosen
