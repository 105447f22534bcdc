"""Batched dense linear algebra: many small matrices at once, on the CPU or the GPU.

Every function takes a (batch, m, n) array (NumPy: the CPU; CuPy: the GPU; more leading dimensions and single matrices
work as in NumPy) or a `MatrixBatch` of matrices of differing sizes, and returns the same kind. float32 and float64.
"""

import numpy as np

from h2gpu.batched.arrays import array_module, to_host
from h2gpu.batched.blocksparse import BlockSparse
from h2gpu.batched.ragged import MatrixBatch

__all__ = [
    "BlockSparse",
    "MatrixBatch",
    "block_multiply",
    "frobenius_norms",
    "gather",
    "gemm",
    "leading",
    "pairwise",
    "qr",
    "rsvd",
    "svd",
    "to_host",
    "transpose",
    "triple_product",
]

SVD_METHODS = ("auto", "register", "shared", "block-gram", "block-direct")


def gemm(A, B, C=None, alpha=1, beta=0, transa=False, transb=False, *, out=None):
    """alpha · op(A_b) op(B_b) + beta · C_b for every matrix of the batch; op transposes where asked.

    A, B, C   arrays (batch, ·, ·) of matching inner dimensions, or MatrixBatch all three
    out       optional MatrixBatch (of packed or shared memory) that receives the result

    Raises ValueError where shapes, batch lengths or precisions do not match.
    """
    if isinstance(A, MatrixBatch):
        if all(isinstance(M.rows, np.ndarray) for M in (A, B, C, out) if isinstance(M, MatrixBatch)):
            _check_product(A, B, C, transa, transb, out)
        return _twin(A).gemm(A, B, C, alpha, beta, transa, transb, out)
    A, B = _checked(A, "A"), _checked(B, "B")
    xp = array_module(A, B)
    lead = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    inner = A.shape[-2 if transa else -1], B.shape[-1 if transb else -2]
    if inner[0] != inner[1] or A.dtype != B.dtype:
        raise ValueError(
            f"gemm: expected matching inner dimensions and precisions, got {A.shape} {A.dtype} and {B.shape} {B.dtype}"
            " with the transposes asked for; check transa and transb"
        )
    shape = (*lead, A.shape[-1 if transa else -2], B.shape[-2 if transb else -1])
    C = None if C is None else _stack(xp.broadcast_to(xp.asarray(C, A.dtype), shape))
    A, B = (_stack(xp.broadcast_to(M, (*lead, *M.shape[-2:]))) for M in (A, B))
    return _twin(A).gemm(A, B, C, alpha, beta, transa, transb, None).reshape(shape)


def triple_product(A, B, C, out=None):
    """A_b B_b C_bᵀ for every matrix of three MatrixBatch; out: optional MatrixBatch that receives the results."""
    return _twin(A).triple_product(A, B, C, out)


def qr(A, mode="reduced"):
    """Q_b R_b = A_b by Householder reflections, k = min(m, n).

    A      (batch, m, n) array or MatrixBatch
    mode   "reduced": (Q, R) with Q (batch, m, k) orthonormal and R (batch, k, n) upper triangular; "r": R alone

    Raises ValueError for another mode or a wrong shape. Source: Boukaram et al., section 4.
    """
    if mode not in ("reduced", "r"):
        raise ValueError(f'qr: expected mode "reduced" or "r", got {mode!r}')
    return _over_leading(lambda A: _twin(A).qr(A, mode), A)


def svd(A, vectors="both", method="auto"):
    """U_b diag(s_b) Vt_b = A_b, singular values descending and ≥ 0, k = min(m, n).

    A         (batch, m, n) array or MatrixBatch
    vectors   "both": (U, s, Vt); "left": (U, s); "none": s alone
    method    a kernel of the GPU by name ("register", "shared", "block-gram", "block-direct") or "auto";
              the CPU always calls LAPACK

    U is (batch, m, k), s (batch, k), Vt (batch, k, n). For a MatrixBatch, s is a MatrixBatch of k×1 columns.
    Raises ValueError for bad arguments, LinAlgError naming the matrices that hold NaN or Inf or did not converge.
    """
    if vectors not in ("both", "left", "none"):
        raise ValueError(f'svd: expected vectors "both", "left" or "none", got {vectors!r}')
    if method not in SVD_METHODS:
        raise ValueError(f"svd: expected method one of {', '.join(SVD_METHODS)}, got {method!r}")
    results = _over_leading(lambda A: _twin(A).svd(A, vectors, method), A)
    if isinstance(A, MatrixBatch):
        return results
    if vectors == "none":
        return results[..., 0]
    return tuple(M[..., 0] if i == 1 else M for i, M in enumerate(results))


def rsvd(A, rank, oversample=8, power=0, random_state=None):
    """The leading `rank` singular triplets by randomized projection: U, s, Vt.

    A             (batch, m, n) array or MatrixBatch
    rank          triplets wanted (fewer where min(m, n) is less)
    oversample    additional samples, discarded at the end
    power         power iterations, re-orthogonalized, for slowly decaying spectra
    random_state  seed of the samples: the same seed gives the same result, whatever the batch

    Source: Boukaram et al., algorithm 4; Halko, Martinsson & Tropp (2011).
    """
    for name, value, least in (("rank", rank, 1), ("oversample", oversample, 0), ("power", power, 0)):
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"rsvd: expected an integer {name} ≥ {least}, got {value!r}")
    from h2gpu.batched import randomized

    if isinstance(A, MatrixBatch):
        return randomized.svd(A, rank, oversample, power, random_state)
    A = _checked(A, "A")
    U, s, Vt = randomized.svd(MatrixBatch.from_stack(_stack(A)), rank, oversample, power, random_state)
    (*lead, m, n), k = A.shape, min(rank, *A.shape[-2:])
    return U.entries.reshape(*lead, m, k), s.entries.reshape(*lead, k), Vt.entries.reshape(*lead, k, n)


def frobenius_norms(A):
    """‖A_b‖_F for every matrix: (batch,) float64 where A lives."""
    return _twin(A).frobenius_norms(A)


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


def leading(A, rows, columns):
    """The leading rows[b] × columns[b] part of every matrix, copied into a packed MatrixBatch."""
    return gather(A, np.arange(len(A)), out=MatrixBatch.empty(rows, columns, A.dtype, A.xp))


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


def _twin(A):
    """The back end of an array: h2gpu.batched.cpu or, imported on first need, h2gpu.batched.cuda."""
    xp = A.xp if isinstance(A, MatrixBatch) else array_module(A)
    if xp is np:
        from h2gpu.batched import cpu

        return cpu
    from h2gpu.batched import cuda

    return cuda


def _checked(A, name):
    """A as an array of at least two dimensions in float32 or float64; integers become float64."""
    A = A if array_module(A) is not np else np.asarray(A)
    if A.dtype.kind in "iub":
        A = A.astype(np.float64)
    if A.ndim < 2 or A.dtype not in (np.float32, np.float64):
        raise ValueError(
            f"{name}: expected float32 or float64 matrices of shape (batch, m, n), got shape {A.shape} of {A.dtype}"
        )
    return A


def _stack(A):
    """All leading dimensions as one, C-contiguous."""
    xp = array_module(A)
    count = int(np.prod(A.shape[:-2], dtype=np.int64))
    return xp.ascontiguousarray(A).reshape(count, *A.shape[-2:])


def _over_leading(work, A):
    """work on the (batch, m, n) form of A, results given A's leading dimensions again."""
    if isinstance(A, MatrixBatch):
        return work(A)
    A = _checked(A, "A")
    results = work(_stack(A))
    if isinstance(results, tuple):
        return tuple(M.reshape(*A.shape[:-2], *M.shape[1:]) for M in results)
    return results.reshape(*A.shape[:-2], *results.shape[1:])


def _check_product(A, B, C, transa, transb, out):
    """ValueError unless the ragged products are defined."""
    for name, M in (("B", B), ("C", C), ("out", out)):
        if M is not None and (not isinstance(M, MatrixBatch) or len(M) != len(A) or M.dtype != A.dtype):
            raise ValueError(f"gemm: expected {name} a MatrixBatch of {len(A)} matrices of {A.dtype}, got {M!r}")
    rows, inner_A = (A.columns, A.rows) if transa else (A.rows, A.columns)
    inner_B, columns = (B.columns, B.rows) if transb else (B.rows, B.columns)
    _check_equal("inner dimensions", inner_A, inner_B)
    for name, M in (("C", C), ("out", out)):
        if M is not None:
            _check_equal(f"rows of {name}", M.rows, rows)
            _check_equal(f"columns of {name}", M.columns, columns)


def _check_equal(what, found, expected):
    """ValueError naming the first matrix whose size is not as expected."""
    if (found != expected).any():
        b = int(np.argmax(found != expected))
        raise ValueError(f"gemm: matrices {b} do not match: {what} {found[b]} and {expected[b]}")
