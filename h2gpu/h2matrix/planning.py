"""One accuracy, all parameters: the leaf size, admissibility and order of the smallest compressed matrix.

    interpolation error + compression error ≤ (INTERPOLATION + COMPRESSION) · rtol ‖A‖_F < rtol ‖A‖_F

For each admissibility the smallest sufficient order is found on sampled blocks, and the ranks that compression will
leave on sampled clusters; the trees of all leaf sizes are cuts of one; bytes follow. Of the candidates within
NEARLY_SMALLEST of the smallest, the one that takes least work is chosen.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.batched.arrays import to_host
from h2gpu.batched.threads import one_blas_thread
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
from h2gpu.h2matrix.compression import check_rtol, least_rtol
from h2gpu.h2matrix.construction import embedded_pair
from h2gpu.h2matrix.estimation import Sampler, squared_norm
from h2gpu.progress import phase

INTERPOLATION, COMPRESSION = 0.25, 0.7  # shares of rtol
LEAF_SIZES = (16, 32, 64, 128, 256)
ETAS = (1.0, 1.5, 2.0)
LARGEST_RANK = {1: 64, 2: 400, 3: 729}  # order^dim that may be tried; more is slower than dense blocks
NEARLY_SMALLEST = 1.15
GUESSED_FROM = 3, 5  # orders from whose errors the sufficient one is extrapolated
EXACT = 1e-16  # relative error of what is as good as exact
USUAL_LEAF_SIZE = 64  # counts the clusters among which the accuracy is shared


@dataclass(frozen=True)
class Plan:
    """Parameters of a build and what they will give.

    leaf_size, eta, order, split   as for `build`
    rtol                           the compression's share of the accuracy
    interpolation_error            estimated ‖interpolated − exact‖_F / ‖exact‖_F
    bytes_before                   of the uncompressed matrix, were it stored
    bytes_after                    of the compressed matrix, estimated
    bytes_peak                     of the whole job, estimated
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

    def __str__(self):
        return (
            f"leaf size {self.leaf_size}, eta {self.eta:g}, order {self.order}, {self.split} split: "
            f"about {self.bytes_after / 1e6:.3g} MB, at the peak {self.bytes_peak / 1e6:.3g} MB"
        )


def plan(points, cov, rtol, *, leaf_size=None, eta=None, order=None, split="median", col_points=None):
    """The parameters of the smallest compressed matrix that meets rtol against the exact covariance.

    points, cov, col_points   as for `build`
    rtol                      accuracy of the whole, ‖A − exact‖_F ≤ rtol ‖exact‖_F
    leaf_size, eta, order     fixed where given (then rtol is the compression's alone if order is given)

    Raises ValueError when no order within reach attains rtol.
    """
    x, y, cov = embedded_pair(points, col_points, cov)
    check_rtol(rtol, x.dtype)
    leaf_sizes, etas = LEAF_SIZES if leaf_size is None else (leaf_size,), ETAS if eta is None else (eta,)
    with phase("plan"), one_blas_thread():
        finest = ClusterTree.build(x, leaf_sizes[0], split)
        finest_cols = finest if y is None else ClusterTree.build(y, leaf_sizes[0], split)
        y = to_host(x if y is None else y)[finest_cols.permutation]
        x = to_host(x)[finest.permutation]
        norm, candidates = np.sqrt(squared_norm(cov.values, x, y)), []
        for e in etas:
            family = _Family(finest, finest_cols, x, y, cov, e, rtol, split, norm)
            chosen, error = family.order(order)
            if chosen is not None:
                candidates += family.candidates(leaf_sizes, chosen, error)
    if not candidates:
        raise ValueError(
            f"rtol: {rtol:g} cannot be reached for this covariance in {x.shape[1]} dimensions and {x.dtype}: the best "
            f"estimated interpolation error is {error:.2g}; ask for less accuracy"
            + ("" if eta is None else ", or a smaller eta")
        )
    smallest = min(candidate.bytes_after for candidate, _ in candidates)
    good = [pair for pair in candidates if pair[0].bytes_after <= NEARLY_SMALLEST * smallest]
    return min(good, key=lambda pair: pair[1])[0]


class _Family:
    """The candidates of one admissibility: one set of samples, any leaf size."""

    def __init__(self, rows, cols, x, y, cov, eta, rtol, split, norm):
        self.eta, self.rtol, self.split, self.dim, self.dtype = eta, rtol, split, x.shape[1], x.dtype
        self.admissible = Admissibility(eta)
        blocks = BlockTree.build(rows, cols, self.admissible)
        self.sampler = Sampler(blocks, x, y, cov.values)
        self.norm = norm
        self.sides = [rows] if blocks.symmetric else [rows, cols]
        self._errors = {}

    def order(self, fixed):
        """The smallest order whose error is within its share of rtol (None if there is none), and that error."""
        if not self.sampler.blocks.far.shape[1]:
            return fixed or 1, 0.0
        if fixed:
            return fixed, self.error(fixed)
        largest = int(max(LARGEST_RANK.get(self.dim, 729) ** (1 / self.dim) + 1e-9, 2))
        order = min(largest, self._guess(INTERPOLATION * self.rtol))
        while order > 2 and self.error(order - 1) <= INTERPOLATION * self.rtol:
            order -= 1
        while order < largest and self.error(order) > INTERPOLATION * self.rtol:
            order += 1
        error = self.error(order)
        return (order if error <= INTERPOLATION * self.rtol else None), error

    def _guess(self, wanted):
        """Where the error would fall to what is wanted if it went on falling as between two small orders."""
        first, second = (np.log(max(self.error(order), EXACT)) for order in GUESSED_FROM)
        step = (second - first) / (GUESSED_FROM[1] - GUESSED_FROM[0])
        return GUESSED_FROM[1] + int(np.ceil((np.log(wanted) - second) / step)) if step < 0 else GUESSED_FROM[1]

    def error(self, order):
        """Estimated relative error of interpolation, sampled once for each order."""
        if order not in self._errors:
            square = self.sampler.squared_interpolation_error(order)
            self._errors[order] = np.sqrt(square) / max(self.norm, np.finfo(float).tiny)
        return self._errors[order]

    def candidates(self, leaf_sizes, order, error):
        """Plans with their work, from the usual leaf size down, else up, as long as they get smaller."""
        middle = leaf_sizes.index(USUAL_LEAF_SIZE) if USUAL_LEAF_SIZE in leaf_sizes else 0
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
        trees = [tree.cut(leaf_size) for tree in self.sides]
        blocks = BlockTree.build(trees[0], trees[-1], self.admissible)
        near = int((trees[0].sizes[blocks.near[0]] * trees[-1].sizes[blocks.near[1]]).sum())
        initial = [np.minimum(tree.sizes, order**self.dim) for tree in trees]
        kept = [np.minimum(ranks[_levels(tree)], tree.sizes) for tree, ranks in zip(trees, self.kept_by_level)]
        before, after = near + _low_rank_entries(blocks, trees, initial), near + _low_rank_entries(blocks, trees, kept)
        triangles = 3 * sum(_transfer_entries(tree, ranks) for tree, ranks in zip(trees, initial))
        work = 4.0 * float((initial[0][blocks.far[0]] * initial[-1][blocks.far[1]] ** 2.0).sum())
        sizes = [int(entries * self.dtype.itemsize) for entries in (before, after, 1.1 * after + triangles)]
        rtol = max(self.rtol * COMPRESSION, least_rtol(self.dtype))
        return Plan(leaf_size, self.eta, order, self.split, rtol, error, *sizes), work

    @cached_property
    def kept_by_level(self):
        """For each side, the sampled ranks after compression by level."""
        clusters = sum(len(tree.cut(USUAL_LEAF_SIZE)) for tree in self.sides) / len(self.sides)
        threshold = COMPRESSION * self.rtol * self.norm / np.sqrt(2 * clusters)
        samplers = [self.sampler, self.sampler.of_columns()]
        return [sampler.ranks(threshold) for sampler in samplers[: len(self.sides)]]


def _levels(tree):
    """The level of every cluster."""
    return np.repeat(np.arange(tree.levels), np.diff(tree.level_offsets))


def _transfer_entries(tree, ranks):
    """Entries of all transfer matrices for given ranks of the clusters."""
    return float((ranks[1:] * ranks[tree.parent[1:]]).sum())


def _low_rank_entries(blocks, trees, ranks):
    """Entries of couplings, leaf and transfer matrices for given ranks of the clusters of each side."""
    entries = float((ranks[0][blocks.far[0]] * ranks[-1][blocks.far[1]]).sum())
    for tree, side in zip(trees, ranks):
        entries += float((tree.sizes[tree.leaves] * side[tree.leaves]).sum()) + _transfer_entries(tree, side)
    return entries
