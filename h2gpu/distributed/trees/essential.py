"""The clusters that one rank knows of, as a tree: a locally essential tree, numbered without gaps.

    own subtrees  +  clusters above the cut and their children  +  what the rank's blocks meet of others

The order is that of the whole tree, so that whatever is sorted by cluster is sorted alike everywhere. After the trees
of that name of Warren & Salmon (1992), Astrophysical N-body simulations using hierarchical tree data structures.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.clustering import ClusterTree
from h2gpu.clustering.boxes import Boxes


@dataclass(frozen=True, eq=False)
class EssentialTree(ClusterTree):
    """As ClusterTree, of some clusters of a tree; a cluster whose children nobody needs has none.

    permutation     (own,) the caller's numbers of the rank's own points, in tree order
    start, stop     ranges in the order of all points
    numbers         (clusters,) in the whole tree, ascending
    whole_offsets   (levels + 1,) level offsets of the whole tree
    bounds          (ranks + 1,) positions in tree order where shares begin
    rank            whose
    """

    numbers: np.ndarray
    whole_offsets: np.ndarray
    bounds: np.ndarray
    rank: int

    @property
    def n(self):
        """Number of points of all ranks."""
        return int(self.bounds[-1])

    @property
    def begin(self):
        """Where the rank's points begin in tree order."""
        return int(self.bounds[self.rank])

    @classmethod
    def of(cls, clusters, whole_offsets, permutation, bounds, rank):
        """Of Clusters, all their parents and siblings among them."""
        number, child = clusters.number, clusters.find(clusters.first_child)
        known = (clusters.first_child >= 0) & (child < len(number))
        known[known] = number[child[known]] == clusters.first_child[known]
        child, parent = np.where(known, child, -1), np.full(len(number), -1)
        for i in (0, 1):
            parent[child[known] + i] = np.flatnonzero(known)
        boxes, offsets = Boxes(clusters.lower, clusters.upper), np.searchsorted(number, whole_offsets)
        ranges = clusters.start, clusters.start + clusters.size
        return cls(permutation, *ranges, parent, child, boxes, offsets, number, whole_offsets, bounds, rank)
