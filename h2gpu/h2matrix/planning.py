"""One accuracy, all parameters: the leaf size, admissibility and order of the smallest compressed matrix.

    interpolation error + compression error ≤ (INTERPOLATION + COMPRESSION) · rtol ‖A‖_F < rtol ‖A‖_F

For each admissibility the smallest sufficient order is found on sampled blocks, and the ranks that compression will
leave on sampled clusters; the trees of all leaf sizes are cuts of one; bytes follow. Of the candidates within
NEARLY_SMALLEST of the smallest, the one that takes least work is chosen.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.batched.arrays import to_host
from h2gpu.batched.threads import one_blas_thread
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
from h2gpu.h2matrix.compression import check_rtol, least_rtol
from h2gpu.h2matrix.construction import embedded_pair
from h2gpu.h2matrix.estimation import Sampler
from h2gpu.progress import phase

INTERPOLATION, COMPRESSION = 0.25, 0.7  # shares of rtol
LEAF_SIZES = (16, 32, 64, 128, 256)
ETAS = (1.0, 1.5, 2.0)
LARGEST_RANK = {1: 64, 2: 400, 3: 729}  # order^dim that may be tried; more is slower than dense blocks
NEARLY_SMALLEST = 1.15


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
    x, y = embedded_pair(points, col_points, cov)
    x, y = to_host(x), None if y is None else to_host(y)
    check_rtol(rtol, x.dtype)
    leaf_sizes, etas = LEAF_SIZES if leaf_size is None else (leaf_size,), ETAS if eta is None else (eta,)
    with phase("plan"), one_blas_thread():
        finest = ClusterTree.build(x, leaf_sizes[0], split)
        finest_cols = finest if y is None else ClusterTree.build(y, leaf_sizes[0], split)
        x, y = x[finest.permutation], (x if y is None else y)[finest_cols.permutation]
        candidates = []
        for e in etas:
            family = _Family(finest, finest_cols, x, y, cov, e, rtol, split)
            chosen, error = family.order(order)
            if chosen is not None:
                candidates += [family.candidate(size, chosen, error) for size in leaf_sizes]
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

    def __init__(self, rows, cols, x, y, cov, eta, rtol, split):
        self.rows, self.cols, self.symmetric, self.dim = rows, cols, rows is cols, x.shape[1]
        self.admissible, self.eta, self.rtol, self.split = Admissibility(eta), eta, rtol, split
        self.dtype = x.dtype
        self.sampler = Sampler(BlockTree.build(rows, cols, self.admissible), x, y, cov.values)
        self.norm = np.sqrt(self.sampler.squared_norm())
        self._ranks = None

    def order(self, fixed):
        """The smallest order whose error is within its share of rtol (None if there is none), and that error."""
        if not self.sampler.blocks.far.shape[1]:
            return fixed or 1, 0.0
        best = np.inf
        largest = int(max(LARGEST_RANK.get(self.dim, 729) ** (1 / self.dim) + 1e-9, 2))
        for order in (fixed,) if fixed else range(2, largest + 1):
            error = np.sqrt(self.sampler.squared_interpolation_error(order)) / max(self.norm, np.finfo(float).tiny)
            best = min(best, error)
            if fixed or error <= INTERPOLATION * self.rtol:
                return order, error
        return None, best

    def candidate(self, leaf_size, order, error):
        """The plan of a leaf size, and its work in multiplications."""
        rows = self.rows.cut(leaf_size)
        cols = rows if self.symmetric else self.cols.cut(leaf_size)
        blocks = BlockTree.build(rows, cols, self.admissible)
        near = int((rows.sizes[blocks.near[0]] * cols.sizes[blocks.near[1]]).sum())
        before, after = (
            self._low_rank_entries(blocks, ranks) for ranks in (self._initial(rows, order), self._kept(rows))
        )
        initial = self._initial(rows, order)
        bases = 3 * int((initial * initial[np.maximum(rows.parent, 0)]).sum()) * (1 if self.symmetric else 2)
        work = 4.0 * float((initial[blocks.far[0]] * initial[blocks.far[0]] * initial[blocks.far[0]]).sum())
        sizes = [
            int(entries * self.dtype.itemsize)
            for entries in (near + before, near + after, 1.1 * (near + after) + bases)
        ]
        rtol = max(self.rtol * COMPRESSION, least_rtol(self.dtype))
        return Plan(leaf_size, self.eta, order, self.split, rtol, error, *sizes), work

    def _initial(self, tree, order):
        """Ranks before compression, (clusters,)."""
        return np.minimum(tree.sizes, order**self.dim)

    def _kept(self, tree):
        """Ranks after compression, (clusters,), from the sampled levels."""
        if self._ranks is None:
            clusters = max(1, len(self.rows.cut(64)))
            self._ranks = self.sampler.ranks(COMPRESSION * self.rtol * self.norm / np.sqrt(2 * clusters))
        levels = np.repeat(np.arange(tree.levels), np.diff(tree.level_offsets))
        return np.minimum(self._ranks[levels], tree.sizes)

    def _low_rank_entries(self, blocks, ranks):
        """Entries of couplings, leaf and transfer matrices for the given ranks of the row clusters."""
        tree = blocks.row_tree
        columns = ranks if self.symmetric else np.resize(ranks, len(blocks.col_tree))
        couplings = float((ranks[blocks.far[0]] * columns[blocks.far[1]]).sum())
        leaf = float((tree.sizes[tree.leaves] * ranks[tree.leaves]).sum())
        transfer = float((ranks[1:] * ranks[tree.parent[1:]]).sum())
        return couplings + (leaf + transfer) * (1 if self.symmetric else 2)
