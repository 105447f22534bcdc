"""Rows of arrays between ranks, where only the sender knows how many; and rows that others have, by their places.

As MPI's alltoallv, but between those alone that have something to say.
"""

from typing import NamedTuple

import numpy as np

from h2gpu.batched.core.offsets import ranges


class Clusters(NamedTuple):
    """Some clusters of a tree that no rank has whole, ascending by number: arrays of as many rows.

    number        in the level order of the whole tree
    start, size   ranges of points
    first_child   its number; −1 for a leaf
    lower, upper  (clusters, dim) corners of the tight boxes
    """

    number: np.ndarray
    start: np.ndarray
    size: np.ndarray
    first_child: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def find(self, numbers):
        """Where clusters of the given numbers are."""
        return np.searchsorted(self.number, numbers)


def taken(rows, index):
    """Some rows of a tuple of arrays."""
    return type(rows)(*(array[index] for array in rows))


def joined(parts):
    """The rows of several tuples of arrays, one after the other."""
    return type(parts[0])(*(np.concatenate(some) for some in zip(*parts)))


def merged(*parts):
    """The Clusters of several, each once."""
    every = joined(parts)
    return taken(every, np.unique(every.number, return_index=True)[1])


def swapped(comm, parts, like, name):
    """{rank: the arrays that it sends here}, ascending by rank, of {rank: arrays to send it}; a call of all ranks.

    parts   tuples of arrays of as many rows; this rank's own stay
    like    a tuple of arrays of the same types and widths
    """
    counts = comm.gather({q: len(arrays[0]) for q, arrays in parts.items() if len(arrays[0])}, f"sizes of {name}")
    sizes = {q: count[comm.rank] for q, count in enumerate(counts) if comm.rank in count}
    others = {q: tuple(np.empty((rows, *a.shape[1:]), a.dtype) for a in like) for q, rows in sizes.items()}
    others.pop(comm.rank, None)
    for i in range(len(like)):
        sends = {q: np.ascontiguousarray(arrays[i]).ravel() for q, arrays in parts.items() if q != comm.rank}
        comm.start(sends, {q: arrays[i].reshape(-1) for q, arrays in others.items()}, name)()
    return {q: parts[q] if q == comm.rank else others[q] for q in sizes}


def fetched(comm, bounds, x, starts, counts, name):
    """Rows starts[b] … + counts[b] of a (n, …) array, of which each rank has those from bounds[rank] on.

    A call of all ranks. Where they are a run of its own, as of all its leaves, they are a view of x, and no row is
    numbered.
    """
    begin, end, some = bounds[comm.rank], bounds[comm.rank + 1], np.zeros(0, np.int64)
    run = _own_run(starts, counts, begin, end)
    places = some if run else ranges(starts, counts)
    away = np.flatnonzero((places < begin) | (places >= end))  # few: those of others
    owners = np.searchsorted(bounds, places[away], side="right") - 1
    asked = {q: (places[away[owners == q]],) for q in np.flatnonzero(np.bincount(owners)).tolist()}
    answers = {q: (x[i - begin],) for q, (i,) in swapped(comm, asked, (some,), name).items()}
    if run:
        found = x[run]
    elif len(x):
        found = x[np.clip(places - begin, 0, len(x) - 1)]
    else:
        found = np.empty((len(places), *x.shape[1:]), x.dtype)
    for q, (rows,) in swapped(comm, answers, (x[:0],), name).items():
        found[away[owners == q]] = rows
    return found


def _own_run(starts, counts, begin, end):
    """The slice of a rank's rows that ranges are, one behind the other; None where they are not."""
    if not len(starts) or starts[0] < begin or (starts[1:] != (starts + counts)[:-1]).any():
        return None
    stop = starts[-1] + counts[-1]
    return slice(starts[0] - begin, stop - begin) if starts[0] < stop <= end else None
