"""Sparse matrices of dense blocks, and nested bases: what the product of an H²-matrix with vectors stands on."""

from h2gpu.blocksparse.block_sparse import BlockSparse, block_multiply
from h2gpu.blocksparse.mixed import MixedBlocks
from h2gpu.blocksparse.nested import Nested

__all__ = ["BlockSparse", "MixedBlocks", "Nested", "block_multiply"]
