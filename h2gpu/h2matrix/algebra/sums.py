"""Sums of H²-matrices on the same trees, exact: ranks add.

    α A + β B:   [U Ũ]_t,   [E 0; 0 Ẽ]_t,   [α S 0; 0 β S̃]_ts,   α D_ts + β D̃_ts

`compress` then finds the ranks that the sum needs. Börm, Efficient Numerical Methods for Non-local Operators (2010),
section 5.3: sums of matrices of two cluster bases lie in the space of the joint one.
"""

from dataclasses import replace

import numpy as np

from h2gpu.batched import MatrixBatch, join, transpose
from h2gpu.blocksparse import BlockSparse, MixedBlocks
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.beside import block_diagonal, side_by_side
from h2gpu.h2matrix.compression.compress import compress
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.h2matrix.norms import check_same_structure
from h2gpu.texts import brief
from h2gpu.typing import Storage


def add(
    A: H2Matrix,
    B: H2Matrix,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    rtol: float | None = None,
    storage: Storage = "auto",
) -> H2Matrix:
    """α A + β B of two H²-matrices on the same trees and blocks, as `build` makes of one leaf_size, eta and split.

    A, B          H2Matrix of one precision; a symmetric one may meet one that is not
    alpha, beta   numbers
    rtol          compress the sum S to ‖result − S‖_F ≤ rtol ‖S‖_F; None: exact to rounding, ranks add, as in A + B
    storage       of the compressed sum: see `compress`

    The promise is against α A + β B of A and B as they are: what they miss themselves comes on top, and where they
    cancel, their rounding. `add(A, B, alpha, beta).relative_error(result)` measures it by blocks, `sampled_error` on
    rows of the sum of covariances.

    Computed blocks are evaluated and stored. Raises ValueError for matrices on other trees or blocks and numbers that
    the precision cannot hold, TypeError where A or B is no H2Matrix. Source: Börm (2010), section 5.3.

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> A = h2gpu.build(sites, cov)
    >>> twice = h2gpu.add(A, A, rtol=1e-6)
    >>> bool(np.allclose(twice @ np.ones(600), 2 * (A @ np.ones(600)), rtol=1e-5))
    True
    """
    if rtol is not None:
        Accuracy.of(rtol, A.dtype if isinstance(A, H2Matrix) else np.float64)
    if isinstance(A, H2Matrix) and isinstance(B, H2Matrix) and A.symmetric != B.symmetric:
        A, B = (unsymmetric(M) if M.symmetric else M for M in (A, B))
    check_same_structure(A, B, "add", "build both with the same parameters")
    alpha, beta = (factor(number, A.dtype) for number in (alpha, beta))
    A, B = A.widened(), B.widened()
    rows = joint_basis(A.row_basis, B.row_basis)
    cols = rows if A.symmetric else joint_basis(A.col_basis, B.col_basis)
    S = block_diagonal(scaled_blocks(blocks_of(A.couplings), alpha), scaled_blocks(blocks_of(B.couplings), beta))
    D = scaled_blocks(blocks_of(A.nearfield), alpha)
    D.buffer[...] += beta * blocks_of(B.nearfield).entries
    couplings = BlockSparse(S, A.couplings.rows, A.couplings.columns, rows.starts[:-1], cols.starts[:-1], A.symmetric)
    total = H2Matrix(rows, cols, couplings, stored(A.nearfield, D))
    return total if rtol is None else compress(total, rtol, storage=storage)


def scaled(A, alpha):
    """α A, exact to rounding: its couplings and dense blocks times α, in the precisions they have where that is exact.

    So −A, 2 A and A / 2 take as many bytes as A; other multiples of blocks in float32 are kept in float64. Raises
    ValueError as `add`.
    """
    alpha = factor(alpha, A.dtype)
    return A.replace(couplings=_multiple(A.couplings, alpha), nearfield=_multiple(A.nearfield, alpha))


def unsymmetric(A):
    """The symmetric matrix A with all of its blocks, as one of two bases that happen to be the same."""
    return H2Matrix(A.row_basis, replace(A.row_basis), _both(A.couplings), _both(A.nearfield))


def joint_basis(U, V):
    """[U_t Ũ_t] of two nested bases on one tree, its transfers [E 0; 0 Ẽ]."""
    leaf, transfer = side_by_side(U.leaf, V.leaf), block_diagonal(U.transfer, V.transfer)
    return ClusterBasis(U.tree, U.ranks + V.ranks, leaf, transfer)


def blocks_of(part):
    """The blocks of couplings or nearfield, of whatever kind, as a MatrixBatch in the precision of the matrix."""
    return part.select(np.arange(len(part))).astype(part.dtype)


def stored(part, blocks):
    """Other blocks at the places of a nearfield's or of couplings."""
    return BlockSparse(blocks, part.rows, part.columns, part.row_starts, part.col_starts, part.symmetric)


def factor(number, dtype):
    """A finite number of the precision. Raises ValueError."""
    if not isinstance(number, (int, float, np.number)) or not np.isfinite(dtype.type(number)):
        raise ValueError(f"factor of a matrix: expected a number that {dtype} can hold, got {brief(number)}")
    return dtype.type(number)


def reciprocal(number, dtype):
    """1 / number, likewise."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1 / factor(number, dtype)
    if not np.isfinite(inverse):
        raise ValueError(f"divisor of a matrix: expected a number whose reciprocal {dtype} can hold, got {number}")
    return inverse


def _multiple(part, alpha):
    """α times couplings or nearfield."""
    if isinstance(part, MixedBlocks):
        exact = scaled_blocks(part.narrow.blocks.astype(part.dtype), alpha)
        with np.errstate(over="ignore"):
            rounded = exact.astype(part.narrow.dtype)
        if bool((rounded.entries == exact.entries).all()):
            wide = stored(part.wide, scaled_blocks(part.wide.blocks, alpha))
            return replace(part, wide=wide, narrow=stored(part.narrow, rounded))
    return stored(part, scaled_blocks(blocks_of(part), alpha))


def scaled_blocks(blocks, alpha):
    """α times each block, packed; the blocks stay as they are."""
    blocks = blocks.packed()
    return MatrixBatch(alpha * blocks.buffer, blocks.offsets, blocks.rows, blocks.columns)


def _both(part):
    """A symmetric part with (s, t) beside every (t, s)."""
    blocks, off = blocks_of(part), np.flatnonzero(part.rows != part.columns)
    rows = np.concatenate([part.rows, part.columns[off]])
    columns = np.concatenate([part.columns, part.rows[off]])
    order = np.lexsort((rows, columns))
    both = join([blocks, transpose(blocks[off])])[order].packed()
    return BlockSparse(both, rows[order], columns[order], part.row_starts, part.col_starts, False)
