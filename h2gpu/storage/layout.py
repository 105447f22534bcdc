"""H2Matrix ↔ named arrays, as they stand in a file.

Offsets and shapes of all blocks follow from the trees and ranks, so that only these are kept: leaf t is
size(t) × rank(t), transfer t is rank(t) × rank(parent), coupling (t, s) is rank(t) × rank(s), a dense block
size(t) × size(s); C order, one after the other. Of blocks in two precisions, those of each follow one another.
"""

from dataclasses import replace

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.blocksparse import BlockSparse, MixedBlocks
from h2gpu.clustering import ClusterTree
from h2gpu.clustering.boxes import Boxes
from h2gpu.h2matrix import ClusterBasis, H2Matrix
from h2gpu.typing import DTypeLike

TREE = ("permutation", "start", "stop", "parent", "first_child", "level_offsets")
BOXES = ("lower", "upper")
INTEGER = ("int64",)
REAL = ("float32", "float64")
MIXED = 2  # the version of files in two precisions


def names(symmetric, version):
    """{dataset name: (allowed types, dimensions)} of a file."""
    layout = {}
    for side in ("row",) if symmetric else ("row", "col"):
        layout |= {f"{side}_tree/{name}": (INTEGER, 1) for name in TREE}
        layout |= {f"{side}_tree/{name}": (REAL, 2) for name in BOXES}
        layout |= {f"{side}_basis/ranks": (INTEGER, 1)}
        layout |= {f"{side}_basis/{name}": (REAL, 1) for name in ("leaf", "transfer")}
    for part in ("couplings", "nearfield"):
        layout |= {f"{part}/rows": (INTEGER, 1), f"{part}/columns": (INTEGER, 1), f"{part}/entries": (REAL, 1)}
        if version == MIXED:
            layout |= {f"{part}/narrowed": (INTEGER, 1), f"{part}/entries32": (("float32",), 1)}
    return layout


def is_stored(blocks):
    """Whether these blocks are stored, in one precision or in two."""
    return isinstance(blocks, (BlockSparse, MixedBlocks))


def arrays_of(B):
    """{name: NumPy array} of an H2Matrix; buffers on a GPU come down, once each."""
    arrays = {}
    sides = {"row": B.row_basis} if B.symmetric else {"row": B.row_basis, "col": B.col_basis}
    for side, basis in sides.items():
        tree = basis.tree
        arrays |= {f"{side}_tree/{name}": _integers(getattr(tree, name)) for name in TREE}
        arrays |= {f"{side}_tree/{name}": np.ascontiguousarray(getattr(tree.boxes, name)) for name in BOXES}
        arrays[f"{side}_basis/ranks"] = _integers(basis.ranks)
        arrays[f"{side}_basis/leaf"] = to_host(basis.leaf.entries)
        arrays[f"{side}_basis/transfer"] = to_host(basis.transfer.entries)
    parts = {"couplings": B.couplings, "nearfield": B.nearfield}
    mixed = any(isinstance(blocks, MixedBlocks) for blocks in parts.values()) or B.row_basis.leaf.dtype != B.dtype
    for part, blocks in parts.items():
        arrays[f"{part}/rows"], arrays[f"{part}/columns"] = _integers(blocks.rows), _integers(blocks.columns)
        arrays |= _entries_of(part, blocks, mixed)
    return arrays


def _entries_of(part, blocks, mixed):
    """The entries of stored blocks: all of them, or in a mixed matrix those of either precision."""
    if isinstance(blocks, MixedBlocks):
        narrowed, wide, narrow = blocks.narrowed, blocks.wide.blocks.entries, blocks.narrow.blocks.entries
    else:
        narrowed, wide, narrow = np.zeros(len(blocks)), blocks.blocks.entries, np.zeros(0, np.float32)
    arrays = {f"{part}/entries": to_host(wide)}
    return arrays | ({f"{part}/narrowed": _integers(narrowed), f"{part}/entries32": to_host(narrow)} if mixed else {})


def matrix_of(arrays, symmetric):
    """The H2Matrix of checked arrays, sharing their memory."""
    rows = _basis(arrays, "row")
    cols = rows if symmetric else _basis(arrays, "col")
    couplings = _blocks(arrays, "couplings", rows.ranks, cols.ranks, rows.starts[:-1], cols.starts[:-1], symmetric)
    sizes, starts = (rows.tree.sizes, cols.tree.sizes), (rows.tree.start, cols.tree.start)
    return H2Matrix(rows, cols, couplings, _blocks(arrays, "nearfield", *sizes, *starts, symmetric))


def _blocks(arrays, part, heights, widths, row_starts, col_starts, symmetric):
    """A BlockSparse, or MixedBlocks where some of its blocks are in float32."""
    rows, columns = arrays[f"{part}/rows"], arrays[f"{part}/columns"]

    def part_of(chosen, name):
        t, s = rows[chosen], columns[chosen]
        return BlockSparse(
            _packed(arrays[f"{part}/{name}"], heights[t], widths[s]), t, s, row_starts, col_starts, symmetric
        )

    narrowed = arrays.get(f"{part}/narrowed", np.zeros(0)).astype(bool)
    if not narrowed.any():
        return part_of(slice(None), "entries")
    return MixedBlocks(part_of(~narrowed, "entries"), part_of(narrowed, "entries32"), narrowed, rows, columns)


def parent_ranks(ranks, parent):
    """(clusters,) columns of each transfer matrix: the parent's rank, none at the root."""
    return np.where(parent >= 0, ranks[parent], 0)


def in_precision(B: H2Matrix, dtype: DTypeLike) -> H2Matrix:
    """The same matrix computing in float32 or float64; itself when that is so already."""
    if B.dtype == np.dtype(dtype):
        return B

    def basis(basis):
        return replace(basis, leaf=basis.leaf.astype(dtype), transfer=basis.transfer.astype(dtype))

    def blocks(blocks):
        if isinstance(blocks, MixedBlocks):
            return MixedBlocks.of(blocks, np.ones(len(blocks), bool)).narrow
        return replace(blocks, blocks=blocks.blocks.astype(dtype))

    rows = basis(B.row_basis)
    cols = rows if B.symmetric else basis(B.col_basis)
    return B.replace(row_basis=rows, col_basis=cols, couplings=blocks(B.couplings), nearfield=blocks(B.nearfield))


def _basis(arrays, side):
    """The cluster basis of one side."""
    boxes = Boxes(*(arrays[f"{side}_tree/{name}"] for name in BOXES))
    tree = ClusterTree(boxes=boxes, **{name: arrays[f"{side}_tree/{name}"] for name in TREE})
    ranks = arrays[f"{side}_basis/ranks"]
    leaf = _packed(arrays[f"{side}_basis/leaf"], tree.sizes[tree.leaves], ranks[tree.leaves])
    transfer = _packed(arrays[f"{side}_basis/transfer"], ranks, parent_ranks(ranks, tree.parent))
    return ClusterBasis(tree, ranks, leaf, transfer)


def _packed(buffer, rows, columns):
    """A batch over a given buffer."""
    offsets = np.cumsum(rows * columns) - rows * columns
    return MatrixBatch(buffer, offsets, rows, columns)


def _integers(array):
    return np.ascontiguousarray(to_host(array), dtype=np.int64)
