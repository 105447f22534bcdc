"""Frobenius norms by blocks, in orthogonal bases.

    ‖A‖_F² = Σ_near ‖D_ts‖² + Σ_far ‖R_t S_ts R_sᵀ‖²          U_t = Q_t R_t

A difference A − B is written in the joint basis [U Ũ] = Q [R R̃], where its blocks are R_t S_ts R_sᵀ − R̃_t S̃_ts R̃_sᵀ:
no cancellation beyond that of the entries themselves. It is computed in float64 whatever the precision of A and B.
"""

import math
from dataclasses import replace

import numpy as np

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import consecutive
from h2gpu.batched.device.plans import planned
from h2gpu.batched.device.threads import CACHED, in_cache, in_order, pieces
from h2gpu.blocksparse import BlockSparse
from h2gpu.h2matrix.beside import alternating
from h2gpu.h2matrix.compression.weights import STACK_ENTRIES
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.memory import piece_entries
from h2gpu.progress import phase
from h2gpu.texts import brief

PIECE = 1 << 16  # entries of one sum of squares
MEASURES = batched.frobenius_norms, batched.rounding_errors


def nearfield_norm(D):
    """‖·‖_F of the dense blocks of a BlockSparse, those off the diagonal of a symmetric one twice."""
    return math.sqrt(float(nearfield_square(D)))


def nearfield_square(D):
    """The square of nearfield_norm, where D is: nothing is waited for."""
    if not isinstance(D, BlockSparse):
        squares = _measured(D)[batched.frobenius_norms] ** 2
        t, s = D.pairs(D.xp)
        return (D.xp.where(t == s, 1.0, 2.0) * squares if D.symmetric else squares).sum()
    square = _square(D.blocks.entries)
    if D.symmetric:
        own = D.blocks[np.flatnonzero(D.rows == D.columns)]
        square = 2 * square - _sum_of_squares(own)
    return square


def _weighted_squares(weights, measures):
    """Σ w_b m_b² on the host, without BLAS: for a tenth of a second its threads would wait for more on every core."""
    return float(np.einsum("b,b,b->", weights, measures, measures))


def _square(entries):
    """Σ entries², in pieces by the batched routine."""
    first = np.arange(0, len(entries), PIECE)
    return _sum_of_squares(MatrixBatch(entries, first, np.ones_like(first), np.minimum(PIECE, len(entries) - first)))


def _sum_of_squares(A):
    """Σ ‖A_b‖_F², where A is."""
    return (batched.frobenius_norms(A) ** 2).sum()


def block_measures(A, *wanted):
    """Some of MEASURES of all blocks of A, a list of (blocks,) where A is; all are taken of blocks not in memory."""
    return [measure(A.blocks) if isinstance(A, BlockSparse) else _measured(A)[measure] for measure in wanted]


def _measured(A):
    """All MEASURES of blocks that are not in memory, (blocks,) each where A is: taken once, and not waited for.

    Another stream takes its own: it might read these before they are there.
    """
    if getattr(A, "measures", None):
        return A.measures
    stream = None if A.xp is np else A.xp.cuda.get_current_stream().ptr
    return planned(A, ("measures", stream), lambda: measures(A), settled=False)


def measures(A, keep=None):
    """{measure: (blocks,) where A is}: all MEASURES of blocks that are not in memory, some at a time.

    keep   function of a slice of the blocks and these blocks, which takes what else they are needed for
    """

    def work(part):
        if A.xp is np:
            blocks = A.select(np.arange(part.start, part.stop))
        else:  # their sizes stay with them, and each has as much room as the largest
            blocks = A.into(part, None) if hasattr(A, "into") else A.select(part)
        if keep is not None:
            keep(part, blocks)
        return [measure(blocks) for measure in MEASURES]  # a GPU goes on meanwhile

    entries = piece_entries(A.xp, CACHED)
    if A.xp is np:
        parts = pieces(A.sizes, entries)
    else:
        step = max(1, entries // max(1, math.prod(side.max(initial=0) for side in A.shapes)))
        parts = [slice(first, min(first + step, len(A))) for first in range(0, len(A), step)]
    made = list(in_order(work, parts, A.xp))
    rows = [A.xp.concatenate(measured) for measured in zip(*made)] or [A.xp.zeros(0)] * len(MEASURES)
    return dict(zip(MEASURES, rows))


def farfield_square(basis, weights):
    """‖·‖_F² of all farfield blocks, Σ over leaves of ‖U_t Z_tᵀ‖², where the weights are: nothing is waited for.

    weights   Z_t of the clusters of each level: see `total_weights`
    """
    tree, square = basis.tree, 0.0
    own = np.zeros(len(tree.leaves), bool) if basis.identical is None else basis.identical
    for l, Z in enumerate(weights):
        first, stop = np.searchsorted(tree.leaves, tree.level_offsets[l : l + 2])
        if first == stop:
            continue
        here, own_here = tree.leaves[first:stop] - tree.level_offsets[l], own[first:stop]
        square += _square(Z.entries) if own_here.sum() == len(Z) else _sum_of_squares(Z[consecutive(here[own_here])])
        if not own_here.all():
            U = basis.leaf[consecutive(np.flatnonzero(~own_here) + first)]
            for part in in_cache(_square_of_products, U, Z[consecutive(here[~own_here])]):
                square += part
    return square


def _square_of_products(U, Z):
    """‖U_t Z_tᵀ‖_F² of all together."""
    return _sum_of_squares(batched.gemm(U, Z, transb=True))


def relative_error(A, B):
    """‖A − B‖_F / ‖A‖_F of two H²-matrices on the same trees."""
    check_same_structure(A, B, "relative_error", "compare others through sampled_error")
    rows = JointFactors.of(A.row_basis.widened(), B.row_basis.widened())
    cols = rows if A.symmetric and B.symmetric else JointFactors.of(A.col_basis.widened(), B.col_basis.widened())
    norm, error = farfield_squares(A.couplings, B.couplings, rows, cols)
    error += nearfield_difference(A.nearfield, B.nearfield)
    norm += nearfield_norm(A.nearfield) ** 2
    return float(np.sqrt(error / norm)) if norm else float(np.sqrt(error))


def farfield_squares(S, T, rows, cols):
    """‖A‖_F² and ‖A − B‖_F² of farfields with couplings S and T between the same clusters, of such JointFactors."""
    norm, error, pairs, t, s = 0.0, 0.0, multiplicities(S), S.rows, S.columns
    work = rows.first.rows[t] * cols.first.rows[s]
    with phase("compare", len(t)) as advance:
        for part in pieces(work, piece_entries(rows.first.xp, STACK_ENTRIES)):
            index = np.arange(part.start, part.stop)
            block_A = _rotated(rows.first[t[part]], _wide(S.select(index)), cols.first[s[part]])
            block_B = _rotated(rows.second[t[part]], _wide(T.select(index)), cols.second[s[part]])
            norm += _weighted_squares(pairs[part], to_host(batched.frobenius_norms(block_A)))
            difference = batched.frobenius_norms(subtracted(block_A, block_B))
            error += _weighted_squares(pairs[part], to_host(difference))
            advance(len(index))
    return norm, error


class JointFactors:
    """Rᵀ and R̃ᵀ of [U Ũ] = Q [R R̃] for every cluster: `first` and `second`, rank × joint rank.

    both    MatrixBatch of [R R̃]ᵀ          ranks   those of U and of Ũ, (clusters,) each
    """

    def __init__(self, both, ranks):
        parts = both.halves(alternating(*ranks))
        self.both, self.first, self.second = both, parts[::2], parts[1::2]

    @classmethod
    def of(cls, U, V):
        """By QR up the tree, as in `orthogonalization`, in float64."""
        U, V = (replace(basis, leaf=_wide(basis.leaf), transfer=_wide(basis.transfer)) for basis in (U, V))
        tree = U.tree
        levels, below = [], None
        for l in reversed(range(tree.levels)):
            t = tree.level(l)
            RT = batched.transpose(batched.qr(_side_by_side(U, V, t, below), mode="r"))
            parts = RT.halves(alternating(U.ranks[t], V.ranks[t]))
            below = parts[::2], parts[1::2]
            levels.append(RT)
        return cls(batched.join(levels[::-1]), (U.ranks, V.ranks))


def _side_by_side(U, V, t, below):
    """[U_t V_t] of the leaves and the children's stacked [R E, R̃ Ẽ] of the others, for the clusters t of one level."""
    tree = U.tree
    is_leaf = tree.first_child[t] < 0
    at = np.searchsorted(tree.leaves, t[is_leaf])
    rows = np.where(is_leaf, tree.sizes[t], 0)
    children = tree.children(t[~is_leaf])
    if below is not None:
        rows[~is_leaf] = below[0].columns[::2] + below[0].columns[1::2]
    # [U_t V_t]ᵀ is [U_tᵀ ; V_tᵀ]: transposed, the two stand one above the other.
    joint = MatrixBatch.empty(U.ranks[t] + V.ranks[t], rows, U.dtype, U.leaf.xp)
    for i, basis in enumerate((U, V)):
        half = joint.halves(alternating(U.ranks[t], V.ranks[t]))[i::2]
        leaf = basis.leaf[at]
        batched.gather(leaf, np.arange(len(leaf)), True, half[is_leaf])
        if len(children):
            RE = batched.gemm(below[i], basis.transfer[children], transa=True).pairs()
            batched.gather(RE, np.arange(len(RE)), True, half[~is_leaf])
    return batched.transpose(joint)


def _wide(M):
    """The same matrices in float64."""
    return M.astype(np.float64)


def _rotated(row_factor, S, col_factor):
    """R_t S R_sᵀ from the transposed factors."""
    return batched.gemm(batched.gemm(row_factor, S, transa=True), col_factor)


def subtracted(A, B):
    """A_b − B_b of two batches of equal shapes, packed."""
    A, B = A.packed(), B.packed()
    return MatrixBatch(A.buffer - B.buffer, A.offsets, A.rows, A.columns)


def nearfield_difference(D, E):
    """‖D − E‖_F² of two nearfields with the same blocks; shared ones differ by nothing."""
    if D is E:
        return 0.0
    error, pairs = 0.0, multiplicities(D)
    for part in pieces(D.sizes, piece_entries(D.xp, STACK_ENTRIES)):
        index = np.arange(part.start, part.stop)
        difference = subtracted(D.select(index), E.select(index))
        error += _weighted_squares(pairs[part], to_host(batched.frobenius_norms(difference)))
    return error


def multiplicities(blocks):
    """How many blocks of the matrix each stored block stands for."""
    return multiplicities_of(len(blocks.rows), alone(blocks))


def multiplicities_of(count, alone):
    """The same of `count` blocks, given which stand for themselves alone: indices, None for all."""
    often = np.full(count, 1.0 if alone is None else 2.0)
    if alone is not None:
        often[alone] = 1.0
    return often


def alone(blocks):
    """Indices of the stored blocks that stand for themselves alone; None where all do."""
    return np.flatnonzero(blocks.rows == blocks.columns) if blocks.symmetric else None


def check_same_structure(A, B, caller, advice):
    """ValueError, with advice, unless both have the same trees and blocks; TypeError where one is no H2Matrix."""
    for M in (A, B):
        if not isinstance(M, H2Matrix):
            raise TypeError(f"{caller}: expected an H2Matrix, got {type(M).__name__}; see A.to_dense()")
    same = A.shape == B.shape and A.symmetric == B.symmetric and A.dtype == B.dtype
    for side in ("row_basis", "col_basis"):
        a, b = getattr(A, side).tree, getattr(B, side).tree
        same = same and len(a) == len(b) and np.array_equal(a.permutation, b.permutation)
        same = same and np.array_equal(a.start, b.start) and np.array_equal(a.stop, b.stop)
    for part in ("couplings", "nearfield"):
        a, b = getattr(A, part), getattr(B, part)
        same = same and np.array_equal(a.rows, b.rows) and np.array_equal(a.columns, b.columns)
    if not same:
        raise ValueError(
            f"{caller}: expected two matrices of one precision on the same points, leaf size and eta, got {brief(A)} "
            f"and {B!r}; {advice}"
        )
