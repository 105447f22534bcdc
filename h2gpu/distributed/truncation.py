"""Truncation of a distributed basis: as `h2matrix.compression.truncation`, one account for all ranks.

    level l:  every rank   B_t Z_tᵀ = Û Σ Wᵀ  of what it owns     all   the threshold below which Σ² is discarded
              shared       Û_t and T_t of clusters above the cut and of their children go to all ranks

A cluster above the cut is worked on by one rank only, so that all have the same basis of it to the last bit. Without
weights each cluster of the basis itself is cut, by a rule that asks no other.
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import consecutive
from h2gpu.h2matrix.accuracy import DECOMPOSED, Account
from h2gpu.h2matrix.compression.level_store import assembled, cut
from h2gpu.progress import phase

DIGITS = 52, 40, 28, 16, 4, 0  # a square's exponent, then 12 bits in one sum over the ranks
FEW = 1 << 16  # squares of all ranks that are told rather than summed
FEW_CLUSTERS = 1 << 10  # of all ranks, which have no more of them
NAME = "truncation"
WRONG = "truncation: expected finite weights, got NaN or infinity; check the covariance"


def truncate(comm, side, weights, budget, decompose, rule=None):
    """(ClusterBasis, BasisChange) on the side's local tree; arguments as for the serial `truncate`.

    side      Side
    budget    bound on the sum of discarded squares over all clusters of all ranks
    rule      of each cluster alone, as `RelativeToBasis`; None: all ranks share the budget
    """
    local, basis, (among, used) = side.local, side.basis, side.counts
    account, done, T = Account(budget, used), [], None
    levels = range(int(np.argmax(used > 0)), len(used)) if used.any() else ()
    MatrixBatch.place(basis.leaf, basis.transfer, *(weights or ()))
    with phase("truncate", int(among.sum())) as advance:
        for l in reversed(levels):
            t = _owned(local, l)
            share = account.share(l)
            B, M = _matrices(basis, l, t, T, None if weights is None else _weights(weights, local, l, t))
            U, sigma, residual, *_ = decompose(M, DECOMPOSED * share * len(t) / among[l])
            if rule is None:
                choose = ranks_of_few if among[l] <= FEW_CLUSTERS else shared_ranks
                ranks, spent = choose(comm, sigma, share, residual)
                account.spend(spent)
            else:
                ranks = rule(_finite(sigma), share)
            U, T = cut(U, B, to_host(ranks))
            if l < local.tree.levels:
                U, T = _completed(comm, side, l, t, U, T)
                done.append((l, U, T))
            advance(int(among[l]))
    return assembled(basis, done)


def _weights(weights, local, l, t):
    """Z_t of clusters of a level, maybe of none where the rank's tree has no such level."""
    return weights[l][consecutive(t - local.tree.level_offsets[l])] if len(t) else weights[0][:0]


def _finite(sigma):
    """The singular values; LinAlgError for NaN and infinity."""
    if not bool(array_module(sigma).isfinite(sigma).all()):
        raise np.linalg.LinAlgError(WRONG)
    return sigma


def _owned(local, l):
    """Clusters of a level that the rank owns; none where its tree has no such level."""
    if l >= local.tree.levels:
        return np.zeros(0, np.int64)
    t = local.tree.level(l)
    return t[local.owned[t]]


def _matrices(basis, l, t, T, Z):
    """B_t, U_t of leaves and [T_1 E_1 ; T_2 E_2] of others, and B_t Z_tᵀ; T: of all local clusters a level below."""
    tree, dtype, xp = basis.tree, basis.dtype, basis.leaf.xp
    is_leaf = tree.first_child[t] < 0
    children, rows = tree.children(t[~is_leaf]), np.where(is_leaf, tree.sizes[t], 0)
    below = T[consecutive(children - tree.level_offsets[l + 1])] if len(children) else basis.transfer[:0]
    rows[~is_leaf] = below.rows[::2] + below.rows[1::2]
    B = MatrixBatch.empty(rows, basis.ranks[t], dtype, xp)
    M = B if Z is None else MatrixBatch.empty(rows, Z.rows, dtype, xp)
    leaves, inner = (B[consecutive(np.flatnonzero(some))] for some in (is_leaf, ~is_leaf))
    leaves, halves, _, _ = MatrixBatch.place(leaves, inner.halves(below.rows), B, M)  # sizes go up once
    if len(leaves):
        batched.gather(basis.leaf, np.searchsorted(tree.leaves, t[is_leaf]), out=leaves)
    if len(halves):
        batched.gemm(below, basis.transfer[consecutive(children)], out=halves)
    return B, M if Z is None else batched.gemm(B, Z, transb=True, out=M)


def _completed(comm, side, l, t, U, T):
    """U_t and T_t of all local clusters of a level: shared ones come from their owners."""
    local, basis, tree, xp = side.local, side.basis, side.local.tree, comm.xp
    first, span = int(tree.level_offsets[l]), tree.span(l)
    shared = local.partition.shared[local.clusters]
    if len(t) == span.stop - span.start and not shared[span].any():
        return U, T
    foreign = {}
    if (shared[span] & (basis.ranks[span] > 0)).any():  # the same on all ranks: these clusters are
        mine = [i for i, c in enumerate(t) if shared[c]]
        some = {int(local.names[t[i]]): tuple(to_host(M[int(i)]) for M in (U, T)) for i in mine}
        for found in comm.gather(some, NAME):
            foreign |= {int(np.searchsorted(local.names, c)): found[c] for c in found if c not in some}
    ranks, rows = np.zeros(span.stop - span.start, np.int64), tree.sizes[span].copy()
    ranks[t - first], rows[t - first] = T.rows, U.rows
    for c, (V, S) in foreign.items():
        ranks[c - first] = len(S)
        rows[c - first] = 0 if tree.first_child[c] < 0 else len(V)
    all_U = MatrixBatch.empty(rows, ranks, basis.dtype, xp)
    all_T = MatrixBatch.empty(ranks, basis.ranks[span], basis.dtype, xp)
    MatrixBatch.place(all_U, all_T)
    for source, target in ((U, all_U), (T, all_T)):
        batched.gather(source, np.arange(len(t)), out=target[t - first])
    for c, (V, S) in foreign.items():
        all_T[c - first][...] = xp.asarray(S)
        if rows[c - first]:
            all_U[c - first][...] = xp.asarray(V)
    return all_U, all_T


def shared_ranks(comm, sigma, allowance, residual=0.0):
    """(As `batched.shared_ranks` of the values of all ranks: those of this one, (clusters,); what all discard).

    allowance   of the squares of all ranks and of their residuals, of which this one has made `residual`

    The smallest square that is kept is found digit by digit, from sums over the ranks of what begins alike, the first
    with the residuals in it; few that are left are told to all. Squares above the allowance do not count: each alone
    is more than may be spent. LinAlgError on all ranks unless all is finite.
    """
    xp = array_module(sigma)
    squares = xp.square(sigma, dtype=np.float64)
    small = squares[(squares > 0) & (squares <= max(float(allowance), 0.0))]
    made = xp.where(xp.isfinite(squares.sum()), xp.asarray(residual, np.float64), np.nan)
    spent, least, residuals, left = 0.0, 0, 0.0, None
    for low in DIGITS:
        digits = (small.view(np.int64) >> low) & 4095
        begun, sums = _by_digit(comm, made, digits, small)
        if left is None:
            residuals, left, made = begun, max(float(allowance) - begun, 0.0), xp.zeros(())
        total = spent + np.cumsum(sums)
        if low == DIGITS[0] and total[-1] <= left:  # later sums round otherwise, and may fit where these did not
            return xp.count_nonzero(squares > left, axis=1), residuals + float(total[-1])
        digit = int(min(np.searchsorted(total, left, side="right"), np.flatnonzero(sums)[-1]))
        spent, least = spent if digit == 0 else float(total[digit - 1]), least | digit << low
        small = small[digits == digit]
        told = comm.gather(to_host(small) if len(small) * comm.size <= FEW else None, NAME)
        if not any(part is None for part in told):
            kept, spent = _smallest_kept(np.concatenate(told), spent, left)
            return xp.count_nonzero(squares >= kept, axis=1), residuals + spent
    return xp.count_nonzero(squares >= np.int64(least).view(np.float64), axis=1), residuals + spent


def ranks_of_few(comm, sigma, allowance, residual=0.0):
    """As `shared_ranks`, of so few values that all ranks tell them at once; the ranks are on the host."""
    squares = np.square(to_host(sigma), dtype=np.float64)
    made = float(residual) if np.isfinite(squares).all() else np.nan
    told = comm.gather((made, squares[(squares > 0) & (squares <= max(float(allowance), 0.0))]), NAME)
    residuals = sum(made for made, _ in told)
    if not np.isfinite(residuals):
        raise np.linalg.LinAlgError(WRONG)
    left, small = max(float(allowance) - residuals, 0.0), np.concatenate([part for _, part in told])
    if small.sum() <= left:
        return np.count_nonzero(squares > left, axis=1), residuals + float(small.sum())
    kept, spent = _smallest_kept(small, 0.0, left)
    return np.count_nonzero(squares >= kept, axis=1), residuals + spent


def _by_digit(comm, first, digits, squares):
    """Sums over the ranks: a number's, and by digit those of squares, (4096,)."""
    xp = array_module(squares)
    sums = xp.bincount(digits, weights=squares, minlength=4096).astype(np.float64)
    told = comm.sum(to_host(xp.concatenate([first.reshape(1), sums])), NAME)
    if not np.isfinite(told[0]):
        raise np.linalg.LinAlgError(WRONG)
    return float(told[0]), told[1:]


def _smallest_kept(squares, spent, left):
    """(The smallest of some squares that is kept, what is spent then): those before it fit into what is left."""
    every = np.sort(squares)
    total = spent + np.cumsum(every)
    kept = min(int(np.searchsorted(total, left, side="right")), len(every) - 1)
    return float(every[kept]), float(total[kept - 1]) if kept else spent
