"""Compression by ranks: the same steps as `h2matrix.compression.compress`, and three exchanges.

    R of ghosts after orthogonalization → total weights → ‖A‖ by all, truncation by one account → T of ghosts → project
    method "basis":  truncation of each cluster alone → T of ghosts → project → [R R̃] of ghosts → ‖A − Ã‖ by all

Of a cluster above the cut each rank has the R of its own points; stacked, their R is that of all. A rank's rows of a
farfield block are R_t S_ts R_sᵀ with its own part of R_t and the whole R_s: the squares of all ranks add up.
"""

from functools import partial

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.distributed.construction import all_couplings, couplings_of, local_trees, nearfield_of, sides_of
from h2gpu.distributed.ghosts import Halo, Share, slices_behind, with_ghosts
from h2gpu.distributed.matrix import Blocks, DistributedH2Matrix
from h2gpu.distributed.rounding import rounded
from h2gpu.distributed.truncation import truncate
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.compression.compress import tightened
from h2gpu.h2matrix.compression.decompositions import STRATEGIES, InDouble
from h2gpu.h2matrix.compression.orthogonalization import BasisChange, triangular_factors
from h2gpu.h2matrix.compression.projection import project
from h2gpu.h2matrix.compression.truncation import RelativeToBasis
from h2gpu.h2matrix.compression.weights import total_weights
from h2gpu.h2matrix.nearfield import EvaluatedNearfield
from h2gpu.h2matrix.norms import JointFactors, farfield_square, farfield_squares, nearfield_square

PARTS = "far", "far off", "near", "near off"
NONE = np.zeros(0, np.int64)


class GhostBasis:
    """What `project` asks of a basis, for ghosts: ranks and levels."""

    def __init__(self, ranks, level_offsets):
        self.ranks, self.starts, self.level_offsets = ranks, offsets_of(ranks), level_offsets

    @property
    def tree(self):
        """Itself: it has the levels."""
        return self


def built_and_compressed(
    comm, blocks, points, cov, order, rtol, storage="auto", once=False, svd="auto", method="weighted"
):
    """A rank's BlockTree, own points → the DistributedH2Matrix, compressed to rtol; a call of all ranks.

    blocks, points   as for `sides_of`; storage, svd, method as for `compress`, once as for `covariance_matrix`
    """
    accuracy = Accuracy.of(rtol, points[0].dtype)
    rounds = accuracy.rounds(storage)
    locals_, there = local_trees(comm, blocks), [comm.xp.asarray(x) for x in points]
    once = bool(once) and blocks.symmetric
    partitions = locals_[0].partition, locals_[-1].partition
    share = Share.of(blocks.near, blocks.symmetric, *partitions, comm.rank, once).agreed(comm, partitions[1])
    near = nearfield_of(comm, locals_[0], locals_[-1], there, share, blocks, points, cov)
    if not rounds:
        near = [part.stored() for part in near]
    weights = dict(zip(PARTS, (1, 1 + once) * 2))
    square = sum(weights[name] * nearfield_square(part) for name, part in zip(PARTS[2:], near))  # enqueued
    limit, decompose = accuracy.unrounded if rounds else accuracy, STRATEGIES[svd]
    held = list(sides_of(comm, blocks, locals_, points, there, order))
    far_share, bases, T, far = _farfield(comm, blocks, held, cov, once, weights, square, method, limit, decompose)
    parts = dict(zip(PARTS, (*far, *near)))
    if rounds:
        parts, bases = rounded(comm, parts, weights, bases, accuracy)
    parts = {name: part.stored() if isinstance(part, EvaluatedNearfield) else part for name, part in parts.items()}
    local = locals_[-1]
    halo = Halo.of(share, local.numbers, local.tree.start, local.tree.sizes, blocks.col_tree.sizes[share.ghosts])
    far = far_blocks(comm, parts["far"], parts["far off"], far_share, local, bases[-1], T.rows)
    near = Blocks(parts["near"], parts["near off"], halo.on(comm.xp), partitions[1].numbers[share.ghosts], share)
    return DistributedH2Matrix(comm, locals_[0], local, bases[0], bases[-1], far, near, once=once)


def _farfield(comm, blocks, held, cov, once, weights, square, method, accuracy, decompose):
    """(Share, bases, changes T of ghosts, (diagonal, off-diagonal couplings)), compressed.

    held     [row side, column side], which is emptied: the bases are given up before couplings are projected
    square   of this rank's nearfield, where comm.xp is
    """
    rows, cols = held
    held.clear()
    share, sides = rows.share, (rows, cols)[: 2 - blocks.symmetric]
    if once:
        partitions = rows.local.partition, cols.local.partition
        share = Share.of(blocks.far, True, *partitions, comm.rank, once).agreed(comm, partitions[1])
    couplings = couplings_of(rows, cols, share, blocks, cov)
    if method == "basis":
        return share, *by_basis(comm, sides, couplings, share, weights, float(square), accuracy, decompose)
    share_of = partial(discarded, comm, accuracy=accuracy, decompose=decompose)
    bases, changes = _truncated(comm, sides, square, couplings[0], cov, share_of)
    local, rows, cols, sides = cols.local, None, None, None  # bases: the largest part of what is there
    T = changes_of_ghosts(comm, share, local, changes)
    return share, bases, T, projected(couplings, local, share, bases, changes, T)


def by_basis(comm, sides, couplings, share, weights, near, accuracy, decompose):
    """As the serial method "basis": ([bases], changes T of ghosts, (diagonal, off-diagonal couplings) in them).

    sides       [Side of the rows, Side of the columns], one of a symmetric matrix
    couplings   (diagonal, off-diagonal) before
    weights     {name: how many blocks a stored one stands for}
    near        this rank's squares of the nearfield
    """
    tolerance, local = accuracy.rtol, sides[-1].local
    while True:
        cuts = [truncate(comm, side, None, 0.0, decompose, RelativeToBasis(tolerance)) for side in sides]
        bases, changes = zip(*cuts)
        T = changes_of_ghosts(comm, share, local, changes)
        far = projected(couplings, local, share, bases, changes, T)
        squares = np.array([near, 0.0]) + _far_squares(comm, sides, couplings, bases, far, share, weights, T)
        norm, error = comm.sum(squares, "error of the basis")
        if error <= accuracy.rtol**2 * norm or tolerance == 0:
            return list(bases), T, far
        tolerance = tightened(tolerance, np.dtype(bases[0].dtype))


def _far_squares(comm, sides, couplings, bases, far, share, weights, T):
    """‖A‖² and ‖A − Ã‖² of this rank's rows of the farfield, before and after: (2,)."""
    joint = [JointFactors.of(side.basis, basis) for side, basis in zip(sides, bases)]
    R = of_ghosts(comm, share, sides[-1].local, batched.transpose(joint[-1].both), "[R R̃] of ghosts", stacked=True)
    ghosts = JointFactors(batched.transpose(R), (T.columns, T.rows))
    found = [farfield_squares(*pair, joint[0], cols) for *pair, cols in zip(couplings, far, (joint[-1], ghosts))]
    return sum(weights[name] * np.array(squares) for name, squares in zip(PARTS, found))


def changes_of_ghosts(comm, share, local, changes):
    """T of a share's ghosts, new rank × old rank; local: LocalTree of the columns."""
    return of_ghosts(comm, share, local, changes[-1].matrices, "T of ghosts", stacked=False)


def projected(couplings, local, share, bases, changes, T):
    """(Diagonal, off-diagonal couplings) in new bases; local: LocalTree of the columns, T: changes of ghosts."""
    levels = np.searchsorted(share.ghosts, local.partition.tree.level_offsets)
    return (
        project(couplings[0], bases[0], bases[-1], changes[0], changes[-1]),
        project(couplings[1], bases[0], GhostBasis(T.rows, levels), changes[0], BasisChange(T)),
    )


def far_blocks(comm, diagonal, off, share, local, basis, ghost_ranks):
    """Blocks of couplings in a basis of the columns; ghost_ranks: (ghosts,)."""
    halo = Halo.of(share, local.numbers, basis.starts[:-1], basis.ranks, ghost_ranks).on(comm.xp)
    return Blocks(diagonal, off, halo, local.partition.numbers[share.ghosts], share)


def _truncated(comm, sides, square, diagonal, cov, share_of):
    """Bases and their changes, in lists of one a side; the discarded squares of the sides are equal shares.

    square     of this rank's nearfield, where comm.xp is
    diagonal   couplings of its diagonal blocks
    """
    rows, cols = sides[0], sides[-1]
    Z = _weights(comm, rows, cols, diagonal, (-1, 1) if diagonal.symmetric else (-1,), cov)
    levels = rows.local.partition.tree.levels
    budget, decompose = share_of(float(square + farfield_square(rows.basis, Z)), levels)
    found = [truncate(comm, rows, Z, budget, decompose)]
    if not diagonal.symmetric:
        W = _weights(comm, cols, rows, diagonal, (1,), cov)
        found.append(truncate(comm, cols, W, budget, decompose))
    return [basis for basis, _ in found], [change for _, change in found]


def discarded(comm, square, levels, accuracy, decompose):
    """What each side may discard of the squares of all ranks, and the decomposition that finds it."""
    part, in_double = accuracy.discarded(levels)
    decompose = InDouble(decompose) if in_double else decompose
    return float(comm.sum(np.array([square]), "norm")[0]) * part / 2, decompose


def _weights(comm, side, other, diagonal, turns, cov):
    """Total weights of a side's local clusters; diagonal, turns: see `all_couplings`."""
    couplings = all_couplings(side, other, diagonal, turns, cov)  # first: a sort may wait for what is given before it
    R = triangular_factors(other.basis)
    ghosts = of_ghosts(comm, side.share, other.local, R, "R of ghosts", stacked=True)
    return total_weights(side.basis, couplings, with_ghosts(R, ghosts), column_side=True)


def of_ghosts(comm, share, local, batch, name, stacked):
    """The matrices of a share's ghosts, of what their ranks have: R of those stacked, or the first."""
    arrived, numbers = _arrived(comm, share, local, batch, name)
    if not len(numbers):
        return batch[:0]
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers, minlength=len(share.ghosts))
    first, several = order[offsets_of(counts)[:-1]], counts > 1
    if not stacked or not several.any():
        return batched.gather(arrived, first)
    stacks = batched.gather(arrived, order[np.repeat(several, counts)]).stacked(counts[several])
    rows = arrived.rows[first]
    rows[several] = np.minimum(stacks.rows, stacks.columns)
    R = MatrixBatch.empty(rows, arrived.columns[first], batch.dtype, comm.xp)
    batched.gather(arrived, first[~several], out=R[~several])
    batched.qr(stacks, mode="r", out=R[several])
    return R


def _arrived(comm, share, local, batch, name):
    """What the ranks of ghosts have of them, rank by rank, this one among them, and numbers in `ghosts`."""
    to, of = (sorted(part.keys() - {comm.rank}) for part in (share.sends, share.receives))
    clusters, ranks = [share.sends[q] for q in to], sorted(share.receives)
    sent = batched.gather(batch, local.numbers(np.concatenate([NONE, *clusters])))
    sends = dict(zip(to, slices_behind(clusters)))
    shapes = {q: np.empty(2 * len(share.receives[q]), np.int64) for q in of}
    sizes = {q: np.concatenate([sent.rows[s], sent.columns[s]]) for q, s in sends.items()}
    comm.start(sizes, shapes, f"sizes of {name}")()
    own = local.numbers(share.sends.get(comm.rank, NONE))
    shapes[comm.rank] = np.concatenate([batch.rows[own], batch.columns[own]])
    numbers = [share.receives[q] for q in ranks]
    rows, columns = np.concatenate([np.zeros((2, 0), np.int64), *(shapes[q].reshape(2, -1) for q in ranks)], axis=1)
    arrived, places = MatrixBatch.empty(rows, columns, batch.dtype, comm.xp), dict(zip(ranks, slices_behind(numbers)))
    if len(own):
        batched.gather(batch, own, out=arrived[places[comm.rank]])
    receives = {q: arrived[places[q]].entries for q in of}
    comm.start({q: sent[s].entries for q, s in sends.items()}, receives, name)()
    return arrived, np.concatenate([NONE, *numbers])
