"""Batched dense linear algebra: many small matrices at once, on the CPU or the GPU.

Every function takes a (batch, m, n) array (NumPy: the CPU; CuPy: the GPU; more leading dimensions and single matrices
work as in NumPy, but for `cholesky_qr` and `svd_of_transposed`) or a `MatrixBatch` of matrices of differing sizes, and
returns the same kind. float32 and float64; `gemm`, `gemv` and systems of linear equations (`lu_factor`, `solve`, `inv`,
`det`) complex64 and complex128 as well, `lstsq` complex64. Small problems in registers, not pivoted:
`h2gpu.batched.small`.
"""

import numpy as np

from h2gpu.batched.arrays import array_module, to_host
from h2gpu.batched.bidiagonal import bidiagonalize
from h2gpu.batched.blas import axpy, gemm, gemv, symv, syrk, trsm
from h2gpu.batched.blocksparse import BlockSparse
from h2gpu.batched.checks import check_products, check_triangles, checked, stack, tolerances
from h2gpu.batched.least_squares import lstsq
from h2gpu.batched.linear import cholesky, cholesky_solve, det, inv, lu_factor, lu_solve, slogdet, solve
from h2gpu.batched.mixed import MixedBlocks
from h2gpu.batched.model import predict_time
from h2gpu.batched.products import Products
from h2gpu.batched.ragged import MatrixBatch
from h2gpu.batched.singular_values import rsvd, svd, svd_of_transposed
from h2gpu.batched.twins import over_leading as _over_leading
from h2gpu.batched.twins import twin as _twin

__all__ = [
    "BlockSparse",
    "MatrixBatch",
    "MixedBlocks",
    "Products",
    "axpy",
    "bidiagonalize",
    "block_multiply",
    "cholesky",
    "cholesky_qr",
    "cholesky_solve",
    "det",
    "discarded",
    "frobenius_norms",
    "gather",
    "gemm",
    "gemv",
    "inv",
    "join",
    "leading",
    "lstsq",
    "lu_factor",
    "lu_solve",
    "pairwise",
    "pivoted_qr",
    "predict_time",
    "qr",
    "rounding_errors",
    "rsvd",
    "shared_ranks",
    "slogdet",
    "solve",
    "svd",
    "svd_of_transposed",
    "symv",
    "syrk",
    "to_host",
    "transpose",
    "triangles_of_products",
    "triple_product",
    "trsm",
    "truncated_svd",
]


def triple_product(A, B, C, out=None):
    """A_b B_b C_bᵀ for every matrix of three MatrixBatch; out: optional MatrixBatch that receives the results.

    Raises ValueError where sizes, batch lengths or precisions do not match.
    """
    check_products("triple_product", [(A, False), (B, False), (C, True)], None, out)
    return _twin(A).triple_product(A, B, C, out)


def triangles_of_products(products, out):
    """W_b with W_bᵀ W_b = Σ_l P_lᵀ P_l over the links l of segment b in all lists, P_l = F_l S_l or F_l S_lᵀ.

    products   list of `Products` of equally many segments
    out        MatrixBatch that receives W_b, n × n with n the columns of its P_l, or without rows for no result

    W_b is Q R for the R-factor of the stack of its P_l: singular values agree to a small multiple of ε ‖P‖. It is
    triangular on the CPU. NaN and Inf give NaN. Raises ValueError where batches or precisions do not match.
    """
    for kind in products:
        if len(kind.first) != len(out) + 1 or kind.F.dtype != out.dtype or kind.S.dtype != out.dtype:
            raise ValueError(
                f"triangles_of_products: expected lists of {len(out)} segments and of {out.dtype}, got "
                f"{len(kind.first) - 1} segments of {kind.F.dtype} and {kind.S.dtype}"
            )
    _twin(out).triangles_of_products(products, out)


def qr(A, mode="reduced", *, out=None):
    """Q_b R_b = A_b by Householder reflections, k = min(m, n).

    A      (batch, m, n) array or MatrixBatch
    mode   "reduced": (Q, R) with Q (batch, m, k) orthonormal and R (batch, k, n) upper triangular; "r": R alone
    out    optional MatrixBatch that receives R alone of a MatrixBatch

    Raises ValueError for another mode or a wrong shape. Source: Boukaram et al., section 4.
    """
    if mode not in ("reduced", "r"):
        raise ValueError(f'qr: expected mode "reduced" or "r", got {mode!r}')
    if out is not None:
        check_triangles(A, mode, out)
        return _twin(A).qr(A, mode, out)
    return _over_leading(lambda A: _twin(A).qr(A, mode), A)


def cholesky_qr(A, before=None):
    """P_b (I + F_b)⁻¹ R_b = A_b, columns of A_b well conditioned up to their sizes: quicker than `qr`, as exact.

    A        (batch, m, n) array, m ≥ n
    before   (batch, n, n) upper triangular X, or None: R_b X_b is given in place of R_b

    P, R and F (None for zeros), float64, upper triangular and no larger than 1e-5: P_b (I + F_b)⁻¹ has orthonormal
    columns, and its product with V is that of P_b with what `svd_of_transposed` makes of V, given F.
    Where this fails P_b and R_b are NaN: on the GPU for columns that depend on each other exactly, NaN, Inf, and
    squares that leave the range of float64. Ill conditioned columns take longer; of eight that are nearly dependent by
    themselves, A − P (I + F)⁻¹ R keeps their condition times rounding in float64. The CPU takes `qr`.
    Source: Fukaya et al. 2020, Shifted Cholesky QR.
    """
    before = None if before is None else array_module(before).ascontiguousarray(before, A.dtype)
    return _twin(A).cholesky_qr(A, before)


def pivoted_qr(A, atol=0.0):
    """A_b[:, pivots_b] = Q_b R_b + E_b, ‖E_b‖_F ≤ atol_b: QR with column pivoting, stopped as early as atol allows.

    A      (batch, m, n) array or MatrixBatch
    atol   a number or (batch,) of them, ≥ 0; 0: all of A but what is zero

    Q, R, pivots, ranks. Of arrays: Q (batch, m, k) and R (batch, k, n), k = min(m, n), with zeros beyond the rank,
    pivots (batch, n). For a MatrixBatch Q is m × rank, R rank × n, pivots n × 1. ranks: (batch,) on the host.
    Raises ValueError for bad arguments, LinAlgError naming the matrices that hold NaN or Inf.
    """
    A = checked(A, "A")
    if isinstance(A, MatrixBatch):
        return _twin(A).pivoted_qr(A, tolerances(atol, (len(A),)))
    (*lead, m, n), k = A.shape, min(A.shape[-2:])
    Q, R, pivots, ranks = _twin(A).pivoted_qr(MatrixBatch.from_stack(stack(A)), tolerances(atol, lead), padded=True)
    shapes = (m, k), (k, n), (n,)
    return *(M.entries.reshape(*lead, *shape) for M, shape in zip((Q, R, pivots), shapes)), ranks.reshape(lead)


def truncated_svd(A, atol, *, return_info=False, consume=False):
    """Left singular vectors and values of the part of A_b that a pivoted QR stopped at atol_b leaves: U, s, missed.

    A             (batch, m, n) array or MatrixBatch
    atol          a number or (batch,) of them, ≥ 0
    missed        (batch,) float64 where A lives: ‖A_b − U_b U_bᵀ A_b‖_F ≤ atol_b
    return_info   of a MatrixBatch: nothing is waited for where the GPU can do without; sizes of U and s stay where A
                  lives then, s has zeros up to its bounds, and info is added, as by `svd`; the CPU raises
    consume       with return_info: U may lie where A was

    For a MatrixBatch U is m × rank and s rank × 1; of arrays U is (batch, m, k), s (batch, k), zeros beyond the rank.
    The rank is the least that atol allows on the CPU, and nearly so on the GPU. Raises as `pivoted_qr`.
    """
    A = checked(A, "A")
    if isinstance(A, MatrixBatch):
        return _twin(A).truncated_svd(A, tolerances(atol, (len(A),)), return_info=return_info, consume=consume)
    (*lead, m, _), k = A.shape, min(A.shape[-2:])
    U, s, missed = _twin(A).truncated_svd(MatrixBatch.from_stack(stack(A)), tolerances(atol, lead), padded=True)
    return U.entries.reshape(*lead, m, k), s.entries.reshape(*lead, k), missed.reshape(lead)


def shared_ranks(sigma, allowance):
    """How many values each row keeps when as many of all as can be, the smallest first, are discarded: (batch,).

    sigma      (batch, values), each row descending, padded with zeros
    allowance  what the discarded squares may sum to, a number or an array of one where sigma is
    """
    return _twin(sigma).shared_ranks(sigma, allowance)


def discarded(sigma, ranks):
    """Σ over the rows of sigma (batch, values) of the squares from the ranks[b]-th on, float64: where sigma is."""
    return _twin(sigma).discarded(sigma, ranks)


def frobenius_norms(A):
    """‖A_b‖_F for every matrix: (batch,) float64 where A lives."""
    return _over_leading(lambda A: _twin(A).frobenius_norms(A), A)


def rounding_errors(A):
    """‖A_b − float32(A_b)‖_F for every matrix: (batch,) float64 where A lives; infinite where float32 overflows."""
    return _over_leading(lambda A: _twin(A).rounding_errors(A), A)


def gather(A, index, transpose=False, out=None):
    """out_b = the leading part of A_index[b] (of its transpose where `transpose` says so), as large as out_b.

    Without `out`: whole matrices, as a new packed MatrixBatch. Raises ValueError for an index that A does not have, or
    an `out` larger than the matrix it takes from.
    """
    index = np.asarray(index, np.int64)
    transpose = np.broadcast_to(transpose, index.shape)
    if len(index) and not (index.min() >= 0 and index.max() < len(A)):
        raise ValueError(f"gather: expected indices of {len(A)} matrices, got {index.min()} to {index.max()}")
    rows, columns = A.rows[index], A.columns[index]
    rows, columns = np.where(transpose, columns, rows), np.where(transpose, rows, columns)
    if out is None:
        out = MatrixBatch.empty(rows, columns, A.dtype, A.xp)
    elif len(out) != len(index) or (out.rows > rows).any() or (out.columns > columns).any():
        raise ValueError(f"gather: expected out of {len(index)} matrices no larger than those of A, got {out!r}")
    return _twin(A).gather(A, index, transpose, out)


def leading(A, rows=None, columns=None, *, out=None):
    """The leading rows[b] × columns[b] part of every matrix, copied into a packed MatrixBatch, or as large as out.

    Of matrices whose sizes are on the device, nobody checks that they are as large.
    """
    out = MatrixBatch.empty(rows, columns, A.dtype, A.xp) if out is None else out
    if array_module(A.rows) is np:
        return gather(A, np.arange(len(A)), out=out)
    return _twin(A).gather(A, None, False, out)


def join(batches, out):
    """out_b = the leading part, as large as out_b, of the b-th matrix of several batches behind one another.

    Raises ValueError unless out has as many matrices as they; that theirs are as large is their maker's business.
    """
    if len(out) != sum(map(len, batches)):
        raise ValueError(f"join: expected out of {sum(map(len, batches))} matrices, got {out!r}")
    return _twin(out).join(batches, out)


def transpose(A):
    """A_bᵀ, copied into a packed MatrixBatch."""
    return gather(A, np.arange(len(A)), True)


def pairwise(function, X, Y, out=None):
    """Function values at all pairs of points of two sets, for many pairs of sets: A_b[i, j] = function(X_b[i], Y_b[j]).

    function   function(x, y) by broadcasting over all but the last dimension
    X, Y       MatrixBatch of points × dim, the points of one buffer, such as `MatrixBatch.from_rows` makes
    """
    if out is None:
        out = MatrixBatch.empty(X.rows, Y.rows, X.dtype, X.xp, (X.bounds[0], Y.bounds[0]))
    return _twin(out).pairwise(function, X, Y, out)


def block_multiply(A, x, size, transpose=False):
    """y = A x (or Aᵀ x) for a BlockSparse A; x (·, right-hand sides) C-contiguous, y has `size` rows."""
    return _twin(A.blocks).block_multiply(A, x, size, transpose)
