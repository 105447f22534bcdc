"""A matrix that every rank has → its rows by ranks.

B_rank = { leaf bases, transfers, blocks of the rank's clusters }:  all copied, none computed
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.blocksparse import BlockSparse, MixedBlocks
from h2gpu.distributed.communicators.communicator import Communicator
from h2gpu.distributed.ghosts import Halo, Share
from h2gpu.distributed.matrix import Blocks, DistributedH2Matrix
from h2gpu.distributed.partition import LocalTree, Partition
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.texts import brief


def distribute(A: H2Matrix, comm: Communicator, *, once: bool = False) -> DistributedH2Matrix:
    """This rank's part of an H2Matrix that all ranks have, as `h2gpu.load` gives it: a DistributedH2Matrix.

    A      H2Matrix with stored blocks, where comm.xp computes
    comm   Communicator
    once   as for `covariance_matrix`

    Raises ValueError, on all ranks, for a matrix that is elsewhere or whose blocks are computed.
    Source: Zampini et al. (2022), H2Opus, section 3.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> import h2gpu
    >>> C = h2gpu.covariance_matrix(sites, cov)
    >>> A = distributed.distribute(C, comm)
    >>> bool(np.allclose(A.gather(A @ A.scatter(np.ones(600))), C @ np.ones(600)))
    True
    """
    with comm.together("distribute"):
        stored = all(isinstance(part, (BlockSparse, MixedBlocks)) for part in (A.couplings, A.nearfield))
        if not stored or A.xp is not comm.xp:
            raise ValueError(
                f"distribute: expected an H2Matrix with stored blocks in {comm.xp.__name__} arrays, got {brief(A)}; "
                "see H2Matrix.to_device, and compress"
            )
        sides = [Partition.of(basis.tree, comm.size) for basis in (A.row_basis, A.col_basis)[: 2 - A.symmetric]]
        rows, cols = (LocalTree(side, comm.rank) for side in (sides[0], sides[-1]))
        cols = rows if A.symmetric else cols
        row_basis = _basis(A.row_basis, rows)
        col_basis = row_basis if A.symmetric else _basis(A.col_basis, cols)
        once = bool(once) and A.symmetric
        far, near = (
            Share.of((M.rows, M.columns), A.symmetric, rows.partition, cols.partition, comm.rank, once)
            for M in (A.couplings, A.nearfield)
        )
        tree = cols.tree
        halos = (
            Halo.of(far, cols.numbers, col_basis.starts[:-1], col_basis.ranks, A.col_basis.ranks[far.ghosts]),
            Halo.of(near, cols.numbers, tree.start, tree.sizes, A.col_basis.tree.sizes[near.ghosts]),
        )
        starts = (row_basis.starts[:-1], col_basis.starts[:-1]), (rows.tree.start, tree.start)
        parts = [
            Blocks(*_blocks(blocks, share, rows, cols, halo, *first), halo.on(comm.xp), share.ghosts, share)
            for blocks, share, halo, first in zip((A.couplings, A.nearfield), (far, near), halos, starts)
        ]
        return DistributedH2Matrix(comm, rows, cols, row_basis, col_basis, *parts, once=once)


def _basis(basis, local):
    """The part of a basis on a local tree; leaves of others have no rows."""
    leaves = local.clusters[local.tree.leaves]
    own = local.owned[local.tree.leaves]
    rows = local.tree.sizes[local.tree.leaves]
    leaf = MatrixBatch.empty(rows, basis.ranks[leaves], basis.leaf.dtype, basis.leaf.xp)
    batched.gather(basis.leaf, np.searchsorted(basis.tree.leaves, leaves[own]), out=leaf[own])
    return ClusterBasis(local.tree, basis.ranks[local.clusters], leaf, batched.gather(basis.transfer, local.clusters))


def _blocks(blocks, share, rows, cols, halo, row_starts, col_starts):
    """Diagonal and off-diagonal blocks of a rank, as a pair."""
    t, s = rows.numbers(blocks.rows[share.diagonal]), cols.numbers(blocks.columns[share.diagonal])
    diagonal = _part(blocks, share.diagonal, False, t, s, (row_starts, col_starts, blocks.symmetric))
    off = _part(
        blocks, share.off, share.turned, rows.numbers(share.rows), share.columns, (row_starts, halo.starts, False)
    )
    return diagonal, off


def _part(blocks, index, turned, t, s, structure):
    """Some blocks, turned where said, in the precisions that they have."""
    if not isinstance(blocks, MixedBlocks):
        return BlockSparse(batched.gather(blocks.blocks, index, turned), t, s, *structure)
    narrowed, turned = blocks.narrowed[index], np.broadcast_to(turned, index.shape)
    parts = [
        _part(part, blocks.places[index[chosen]], turned[chosen], t[chosen], s[chosen], structure)
        for part, chosen in ((blocks.wide, ~narrowed), (blocks.narrow, narrowed))
    ]
    return MixedBlocks(*parts, narrowed, t, s)
