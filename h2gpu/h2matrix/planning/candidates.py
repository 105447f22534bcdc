"""The plans of one admissibility: the smallest sufficient order, and the bytes and work of each leaf size.

    stored = Σ_near |t| |s| + Σ_far k_t k_s + Σ_leaves |t| k_t + Σ_t k_t k_parent

k = min(points, order^dim) before compression; after it, the ranks of sampled clusters. Sums over clusters and blocks
are those of sampled rows, scaled.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from h2gpu.clustering.sampled_blocks import is_leaf
from h2gpu.memory import readable

LARGEST_RANK = {1: 64, 2: 400, 3: 729}  # order^dim that may be tried; more is slower than dense blocks
GUESSED_FROM = 3, 5  # orders from whose errors the sufficient one is extrapolated
EXACT = 1e-16  # relative error of what is as good as exact
FIRST_LEAF_SIZE = 64  # tried
STACKS = 6  # of work that compression holds at a time, if there are couplings for so many
BLOCK_WORK = 1e5  # multiplications that a block costs besides, as measured on two cores: 40 µs
WORK_PER_COUPLING = 3  # bytes of them for each byte of couplings


@dataclass(frozen=True)
class Plan:
    """Parameters of a build and what they will give.

    leaf_size, eta, order, split   as for `build`
    rtol                           the compression's share of the accuracy
    interpolation_error            estimated ‖interpolated − exact‖_F / ‖exact‖_F
    bytes_before                   of the uncompressed matrix, were it stored
    bytes_after                    of the compressed matrix, estimated
    bytes_peak                     of the whole job, estimated
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
    trees: tuple = field(default=(), repr=False, compare=False)

    def __str__(self):
        return (
            f"leaf size {self.leaf_size}, eta {self.eta:g}, order {self.order}, {self.split} split: "
            f"about {readable(self.bytes_after)}, at the peak {readable(self.bytes_peak)}"
        )


class Family:
    """The candidates of one admissibility: one set of samples, any leaf size."""

    def __init__(self, planner, eta):
        self.planner, self.eta, self.samplers = planner, eta, planner.samplers(eta)
        self._errors = {}

    def order(self, fixed):
        """The smallest order whose error is within its share of rtol (None if there is none), and that error."""
        planner, wanted = self.planner, self.planner.accuracy.interpolation
        if not any(len(sampler.far[0]) for sampler in self.samplers):
            return fixed or 1, 0.0
        if fixed:
            return fixed, self.error(fixed)
        largest = int(max(LARGEST_RANK.get(planner.dim, 729) ** (1 / planner.dim) + 1e-9, 2))
        order = min(largest, self._guess(wanted))
        while order > 2 and self.error(order - 1) <= wanted:
            order -= 1
        while order < largest and self.error(order) > wanted:
            order += 1
        error = self.error(order)
        return (order if error <= wanted else None), error

    def _guess(self, wanted):
        """Where the error would be what is wanted if it went on falling as between two small orders; 2 at least."""
        first, second = (np.log(max(self.error(order), EXACT)) for order in GUESSED_FROM)
        step = (second - first) / (GUESSED_FROM[1] - GUESSED_FROM[0])
        return max(2, GUESSED_FROM[1] + int(np.ceil((np.log(wanted) - second) / step))) if step < 0 else GUESSED_FROM[1]

    def error(self, order):
        """Estimated relative error of interpolation, sampled once for each order."""
        if order not in self._errors:
            squares = sum(sampler.squared_interpolation_error(order) for sampler in self.samplers)
            square = squares * (2 if self.planner.symmetric else 1)
            self._errors[order] = np.sqrt(square) / max(self.planner.norm, np.finfo(float).tiny)
        return self._errors[order]

    def candidates(self, leaf_sizes, order, error):
        """Plans with their work, from the usual leaf size down, else up, as long as they get smaller."""
        middle = leaf_sizes.index(FIRST_LEAF_SIZE) if FIRST_LEAF_SIZE in leaf_sizes else 0
        found = [self.candidate(leaf_sizes[middle], order, error)]
        for direction in (leaf_sizes[:middle][::-1], leaf_sizes[middle + 1 :]):
            smallest = found[0][0].bytes_after
            for size in direction:
                found.append(self.candidate(size, order, error))
                if found[-1][0].bytes_after >= smallest:
                    break
                smallest = found[-1][0].bytes_after
            if smallest < found[0][0].bytes_after:
                break
        return found

    def candidate(self, leaf_size, order, error):
        """The plan of a leaf size, and its work in multiplications."""
        planner, blocks = self.planner, self.planner.blocks(leaf_size)
        near, far = blocks.near(self.eta), blocks.far(self.eta)
        t, s, share = blocks.t[far], blocks.s[far], blocks.numbers(blocks.t[far]) * (0.5 if planner.symmetric else 1)
        dense = self._dense_entries(blocks, near)
        initial = [lambda c, tree=tree: np.minimum(tree.sizes[c], order**planner.dim) for tree in planner.trees]
        kept = [_Kept(tree, ranks) for tree, ranks in zip(planner.trees, self.kept_by_level)]
        couplings, after = (float(share @ (ranks[0](t) * ranks[-1](s))) for ranks in (initial, kept))
        itemsize = planner.dtype.itemsize
        leaves, transfers = self._basis_entries(leaf_size, initial)
        before = (dense + couplings + leaves + transfers) * itemsize
        if planner.computed:  # from the points
            near_bytes = sum(tree.n for tree in planner.trees) * planner.dim * itemsize
        else:
            near_bytes = dense * planner.entry_bytes
        kept_leaves, kept_transfers = self._basis_entries(leaf_size, kept)
        smaller = near_bytes + (after + kept_leaves) * planner.entry_bytes + kept_transfers * itemsize
        stacks = min(STACKS * planner.stack_entries, WORK_PER_COUPLING * couplings)
        sizes = [int(size) for size in (before, smaller, 1.1 * smaller + (3 * transfers + stacks) * itemsize)]
        rtol = planner.accuracy.compression.rtol
        number = share.sum() + blocks.numbers(blocks.t[near]).sum() * (0.5 if planner.symmetric else 1)
        work = 4.0 * float(share @ (initial[0](t) * initial[-1](s) ** 2.0)) + BLOCK_WORK * float(number)
        return Plan(leaf_size, self.eta, order, planner.split, rtol, error, *sizes, planner.trees), work

    def _dense_entries(self, blocks, near):
        """Entries of the stored nearfield; of a symmetric matrix one of (t, s) and (s, t)."""
        entries = (
            blocks.numbers(blocks.t[near])
            * blocks.row_tree.sizes[blocks.t[near]]
            * blocks.col_tree.sizes[blocks.s[near]]
        )
        if not self.planner.symmetric:
            return float(entries.sum())
        return float(entries.sum() + entries[blocks.t[near] == blocks.s[near]].sum()) / 2

    def _basis_entries(self, leaf_size, ranks):
        """Entries of all leaf matrices and of all transfer matrices for ranks given as functions of the clusters."""
        leaves = transfers = 0.0
        for tree, path, rank in zip(self.planner.trees, self.planner.paths, ranks):
            t = path[(path >= 0) & tree.kept(leaf_size)[path]]
            stands_for, k = tree.n / (path.shape[1] * tree.sizes[t]), rank(t)
            leaves += float((stands_for * tree.sizes[t] * k)[is_leaf(tree, t, leaf_size)].sum())
            transfers += float((stands_for * k * rank(tree.parent[t]))[t > 0].sum())
        return leaves, transfers

    @cached_property
    def kept_by_level(self):
        """For each side, the sampled ranks after compression by level."""
        return [sampler.ranks(self.planner.threshold) for sampler in self.samplers]


class _Kept:
    """Ranks after compression of given clusters, from those of their levels."""

    def __init__(self, tree, by_level):
        self.tree, self.by_level = tree, by_level

    def __call__(self, clusters):
        level = np.searchsorted(self.tree.level_offsets, clusters, side="right") - 1
        return np.minimum(self.by_level[level], self.tree.sizes[clusters])
