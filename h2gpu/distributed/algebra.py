"""Sums and recompression of matrices by ranks: as `h2matrix.algebra.sums` and `h2matrix.compression.compress`.

    α A + β B   ranks add, nothing travels     compress   R of ghosts → weights → truncation → T of ghosts → project

A rank has all couplings of its clusters in a symmetric matrix, in a rectangular one those of its rows alone: weights of
the columns would have to travel, so that only symmetric ones are compressed again. Börm (2010), chapters 5 and 6.
"""

from collections import namedtuple

import numpy as np

from h2gpu.batched import join, transpose
from h2gpu.blocksparse import BlockSparse
from h2gpu.distributed.compression import (
    PARTS,
    by_basis,
    changes_of_ghosts,
    discarded,
    far_blocks,
    of_ghosts,
    projected,
)
from h2gpu.distributed.ghosts import with_ghosts
from h2gpu.distributed.matrix import Blocks, DistributedH2Matrix
from h2gpu.distributed.rounding import rounded
from h2gpu.distributed.truncation import truncate
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.algebra.sums import blocks_of, factor, joint_basis, scaled_blocks, stored
from h2gpu.h2matrix.beside import block_diagonal
from h2gpu.h2matrix.compression.compress import check_method
from h2gpu.h2matrix.compression.decompositions import STRATEGIES
from h2gpu.h2matrix.compression.orthogonalization import triangular_factors
from h2gpu.h2matrix.compression.precision import check_storage
from h2gpu.h2matrix.compression.weights import total_weights
from h2gpu.h2matrix.norms import farfield_square, nearfield_square
from h2gpu.texts import brief
from h2gpu.typing import Storage

Side = namedtuple("Side", "local basis counts")  # as of `construction.Side`


def add(A: DistributedH2Matrix, B: DistributedH2Matrix, alpha: float = 1.0, beta: float = 1.0) -> DistributedH2Matrix:
    """α A + β B of two matrices on the same trees, blocks and ranks, exact to rounding; a call of all ranks.

    A, B          DistributedH2Matrix of one precision, neither of them a transpose
    alpha, beta   numbers

    Ranks add, as in `h2gpu.add`; `compress` finds those that the sum needs. Raises, on all ranks, ValueError for
    matrices that do not fit and for numbers that the precision cannot hold. Source: Börm (2010), section 5.3.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> x = A.scatter(np.ones(600))
    >>> bool(np.allclose(distributed.add(A, A, beta=2.0) @ x, 3 * (A @ x)))
    True
    """
    with A.comm.together("add"):
        if not _alike(A, B):
            raise ValueError(
                f"add: expected matrices on the same trees, blocks and ranks, got {brief(A)} and {brief(B)}"
            )
        alpha, beta = (factor(number, A.dtype) for number in (alpha, beta))
        bases = [
            joint_basis(U.widened(), V.widened()) for U, V in ((A.row_basis, B.row_basis), (A.col_basis, B.col_basis))
        ]
        bases = [bases[0], bases[0] if A.symmetric else bases[1]]
        ranks = sum(np.diff(M.far.halo.starts) for M in (A, B))
        starts = bases[0].starts[:-1], bases[1].starts[:-1]
        ends = np.concatenate([[0], np.cumsum(ranks)])
        diagonal = _beside(A.far.diagonal, B.far.diagonal, alpha, beta, starts)
        off = _beside(A.far.off, B.far.off, alpha, beta, (starts[0], ends))
        far = far_blocks(A.comm, diagonal, off, A.far.share, A.cols, bases[1], ranks)
        sums = [_sum(*parts, alpha, beta) for parts in ((A.near.diagonal, B.near.diagonal), (A.near.off, B.near.off))]
        near = Blocks(*sums, A.near.halo, A.near.ghosts, A.near.share)
        return DistributedH2Matrix(A.comm, A.rows, A.cols, *bases, far, near, once=A.once)


def compress(
    A: DistributedH2Matrix,
    rtol: float = 1e-6,
    *,
    method: str = "weighted",
    svd: str = "auto",
    storage: Storage = "auto",
) -> DistributedH2Matrix:
    """A smaller matrix Ã with ‖A − Ã‖_F ≤ rtol ‖A‖_F by ranks; a call of all ranks.

    A                            symmetric DistributedH2Matrix, its off-diagonal blocks with both owners (not `once`)
    rtol, method, svd, storage   as for `h2gpu.compress`, svd one of its names; the result is that up to rounding

    Raises, on all ranks, ValueError for another matrix, an rtol out of range or an unknown method, svd or storage.
    Source: Börm (2010), chapter 6; Zampini et al. (2022), H2Opus, section 3.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> B, x = distributed.compress(A, 1e-3), A.scatter(np.ones(600))
    >>> B.nbytes < A.nbytes, bool(np.allclose(B @ x, A @ x, rtol=1e-2))
    (True, True)
    """
    comm = A.comm
    with comm.together("compress"):
        if not A.symmetric or A.once:
            raise ValueError(
                f"compress: expected a symmetric matrix with its off-diagonal blocks at both owners, got {brief(A)}; "
                "gather it, and compress by one process"
            )
        accuracy = Accuracy.of(rtol, A.dtype)
        check_method(method)
        if svd not in STRATEGIES:
            raise ValueError(f'svd: expected "auto", "jacobi" or "randomized", got {brief(svd)}')
        check_storage(storage)
        rounds, share, local = accuracy.rounds(storage), A.far.share, A.cols
        side = Side(local, A.row_basis.widened(), _counts(A))
        bases, T, far = _compressed(A, side, method, accuracy.unrounded if rounds else accuracy, STRATEGIES[svd])
        parts = dict(zip(PARTS, (*far, A.near.diagonal, A.near.off)))
        if rounds:
            parts, bases = rounded(comm, parts, dict.fromkeys(PARTS, 1), bases, accuracy)
        far = far_blocks(comm, parts["far"], parts["far off"], share, local, bases[0], T.rows)
        near = Blocks(parts["near"], parts["near off"], A.near.halo, A.near.ghosts, A.near.share)
        return DistributedH2Matrix(comm, A.rows, A.cols, bases[0], bases[0], far, near)


def _compressed(A, side, method, accuracy, decompose):
    """[ClusterBasis], T of ghosts and the farfield's parts, nothing rounded."""
    comm, share, couplings = A.comm, A.far.share, (A.far.diagonal, A.far.off)
    near = sum(float(nearfield_square(part)) for part in (A.near.diagonal, A.near.off))
    if method == "basis":
        return by_basis(comm, [side], couplings, share, dict.fromkeys(PARTS, 1), near, accuracy, decompose)
    bases, changes = _truncated(A, side, near, accuracy, decompose)
    T = changes_of_ghosts(comm, share, side.local, changes)
    return bases, T, projected(couplings, side.local, share, bases, changes, T)


def _truncated(A, side, square, accuracy, decompose):
    """[ClusterBasis] and [BasisChange] of a symmetric matrix; square: of this rank's nearfield."""
    R = triangular_factors(side.basis)
    ghosts = of_ghosts(A.comm, A.far.share, side.local, R, "R of ghosts", stacked=True)
    Z = total_weights(side.basis, _all_couplings(A, side.basis, ghosts), with_ghosts(R, ghosts))
    square += float(farfield_square(side.basis, Z))
    budget, decompose = discarded(A.comm, square, side.local.partition.tree.levels, accuracy, decompose)
    basis, change = truncate(A.comm, side, Z, budget, decompose)
    return [basis], [change]


def _all_couplings(A, basis, ghosts):
    """The couplings of a rank's clusters, none meant twice: columns are local clusters, then ghosts."""
    inner, off = A.far.diagonal, A.far.off
    t = np.concatenate([inner.rows, inner.columns, off.rows])
    s = np.concatenate([inner.columns, inner.rows, len(basis.ranks) + off.columns])
    order = np.lexsort((t, s))
    blocks = [blocks_of(inner), transpose(blocks_of(inner)), blocks_of(off)]
    starts = basis.starts[:-1], np.append(basis.starts[:-1], basis.starts[-1] + A.far.halo.starts)
    return BlockSparse(join(blocks)[order].packed(), t[order], s[order], *starts, False)


def _counts(A):
    """(2, levels) clusters of all ranks by level, and those with a basis."""
    local, levels = A.rows, A.rows.partition.tree.levels
    counts = np.zeros((2, levels), np.int64)
    for row, chosen in zip(counts, (local.owned, local.owned & (A.row_basis.ranks > 0))):
        found = local.tree.by_level(chosen)
        row[: len(found)] = found
    return A.comm.sum(counts, "clusters by level")


def _beside(A, B, alpha, beta, starts):
    """[α S 0; 0 β S̃] of all couplings."""
    S = block_diagonal(scaled_blocks(blocks_of(A), alpha), scaled_blocks(blocks_of(B), beta))
    return BlockSparse(S, A.rows, A.columns, *starts, A.symmetric)


def _sum(A, B, alpha, beta):
    """α D + β D̃ of all dense blocks."""
    D = scaled_blocks(blocks_of(A), alpha)
    D.buffer[...] += beta * blocks_of(B).entries
    return stored(A, D)


def _alike(A, B):
    """Whether all ranks find the same structure in both."""
    same = isinstance(B, DistributedH2Matrix) and A.comm is B.comm and not (A.turned or B.turned)
    same = same and (A.symmetric, A.once, A.dtype, A.shape) == (B.symmetric, B.once, B.dtype, B.shape)
    for side in ("rows", "cols") if same else ():
        a, b = (getattr(M, side) for M in (A, B))
        pairs = (a.names, b.names), (a.tree.start, b.tree.start), (a.tree.stop, b.tree.stop)
        own = (part.partition.points(A.comm.rank) for part in (a, b))
        same = same and all(np.array_equal(*pair) for pair in (*pairs, tuple(own)))
    for part in ("far", "near") if same else ():
        a, b = (getattr(M, part) for M in (A, B))
        arrays = [(x.diagonal.rows, x.diagonal.columns, x.off.rows, x.off.columns, x.ghosts) for x in (a, b)]
        same = same and all(map(np.array_equal, *arrays))
    return A.comm.sum(np.array([float(same)]), "whether two matrices fit")[0] == A.comm.size
