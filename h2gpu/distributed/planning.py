"""The plan of points by ranks: rank 0 plans with the clusters of all; who has a point that it draws sends it.

    rank 0:  trees of all ranks' clusters → Planner → places of a few points …       others:  points at those places

The plan is that of `h2matrix.planning`, to the last bit: trees, sampled rows and points are the same.
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from h2gpu.distributed.gathering import whole_tree
from h2gpu.distributed.trees.shares import shared
from h2gpu.h2matrix.assembly import MORE_POINTS, plans
from h2gpu.memory import free_memory

NAME = "points that a plan draws"


def planned(comm, sites, points, rtol, *, finest, **fixed):
    """As `plans`, without trees, of Sites of which each host has a share.

    points   [Sorted of the rows, of the columns] down to leaves of `finest` points, one of a symmetric matrix
    """
    for attempt in range(1 + len(MORE_POINTS)):
        yield comm.gather(_plan(comm, sites, points, rtol, finest, attempt, fixed), "plan")[0]


def _plan(comm, sites, points, rtol, finest, attempt, fixed):
    """The plan of an attempt on rank 0, which lets go of its trees; None on others."""
    memory = sum(comm.gather(free_memory(sites.xp), "memory"))
    shares = [shared(comm, side, finest) for side in points]
    trees = tuple(whole_tree(comm, share.partition, numbered=False) for share in shares)
    if comm.rank:
        return _answer(comm, shares)
    grown = trees, [_asking(comm, shares, side) for side in range(len(shares))]
    chosen = next(islice(plans(sites, rtol, grown=grown, memory=memory, **fixed), attempt, None))
    comm.gather(None, NAME)
    return replace(chosen, trees=())


def _asking(comm, shares, side):
    """The function of rank 0 from places in tree order to points."""
    bounds = shares[side].bounds

    def at(places):
        places = np.asarray(places)
        flat = places.ravel()
        comm.gather((side, flat), NAME)
        found = np.empty((len(flat), shares[side].x.shape[1]), shares[side].x.dtype)
        for rank, rows in enumerate(comm.gather(_own(shares[side], flat), NAME)):
            found[(bounds[rank] <= flat) & (flat < bounds[rank + 1])] = rows
        return found.reshape(*places.shape, found.shape[1])

    return at


def _answer(comm, shares):
    """What other ranks do until there is a plan."""
    while (request := comm.gather(None, NAME)[0]) is not None:
        side, places = request
        comm.gather(_own(shares[side], places), NAME)


def _own(share, places):
    """Those of the points at some places that the rank has."""
    begin, end = share.bounds[share.rank], share.bounds[share.rank + 1]
    return share.x[places[(begin <= places) & (places < end)] - begin]
