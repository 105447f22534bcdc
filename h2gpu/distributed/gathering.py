"""A distributed matrix → the serial one on rank 0, as `h2gpu.save` takes it.

Every cluster comes from its owner, every block from the owner of its row; what is kept twice comes once.
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.blocksparse import BlockSparse, MixedBlocks
from h2gpu.clustering import ClusterTree
from h2gpu.clustering.boxes import Boxes
from h2gpu.distributed.matrix import DistributedH2Matrix
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.matrix import H2Matrix


def gathered_matrix(A: DistributedH2Matrix) -> H2Matrix | None:
    """The H2Matrix of a DistributedH2Matrix, on the host of rank 0, None on others; a call of all ranks.

    Raises what another rank failed with. Source: MPI's gather, for clusters and blocks.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> distributed.gathered_matrix(A).shape
    (600, 600)
    """
    if A.turned:
        raise ValueError("gathered_matrix: expected a matrix that is not transposed, got a transpose; gather A.T")
    sides = [(A.rows, A.row_basis)] if A.symmetric else [(A.rows, A.row_basis), (A.cols, A.col_basis)]
    mine = [_own_basis(*side) for side in sides], [_own_blocks(A, part) for part in (A.far, A.near)]
    parts = A.comm.collect(mine, "the whole matrix")
    trees = [whole_tree(A.comm, local.partition) for local, _ in sides]
    if parts is None:
        return None
    bases = [_basis([bases[i] for bases, _ in parts], tree) for i, tree in enumerate(trees)]
    starts = [[basis.starts[:-1] for basis in bases], [basis.tree.start for basis in bases]]
    blocks = [
        _whole([pair[i] for _, pair in parts], (first[0], first[-1], A.symmetric)) for i, first in enumerate(starts)
    ]
    return H2Matrix(bases[0], bases[-1], *blocks)


def whole_tree(comm, partition, numbered=True):
    """The ClusterTree of a Partition on rank 0, of what the ranks know of it; a call of all ranks.

    numbered   whether with the permutation, or zeros that take no memory
    """
    tree = partition.tree
    if not partition.by_ranks:
        return tree
    own = np.flatnonzero(partition.first == comm.rank)
    linked = (np.where(link[own] >= 0, tree.numbers[link[own]], -1) for link in (tree.parent, tree.first_child))
    boxes = tree.boxes[own]
    mine = tree.numbers[own], tree.start[own], tree.stop[own], *linked, boxes.lower, boxes.upper
    mine += (tree.permutation if numbered else tree.permutation[:0],)
    parts = comm.collect(mine, "the whole tree")
    if parts is None:
        return None
    number, start, stop, parent, child, lower, upper, permutation = (np.concatenate(part) for part in zip(*parts))
    order = np.argsort(number)
    boxes, permutation = Boxes(lower[order], upper[order]), permutation if numbered else np.broadcast_to(0, tree.n)
    return ClusterTree(permutation, *(a[order] for a in (start, stop, parent, child)), boxes, tree.whole_offsets)


def _own_basis(local, basis):
    """(clusters, ranks, leaf matrices, transfers) that the rank owns, on the host."""
    own = np.flatnonzero(local.owned)
    leaves = np.flatnonzero(local.owned[local.tree.leaves])
    leaf, transfer = batched.gather(basis.leaf, leaves), batched.gather(basis.transfer, own)
    return local.names[own], basis.ranks[own], leaf.to(np), transfer.to(np)


def _basis(parts, tree):
    """The ClusterBasis of the ranks' parts."""
    ranks = np.zeros(len(tree), np.int64)
    for clusters, some, *_ in parts:
        ranks[clusters] = some
    above = np.where(tree.parent >= 0, ranks[tree.parent], 0)
    leaf = MatrixBatch.empty(tree.sizes[tree.leaves], ranks[tree.leaves], parts[0][2].dtype)
    transfer = MatrixBatch.empty(ranks, above, parts[0][3].dtype)
    for clusters, _, leaves, transfers in parts:
        at = np.searchsorted(tree.leaves, clusters[tree.first_child[clusters] < 0])
        batched.gather(leaves, np.arange(len(leaves)), out=leaf[at])
        batched.gather(transfers, np.arange(len(transfers)), out=transfer[clusters])
    return ClusterBasis(tree, ranks, leaf, transfer)


def _own_blocks(A, part):
    """[(rows, columns, matrices), …] in the whole trees, on the host: diagonal and off-diagonal ones of owned rows."""
    owned = A.rows.owned[part.off.rows]
    kept = [
        (part.diagonal, np.arange(len(part.diagonal)), A.cols.names, False),
        (part.off, np.flatnonzero(owned & ~part.turned), part.ghosts, False),
    ]
    kept += [(part.off, np.flatnonzero(owned & part.turned), part.ghosts, True)] if A.once else []
    found = []
    for blocks, index, clusters, turned in kept:
        t, s = A.rows.names[blocks.rows[index]], clusters[blocks.columns[index]]
        t, s = (s, t) if turned else (t, s)
        if isinstance(blocks, MixedBlocks):
            for stored, some in ((blocks.wide, ~blocks.narrowed[index]), (blocks.narrow, blocks.narrowed[index])):
                matrices = batched.gather(stored.blocks, blocks.places[index[some]], turned)
                found.append((t[some], s[some], matrices.to(np)))
        else:
            found.append((t, s, batched.gather(blocks.blocks, index, turned).to(np)))
    return found


def _whole(parts, structure):
    """BlockSparse or MixedBlocks of the ranks' blocks, sorted by (column, row)."""
    parts = [piece for part in parts for piece in part]
    kinds = {dtype: [piece for piece in parts if piece[2].dtype == dtype] for dtype in (np.float64, np.float32)}
    stored = {dtype: _sorted(pieces, structure) for dtype, pieces in kinds.items() if any(len(p[0]) for p in pieces)}
    if len(stored) < 2:
        only = next(iter(stored.values()), None) or _sorted(parts, structure)
        if only.dtype == parts[0][2].dtype or np.float64 not in {piece[2].dtype.type for piece in parts}:
            return only
        stored = {np.float64: _sorted(kinds[np.float64], structure), np.float32: only}
    wide, narrow = stored[np.float64], stored[np.float32]
    t, s = (np.concatenate([getattr(wide, name), getattr(narrow, name)]) for name in ("rows", "columns"))
    order = np.lexsort((t, s))
    return MixedBlocks(wide, narrow, (np.arange(len(t)) >= len(wide))[order], t[order], s[order])


def _sorted(pieces, structure):
    """A BlockSparse of blocks of one precision."""
    t, s = (np.concatenate([piece[i] for piece in pieces]) for i in (0, 1))
    order = np.lexsort((t, s))
    blocks = batched.gather(batched.join([piece[2] for piece in pieces]), order)
    return BlockSparse(blocks, t[order], s[order], *structure)
