"""One accuracy, all parameters: leaf size, admissibility and order of a small compressed matrix that is soon there.

    interpolation error² + compression error² < (rtol ‖A‖_F)²                       in the shares of `accuracy.Accuracy`

One cluster tree is grown, those of all leaf sizes are cuts of it; of their block trees some rows are traversed, so that
the work beyond the tree hardly grows with the points. Of the plans that memory admits the fastest is chosen, unless it
is too large for that: `costs.best`. One admissibility is sampled, and another where theory promises a better plan.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.batched.device.threads import one_blas_thread
from h2gpu.clustering import Admissibility, ClusterTree, SampledBlocks
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.compression.precision import bytes_expected, check_storage
from h2gpu.h2matrix.compression.weights import STACK_ENTRIES
from h2gpu.h2matrix.nearfield import check_nearfield
from h2gpu.h2matrix.planning.candidates import Family, Plan
from h2gpu.h2matrix.planning.costs import PACES, best
from h2gpu.h2matrix.planning.cuts import Cut, Kinds
from h2gpu.h2matrix.planning.estimation import Sampler
from h2gpu.h2matrix.planning.peak import ROOMS
from h2gpu.memory import free_memory, piece_entries
from h2gpu.progress import phase
from h2gpu.typing import ArrayLike, Split

LEAF_SIZES = (16, 32, 64, 128, 256)
ETAS = (1.0, 1.5, 2.0)
FIRST_ETAS = {"numpy": 1.5, "cupy": 2.0}  # sampled; others where theory promises a better plan, on a GPU hardly ever
USUAL_LEAF_SIZE = 64  # counts the clusters among which the accuracy is shared
ROWS = 64  # that are traversed


def plan(
    points: ArrayLike,
    cov: Covariance,
    rtol: float,
    *,
    leaf_size: int | None = None,
    eta: float | None = None,
    order: int | None = None,
    split: Split = "median",
    col_points: ArrayLike | None = None,
    **kept: Any,
) -> Plan:
    """The parameters that meet rtol against the exact covariance soon, with a small matrix, within the free memory.

    points, cov, col_points   as for `build`
    rtol                      accuracy of the whole, ‖A − exact‖_F ≤ rtol ‖exact‖_F
    leaf_size, eta, order     fixed where given (then rtol is the compression's alone if order is given)
    kept                      storage and nearfield, as for `covariance_matrix`

    Raises ValueError when no order within reach attains rtol.
    Source: Mathematics page, Build: orders found on samples; Börm, Löhndorf & Melenk (2005) for orders by level.

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> chosen = h2gpu.plan(sites, cov, rtol=1e-4)
    >>> chosen.order >= 1 and chosen.leaf_size >= 1
    True
    """
    planner = Planner(Sites.of(points, cov, col_points), rtol, leaf_size=leaf_size, eta=eta, split=split, **kept)
    return replace(planner.plan(order), trees=())


class Planner:
    """Trees and sampled rows of Sites, for an accuracy; arguments as for `plan`.

    grown    (trees of the smallest leaf size, functions from places in tree order to points), where they are there
    memory   bytes that the job may hold at its peak; None: what is free where the points are
    """

    def __init__(
        self,
        sites,
        rtol,
        *,
        leaf_size=None,
        eta=None,
        split="median",
        storage="auto",
        nearfield="stored",
        grown=None,
        memory=None,
    ):
        self.accuracy = Accuracy.of(rtol, sites.interpolable().dtype)
        check_storage(storage)
        check_nearfield(nearfield)
        self.entry_bytes = bytes_expected(self.accuracy.compression, storage)
        self.computed = nearfield == "computed"
        self.rtol, self.split, self.dim, self.dtype = rtol, split, sites.dim, sites.dtype
        self.leaf_sizes = LEAF_SIZES if leaf_size is None else (leaf_size,)
        self.etas = ETAS if eta is None else (Admissibility(eta).eta,)
        self.room, self.pace, self.first_eta = (table[sites.xp.__name__] for table in (ROOMS, PACES, FIRST_ETAS))
        self.stack_entries = piece_entries(sites.xp, STACK_ENTRIES)
        self.memory = free_memory(sites.xp) if memory is None else memory
        self.cov, self.symmetric, self.like, self._blocks = sites.cov, sites.symmetric, sites.points[:0], {}
        self._families, self._cuts = {}, {}
        sides = [sites.points] if sites.symmetric else [sites.points, sites.col_points]
        with phase("cluster"):
            self.trees, self._points = grown or _grown(sides, self.leaf_sizes[0], split)
        self._places = [_spaced(tree.n) for tree in self.trees]
        self.paths = [tree.path(places) for tree, places in zip(self.trees, self._places)]

    def plan(self, order=None):
        """The best candidate, its trees kept.

        order   given, else those of least work that are accurate enough
        """
        found = []
        with phase("plan"), one_blas_thread():
            for eta in sorted(self.etas, key=lambda eta: (eta != self.first_eta, -eta)):
                self._families[eta] = family = Family(self, eta)
                if not found or order is not None or self._promises(family, found):
                    found += family.plans(self.leaf_sizes, order)
        if not found:
            error = float(np.sqrt(family.errors[-1].sum()))
            raise ValueError(
                f"rtol: {self.rtol:g} cannot be reached for this covariance in {self.dim} dimensions and {self.dtype}: "
                f"the best estimated interpolation error is {error:.2g}; ask for less accuracy"
                + (", or a smaller eta" if len(self.etas) == 1 else "")
            )
        return self.best(found)

    def after(self, plan, more, error=None):
        """The plan after one whose matrix missed the accuracy: the same clusters and blocks, larger orders.

        more    by so much on all levels, if not as the error tells
        error   that was found, relative as rtol, or None. What is not compression's is interpolation's: its estimate
                fell short by so much, on all levels alike, and the cheapest orders of what is corrected are taken
        """
        with phase("plan"), one_blas_thread():
            return self._families[plan.eta].corrected(plan, more, error)

    def _promises(self, family, found):
        """Whether a family not yet sampled has a better plan than those found, as far as theory tells."""
        chosen = self.best(found)
        foretold = family.foretold(chosen, self._families[chosen.eta])
        return self.best([chosen, foretold]) is foretold or self.is_small([chosen], foretold)

    def is_small(self, plans, plan):
        """Whether nearly the smallest plans are sought, and this one is smaller than others."""
        return self.gives and plan.bytes_after < min(plan.bytes_after for plan in plans)

    @property
    def gives(self):
        """Whether memory, up to a limit, may be given for time."""
        return self.pace.nearly > 1

    def best(self, plans):
        """The one to choose."""
        return best(plans, self.pace, self.memory)

    def blocks(self, leaf_size, side=0):
        """Sampled rows of the block tree of a leaf size; side 1 are the rows of the transpose."""
        if (leaf_size, side) not in self._blocks:
            least = self.leaf_sizes[0]
            if leaf_size == least:
                trees, places = (self.trees[side], self.trees[self._other(side)]), self._places[side]
                found = SampledBlocks.build(*trees, least, min(self.etas), places, self.cov.kinks)
            else:
                found = self.blocks(least, side).coarser(leaf_size)
            self._blocks[leaf_size, side] = found
        return self._blocks[leaf_size, side]

    def cuts(self, leaf_size):
        """The Cut of each tree at a leaf size."""
        if leaf_size not in self._cuts:
            self._cuts[leaf_size] = [Cut.of(tree, path, leaf_size) for tree, path in zip(self.trees, self.paths)]
        return self._cuts[leaf_size]

    @cached_property
    def kinds(self):
        """The Kinds of the row tree and of the column tree, or None."""
        found = [Kinds.of(tree) for tree in self.trees]
        return found[0], found[-1]

    def samplers(self, eta):
        """What draws from the rows for an admissibility and, of a rectangular matrix, from those of the transpose."""
        return [
            Sampler(
                self.blocks(self.leaf_sizes[0], side),
                eta,
                x,
                self._points[self._other(side)],
                self.cov.pair_function,
                like=self.like,
            )
            for side, x in enumerate(self._points)
        ]

    def _other(self, side):
        """The number of the other side; a symmetric matrix has one only."""
        return 0 if self.symmetric else 1 - side

    @cached_property
    def norm(self):
        """About ‖A‖_F."""
        return float(np.sqrt(self.samplers(min(self.etas))[0].squared_norm))

    @cached_property
    def threshold(self):
        """What a cluster may discard, when all may discard as much."""
        clusters = np.mean([cut.count for cut in self.cuts(USUAL_LEAF_SIZE)])
        return self.accuracy.compression.rtol * self.norm / np.sqrt(2 * clusters)


def _grown(sides, leaf_size, split):
    """Trees of the sides, and the functions from places in tree order to their points."""
    trees = tuple(ClusterTree.build(side, leaf_size, split) for side in sides)
    return trees, [_in_order(to_host(side), tree) for side, tree in zip(sides, trees)]


def _in_order(x, tree):
    """The function from places in tree order to points."""
    return lambda places: x.take(tree.permutation.take(places), axis=0)


def _spaced(n, seed=0):
    """One random place in each of ROWS equal parts of n."""
    rows = min(n, ROWS)
    places = (np.arange(rows) + np.random.default_rng(seed).random(rows)) * (n / rows)
    return np.minimum(places.astype(np.int64), n - 1)
