"""Truncation of a nested basis to the part that the farfield uses, by SVD up the tree.

    leaves   U_t Z_tᵀ = Û Σ Wᵀ,  keep r columns,  T_t = Û_rᵀ U_t
    inner    the same for [ T_1 E_1 ; T_2 E_2 ], whose Û_r holds the children's new transfer matrices

What is discarded at different clusters is mutually orthogonal, so the squares of the discarded singular values add up
to the squared error of this side. They are therefore spent from one account: each level may discard its share (by
number of clusters) of what is left, smallest values first whichever cluster they belong to.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module
from h2gpu.batched.core.tails import rank_within, tails
from h2gpu.h2matrix.accuracy import DECOMPOSED, Account
from h2gpu.h2matrix.compression.level_store import LevelStore
from h2gpu.progress import phase


@dataclass(frozen=True)
class SharedBudget:
    """Keeps the fewest singular values of a level whose discarded squares sum to the allowance at most."""

    def __call__(self, sigma, allowance):
        """Ranks for sigma (clusters, values), each row descending and padded with zeros, where sigma is."""
        return batched.shared_ranks(sigma, float(allowance) if array_module(sigma) is np else allowance)


@dataclass(frozen=True)
class RelativeToBasis:
    """The paper's rule: every cluster keeps ‖B − B̃‖_F ≤ rtol ‖B‖_F of its own basis matrix B."""

    rtol: float

    def __call__(self, sigma, allowance):
        """Ranks for sigma (clusters, values), each row descending and padded with zeros; no allowance is used."""
        return rank_within(sigma, self.rtol * tails(sigma)[:, :1])


def truncate(basis, weights, budget, decompose, rule):
    """The basis cut down to what the weights leave above the budget: (ClusterBasis, BasisChange).

    basis       ClusterBasis of the uncompressed matrix
    weights     Z_t of the clusters of each level, a list that is emptied, so that their memory serves for what follows;
                or None for weights of identity: the basis itself is truncated
    budget      bound on the sum of discarded squares over all clusters, a number or where the basis is
    decompose   (matrices M, which it may overwrite, squared residual allowed) → left vectors, sigma (clusters, values),
                squared residual made and maybe info: see `decompositions`
    rule        (sigma, allowance) → ranks, where sigma is
    """
    store = LevelStore(basis, weights, getattr(decompose, "resident", 0))
    account = Account(budget, basis.tree.by_level(basis.ranks > 0))
    with phase("truncate", len(basis.tree)) as advance:
        for l in store.levels:
            B, M = store.matrices(l)
            share = account.share(l)
            U, sigma, residual, *info = decompose(M, DECOMPOSED * share)
            del M
            if sigma is None:
                ranks, spent = store.settled(l, U.columns, residual, info)
            else:
                ranks = rule(sigma, share - residual)
                ranks, spent = store.settled(l, ranks, residual + batched.discarded(sigma, ranks), info)
            account.spend(spent)
            store.keep(l, U, B, ranks)
            advance(len(B))
        advance(int(basis.tree.level_offsets[store.top]))
    return store.truncated(account.left)
