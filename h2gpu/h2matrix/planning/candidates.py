"""The plans of one admissibility: the cheapest sufficient orders, and the bytes and work of each leaf size.

    stored = Σ_near |t| |s| + Σ_far k_t k_s + Σ_leaves |t| k_t + Σ_t k_t k_parent

k = min(points, order^dim) before compression, the order by level; after it, the ranks of sampled clusters. Sums over
clusters and blocks are those of sampled rows, scaled.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.h2matrix.interpolation import largest_ranks
from h2gpu.h2matrix.planning.cuts import Links
from h2gpu.h2matrix.planning.orders import LEAST_ORDER, cheapest_orders, sampled_orders
from h2gpu.h2matrix.planning.peak import ONE_SIDE, Held
from h2gpu.h2matrix.rows import together
from h2gpu.memory import readable

FIRST_LEAF_SIZE = 64  # tried


@dataclass(frozen=True)
class Plan:
    """Parameters of a build and what they will give.

    leaf_size, eta, order, split   as for `build`; order is the largest of
    orders                         interpolation orders by level of the tree, from the root on
    rtol                           the compression's share of the accuracy
    interpolation_error            estimated ‖interpolated − exact‖_F / ‖exact‖_F
    bytes_before                   of the uncompressed matrix, were it stored
    bytes_after                    of the compressed matrix, estimated
    bytes_peak                     of the whole job, estimated
    seconds                        of the whole job, roughly: what makes one plan better than another
    trees                          row and column trees of the points, to be cut at the leaf size; empty if not kept
    """

    leaf_size: int
    eta: float
    order: int
    split: str
    rtol: float
    interpolation_error: float
    bytes_before: int
    bytes_after: int
    bytes_peak: int
    orders: tuple[int, ...]
    seconds: float = field(default=0.0, compare=False)
    trees: tuple = field(default=(), repr=False, compare=False)

    def __str__(self):
        order = f"{self.order}" if min(self.orders) == self.order else f"{min(self.orders)} to {self.order}"
        return (
            f"leaf size {self.leaf_size}, eta {self.eta:g}, order {order}, {self.split} split: "
            f"about {readable(self.bytes_after)}, at the peak {readable(self.bytes_peak)}"
        )


class Family:
    """The candidates of one admissibility: one set of samples, any leaf size."""

    def __init__(self, planner, eta):
        self.planner, self.eta, self.samplers = planner, eta, planner.samplers(eta)
        self._errors, self._farfields = {}, {}

    def squared_errors(self, order):
        """Estimated relative squared errors of interpolation by level of the deeper tree, sampled once an order."""
        if order not in self._errors:
            sides = [sampler.squared_interpolation_errors(order) for sampler in self.samplers]
            square = np.zeros(max(map(len, sides)))
            for side in sides:
                square[: len(side)] += side
            norm = max(self.planner.norm, np.finfo(float).tiny)
            self._errors[order] = (np.sqrt(square * (2 if self.planner.symmetric else 1)) / norm) ** 2
        return self._errors[order]

    @cached_property
    def errors(self):
        """(orders, levels) squared errors of the orders that may be chosen."""
        return self.errors_within(self.planner.accuracy.interpolation)

    def errors_within(self, wanted):
        """The same for another accuracy of interpolation."""
        return sampled_orders(self.squared_errors, wanted, self.planner.dim)

    def plans(self, leaf_sizes, order):
        """Plans from the usual leaf size down as long as they get better, or smaller where that counts most.

        Larger leaves are tried where smaller ones are worse, as long as they take less memory; and where memory may be
        given for time, as long as they get better.

        order   fixed, or None
        """
        for sampler in self.samplers:
            sampler.begin()
        middle = leaf_sizes.index(FIRST_LEAF_SIZE) if FIRST_LEAF_SIZE in leaf_sizes else 0
        found = self._candidate(leaf_sizes[middle], order)
        for size in leaf_sizes[:middle][::-1] if found else ():
            found += self._candidate(size, order)
            if not self._goes_on(found):
                break
        up = bool(found) and (self.planner.gives or min(found, key=lambda plan: plan.bytes_after) is found[0])
        for size in leaf_sizes[middle + 1 :] if up else ():
            found += self._candidate(size, order)
            better = self.planner.gives and self.planner.best(found) is found[-1]
            if found[-1].bytes_after > found[0].bytes_after and not better:
                break
        return found

    def _goes_on(self, found):
        """Whether the last of several plans is best, or small where such are sought, or memory admits none."""
        (*before, last), planner = found, self.planner
        better = planner.best(found) is last or planner.is_small(before, last)
        return better or min(plan.bytes_peak for plan in found) > planner.memory

    def foretold(self, plan, family):
        """A plan of this admissibility from one of another family: orders by theory, ranks as there, nothing sampled.

        Polynomials on [−1, 1] meet a pole at z = 1 + 2 √dim / η with an error like ρ^−order, ρ = z + √(z² − 1).
        """
        rate, other = (np.arccosh(1 + 2 * self.planner.dim**0.5 / eta) for eta in (self.eta, plan.eta))
        orders = np.rint(np.array(plan.orders) * (other / rate)).astype(np.int64)
        links, levels = self._links(plan.leaf_size)
        return self._planned(plan.leaf_size, orders[:levels], 0.0, links, family.kept_by_level)

    def corrected(self, plan, more, error):
        """See Planner.after."""
        links, levels = self._links(plan.leaf_size)
        given, orders = np.array(plan.orders), None
        if error is not None:
            found = np.sqrt(max(error**2 - plan.rtol**2, 0.0))
            orders = self._cheapest(links, levels, max(1.0, found / plan.interpolation_error))
        higher = given if orders is None else np.maximum(given, orders)
        higher = higher if (higher > given).any() else given + more
        return self._candidate(plan.leaf_size, tuple(higher.tolist()))[0]

    def _links(self, leaf_size):
        """The farfield of a leaf size, and the levels of its trees."""
        if leaf_size not in self._farfields:
            blocks = self.planner.blocks(leaf_size)
            far, trees = blocks.far(self.eta), (blocks.row_tree, blocks.col_tree)
            t, s = blocks.t.take(far), blocks.s.take(far)
            share = blocks.numbers(t) * (0.5 if self.planner.symmetric else 1)
            self._farfields[leaf_size] = Links.of(*trees, t, s, share, self.planner.kinds)
        return self._farfields[leaf_size], max(cut.levels for cut in self.planner.cuts(leaf_size))

    def _candidate(self, leaf_size, fixed):
        """[the Plan] of a leaf size; empty where no orders are accurate enough."""
        links, levels = self._links(leaf_size)
        orders = fixed or self._cheapest(links, levels)
        if orders is None:
            return []
        orders = np.broadcast_to(orders, levels)
        error = np.sqrt(sum(self.squared_errors(int(p))[:levels][orders == p].sum() for p in np.unique(orders)))
        return [self._planned(leaf_size, orders, float(error), links, self.kept_by_level)]

    def _cheapest(self, links, levels, short=1.0):
        """The cheapest sufficient orders; one for all without a farfield. Estimates fall `short` so much."""
        if not len(links.share):
            return 1
        wanted = self.planner.accuracy.interpolation / short
        errors = self.errors if short == 1 else self.errors_within(wanted)
        work = links.work((LEAST_ORDER + np.arange(len(errors))) ** self.planner.dim, levels)
        return cheapest_orders(errors[:, :levels], work, wanted)

    def _planned(self, leaf_size, orders, error, links, kept_by_level):
        """The Plan of orders (levels,), and of ranks after compression by level for each side."""
        planner, points = self.planner, max(tree.n for tree in self.planner.trees)
        most, (blocks, dense) = largest_ranks(orders, planner.dim, points), self._nearfield(leaf_size)
        cuts, itemsize = planner.cuts(leaf_size), planner.dtype.itemsize
        (couplings, multiplications), after = links.whole(most), links.entries(kept_by_level[0], kept_by_level[-1])
        leaves, transfers = _basis_entries(cuts, [most] * len(cuts))
        before = (dense + couplings + leaves + transfers) * itemsize
        near_bytes = self._coordinates if planner.computed else dense * planner.entry_bytes
        kept_leaves, kept_transfers = _basis_entries(cuts, kept_by_level)
        smaller = near_bytes + (after + kept_leaves) * planner.entry_bytes + kept_transfers * itemsize
        number = float(links.share.sum()) + blocks
        entries = {"transfers": transfers, "couplings": couplings, "projected": after + kept_leaves}
        entries["near"] = min(dense, planner.stack_entries) if planner.computed else dense  # at a time
        side = (dense / max(1, blocks)) ** 0.5
        held = self._held(links, cuts, most, kept_by_level, entries, result=smaller, side=side, blocks=number)
        sizes = [int(size) for size in (before, smaller, planner.room.peak(held, planner.stack_entries * itemsize))]
        rtol = planner.accuracy.compression.rtol
        has = len(orders), sum(cut.count for cut in cuts), number, multiplications, smaller
        orders, seconds = tuple(orders.tolist()), float(planner.pace.seconds(*has))
        return Plan(
            leaf_size, self.eta, max(orders), planner.split, rtol, error, *sizes, orders, seconds, planner.trees
        )

    @cached_property
    def _coordinates(self):
        """Bytes of all points."""
        return sum(tree.n for tree in self.planner.trees) * self.planner.dim * self.planner.dtype.itemsize

    def _held(self, links, cuts, most, kept_by_level, entries, **others):
        """What a job holds, for ranks by level before and after compression.

        entries, others   what is known of it: numbers of entries, and what is counted in other units
        """
        planner, points = self.planner, max(tree.n for tree in self.planner.trees)
        rows, itemsize = together(points, array_module(planner.like)), planner.dtype.itemsize
        found = [cut.held_entries(most, kept) for cut, kept in zip(cuts, kept_by_level)]
        for name in found[0]:  # sides are weighed one after the other
            entries[name] = (max if name in ONE_SIDE else sum)(side[name] for side in found)
        sizes = {name: count * itemsize for name, count in entries.items()}
        times = itemsize * (2 if planner.symmetric else 1)
        levels = [(times * number, *most) for number, *most in links.by_level(most)]
        vectors = points * rows * itemsize
        return Held(points=self._coordinates, levels=levels, vectors=vectors, together=rows, **sizes, **others)

    def _nearfield(self, leaf_size):
        """Blocks and entries of the stored nearfield; of a symmetric matrix one of (t, s) and (s, t)."""
        blocks = self.planner.blocks(leaf_size)
        near = blocks.near(self.eta)
        t, s = blocks.t.take(near), blocks.s.take(near)
        number = blocks.numbers(t)
        entries = number * blocks.row_tree.sizes.take(t) * blocks.col_tree.sizes.take(s)
        if not self.planner.symmetric:
            return float(number.sum()), float(entries.sum())
        return float(number.sum()) / 2, float(entries.sum() + entries[t == s].sum()) / 2

    @cached_property
    def kept_by_level(self):
        """For each side, the sampled ranks after compression by level."""
        return [sampler.ranks(self.planner.threshold) for sampler in self.samplers]


def _basis_entries(cuts, by_level):
    """Entries of all leaf matrices and of all transfer matrices of trees' Cuts, for ranks of their levels."""
    return map(sum, zip(*(cut.basis_entries(ranks) for cut, ranks in zip(cuts, by_level))))
