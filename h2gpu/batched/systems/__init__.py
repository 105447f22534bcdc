"""Systems of linear equations with many small matrices: LU with partial pivoting, and Cholesky.

    P A = L U,   A x = b ⇔ x = U⁻¹ L⁻¹ P b,   det A = ± Π u_kk         A = L Lᵀ for symmetric positive definite A
    X with op(A) X = α B or X op(A) = α B, A triangular

LU and what follows from it take complex64 and complex128 arrays too. Source: Abdelfattah, Tomov & Dongarra (2019),
"Progressive optimization of batched LU factorization on GPUs".
"""

from math import prod
from typing import Any, Literal, overload

import numpy as np

from h2gpu.arrays import any_array, array_module, as_array
from h2gpu.batched.copies import leading
from h2gpu.batched.copies.identities import with_identities
from h2gpu.batched.copies.verdicts import check, refuse
from h2gpu.batched.core.checks import (
    COMPLEX,
    REAL,
    check_batch,
    columns_of,
    number,
    operand_like,
    square,
    square_batch,
    stack,
)
from h2gpu.batched.core.dispatch import repeated, twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import ranges
from h2gpu.batched.core.shapes import over_leading
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Integers, Matrices

twin = twins_of(__name__)
LU_METHODS = ("auto", "matrix", "shared", "panel", "column", "unblocked")


@overload
def lu_factor(A: Matrices, method: str = ..., return_info: Literal[False] = ...) -> tuple[Matrices, Any]: ...
@overload
def lu_factor(A: Matrices, method: str = ..., *, return_info: Literal[True]) -> tuple[Matrices, Any, Integers]: ...
@repeated
@any_array
def lu_factor(A: Matrices, method: str = "auto", return_info: bool = False) -> tuple[Any, ...]:
    """P_b A_b = L_b U_b with partial pivoting: LU, piv, in SciPy's form.

    A             (batch, m, n) array, also complex, or MatrixBatch
    method        a kernel of the GPU by name or "auto": "matrix" in registers (m, n ≤ 32), "shared" in shared memory,
                  "panel", "column", "unblocked" by panels kept in registers, by columns, not at all; the CPU always
                  calls LAPACK
    return_info   add a (batch,) array of integers, where A lives: 0, or k where pivot k − 1 is the first that is zero,
                  or −1 where the matrix holds NaN or Inf; LU is NaN then, and nothing is raised

    LU (batch, m, n) holds U and below its diagonal L, without its ones; row k was interchanged with row piv[k] ≥ k,
    piv (batch, min(m, n)) int32. For a MatrixBatch piv is a MatrixBatch of columns.
    Raises ValueError for bad arguments, LinAlgError naming the matrices that hold NaN or Inf.
    Source: Abdelfattah, Tomov & Dongarra (2019); Golub & Van Loan (2013), section 3.4; LAPACK's GETRF.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 4, 4)) + 4 * np.eye(4)
    >>> LU, pivots = batched.lu_factor(A)
    >>> LU.shape, pivots.shape
    ((10, 4, 4), (10, 4))
    """
    if method not in LU_METHODS:
        raise ValueError(f"lu_factor: expected method one of {', '.join(LU_METHODS)}, got {brief(method)}")
    LU, piv, info = over_leading(lambda A: twin(A).lu_factor(A, method), A, REAL + COMPLEX)
    if return_info:
        return LU, piv, info
    check(info, "lu_factor")
    return LU, piv


def lu_solve(lu_and_piv: tuple[Matrices, Any], b: Matrices) -> Matrices:
    """x_b with A_b x_b = b_b, from lu_factor of square matrices: like b. NaN where a matrix is singular.

    b   (batch, n) vectors, or (batch, n, k), of the precision of A; for a MatrixBatch a MatrixBatch n × k

    Raises ValueError where shapes or precisions do not match, and for pivots that are no rows; those on the GPU nobody
    reads before they are used. Source: LAPACK's GETRS.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 4, 4)) + 4 * np.eye(4)
    >>> x = batched.lu_solve(batched.lu_factor(A), np.ones((10, 4)))
    >>> bool(np.allclose(A @ x[..., None], 1))
    True
    """
    LU, piv = lu_and_piv
    return by_factors(LU, piv, b)


@repeated
@any_array
def by_factors(LU, piv, b):
    """See `lu_solve`."""
    if isinstance(LU, MatrixBatch):
        right = _columns_of(LU, b, "lu_solve")
        _check_pivots(LU, piv)
        return twin(LU).lu_solve(LU, piv, right)
    LU = square(LU, "lu_solve", REAL + COMPLEX)
    piv = as_array(piv)
    if piv.shape != LU.shape[:-1] or piv.dtype.kind != "i" or array_module(piv) is not array_module(LU):
        raise ValueError(f"lu_solve: expected piv integers {LU.shape[:-1]} where LU is, got {piv.dtype} {piv.shape}")
    if array_module(piv) is np:
        _check_rows(piv, np.arange(LU.shape[-1]), LU.shape[-1])
    piv = array_module(LU).ascontiguousarray(piv, np.int32).reshape(prod(LU.shape[:-2]), LU.shape[-1])
    return _with_columns(lambda F, b: twin(F).lu_solve(F, piv, b), LU, b, "lu_solve")


@repeated
@any_array
def solve(A: ArrayLike | MatrixBatch, b: Matrices) -> Matrices:
    """x_b with A_b x_b = b_b for square matrices: like b.

    A   (batch, n, n) array, also complex, or MatrixBatch     b   as in `lu_solve`

    Raises ValueError as `lu_solve`, LinAlgError naming the matrices that are singular or hold NaN or Inf.
    Source: LAPACK's GESV.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 4, 4)) + 4 * np.eye(4)
    >>> x = batched.solve(A, np.ones((10, 4)))
    >>> bool(np.allclose(A @ x[..., None], 1))
    True
    """
    if isinstance(A, MatrixBatch):
        return _solved(square_batch(A, "solve", REAL + COMPLEX), b, "solve")
    A = square(A, "solve", REAL + COMPLEX)
    X, info = twin(A).solve(stack(A), columns_of(A, b, "solve"))
    refuse(info, "solve", "a zero pivot")
    return X.reshape(np.shape(b))


def _solved(A, b, name):
    """Solutions of a checked MatrixBatch."""
    LU, piv, info = lu_factor(A, return_info=True)
    refuse(info, name, "a zero pivot")
    return lu_solve((LU, piv), b)


@repeated
@any_array
def inv(A: Matrices) -> Matrices:
    """A_b⁻¹ of every square matrix. Raises as `solve`.

    Source: Higham (2002), chapter 14.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 4, 4)) + 4 * np.eye(4)
    >>> bool(np.allclose(A @ batched.inv(A), np.eye(4)))
    True
    """
    if isinstance(A, MatrixBatch):
        A = square_batch(A, "inv", REAL + COMPLEX)
        identity = with_identities(A.rows, A.columns, np.ones(len(A), bool), A.dtype, A.xp)
        return _solved(A, leading(identity, out=_empty_like(A)), "inv")
    A = square(A, "inv", REAL + COMPLEX)
    X, info = twin(A).inv(stack(A))
    refuse(info, "inv", "a zero pivot")
    return X.reshape(A.shape)


@repeated
@any_array
def slogdet(A: ArrayLike | MatrixBatch) -> tuple[Array, Array]:
    """det A_b = sign_b exp(logarithm_b) of every square matrix: sign, logarithm; 0 and −∞ for singular ones.

    (batch,) arrays where A lives, NaN where a matrix holds NaN or Inf. Raises ValueError unless A is square.
    Source: Higham (2002), section 14.6; NumPy's `slogdet`.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> sign, value = batched.slogdet(np.array([[[2.0, 0.0], [0.0, -3.0]]]))
    >>> sign.tolist(), bool(np.allclose(value, np.log(6)))
    ([-1.0], True)
    """
    if isinstance(A, MatrixBatch):
        return twin(A).slogdet(square_batch(A, "slogdet", REAL + COMPLEX))
    A = square(A, "slogdet", REAL + COMPLEX)
    return tuple(M.reshape(A.shape[:-2]) for M in twin(A).slogdet(stack(A)))


@repeated
@any_array
def det(A: ArrayLike | MatrixBatch) -> Array:
    """det A_b of every square matrix: (batch,) where A lives. See `slogdet`.

    Raises ValueError for matrices that are not square. Source: Higham (2002), section 14.6.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> batched.det(np.array([[[2.0, 0.0], [0.0, 3.0]]])).round(12).tolist()
    [6.0]
    """
    if isinstance(A, MatrixBatch):
        return twin(A).det(square_batch(A, "det", REAL + COMPLEX))
    A = square(A, "det", REAL + COMPLEX)
    return twin(A).det(stack(A)).reshape(A.shape[:-2])


@overload
def cholesky(A: Matrices, return_info: Literal[False] = ...) -> Matrices: ...
@overload
def cholesky(A: Matrices, return_info: Literal[True]) -> tuple[Matrices, Integers]: ...
@repeated
@any_array
def cholesky(A: Matrices, return_info: bool = False) -> Matrices | tuple[Matrices, Array]:
    """L_b L_bᵀ = A_b, L lower triangular, for symmetric positive definite matrices, whose lower triangles are read.

    A             (batch, n, n) array, float32 or float64, or MatrixBatch
    return_info   add a (batch,) array of integers, where A lives: 0, or k where pivot k − 1 is the first that is not
                  positive, or −1 where the lower triangle holds NaN or Inf; that of L is NaN then; nothing is raised

    Raises ValueError unless A is square, LinAlgError naming the matrices that have no factor.
    Source: Golub & Van Loan (2013), section 4.2; LAPACK's POTRF.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> G = np.random.default_rng(0).standard_normal((10, 4, 4))
    >>> A = G @ G.transpose(0, 2, 1) + np.eye(4)
    >>> L = batched.cholesky(A)
    >>> bool(np.allclose(L @ L.transpose(0, 2, 1), A))
    True
    """
    A = square_batch(A, "cholesky") if isinstance(A, MatrixBatch) else square(A, "cholesky")
    L, info = over_leading(lambda A: twin(A).cholesky(A), A)
    if return_info:
        return L, info
    refuse(info, "cholesky", "a pivot that is not positive")
    return L


@repeated
@any_array
def cholesky_solve(L: Matrices, b: Matrices) -> Matrices:
    """x_b with L_b L_bᵀ x_b = b_b: like b, which is as in `lu_solve`. Raises as that.

    Source: LAPACK's POTRS.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> G = np.random.default_rng(0).standard_normal((10, 4, 4))
    >>> A = G @ G.transpose(0, 2, 1) + np.eye(4)
    >>> x = batched.cholesky_solve(batched.cholesky(A), np.ones((10, 4)))
    >>> bool(np.allclose(A @ x[..., None], 1))
    True
    """
    if isinstance(L, MatrixBatch):
        return twin(L).cholesky_solve(L, _columns_of(L, b, "cholesky_solve"))
    L = square(L, "cholesky_solve")
    return _with_columns(lambda F, b: twin(F).cholesky_solve(F, b), L, b, "cholesky_solve")


@repeated
@any_array
def trsm(
    A: Matrices,
    B: Matrices,
    alpha: complex = 1,
    side: str = "left",
    lower: bool = True,
    trans: bool = False,
    unit: bool = False,
) -> Matrices:
    """X_b with op(A_b) X_b = alpha · B_b (side "left") or X_b op(A_b) = alpha · B_b ("right"): like B.

    A       (batch, n, n) array or MatrixBatch, one triangle of which is read
    B       (batch, n, k), (batch, k, n) for side "right", or MatrixBatch
    unit    whether the diagonal of A counts as ones and is not read

    Zeros on the diagonal give Inf and NaN. With few right-hand sides the GPU inverts diagonal tiles of large triangles
    and multiplies with them (Nath, Tomov & Dongarra 2010). Raises ValueError for another side, and where shapes, batch
    lengths or precisions do not match.
    Source: Dongarra et al. (1990), level 3 BLAS; Nath, Tomov & Dongarra (2010).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> G = np.random.default_rng(0).standard_normal((10, 4, 4))
    >>> A = G @ G.transpose(0, 2, 1) + np.eye(4)
    >>> L = batched.cholesky(A)
    >>> bool(np.allclose(L @ batched.trsm(L, A), A))
    True
    """
    if side not in ("left", "right"):
        raise ValueError(f'trsm: expected side "left" or "right", got {brief(side)}')
    A = square_batch(A, "trsm") if isinstance(A, MatrixBatch) else square(A, "trsm")
    alpha = number(alpha, "trsm: alpha", A.dtype)
    if isinstance(A, MatrixBatch):
        if not isinstance(B, MatrixBatch):
            raise ValueError(f"trsm: expected B a MatrixBatch as A is, got {brief(B)}")
        rows, columns = (A.rows, B.columns) if side == "left" else (B.rows, A.rows)
        check_batch("trsm", "B", B, A, rows, columns)
        return twin(A).trsm(A, B, alpha, side, lower, trans, unit)
    B = as_array(B)
    n = B.shape[-2 if side == "left" else -1] if B.ndim >= 2 else None
    if n != A.shape[-1]:
        raise ValueError(
            f"trsm: expected B with {A.shape[-1]} {'rows' if side == 'left' else 'columns'}, got {B.shape}"
        )
    B = operand_like("trsm", "B", B, A, (*A.shape[:-2], *B.shape[-2:]))
    return twin(A).trsm(stack(A), stack(B), alpha, side, lower, trans, unit).reshape(B.shape)


def _empty_like(A):
    return MatrixBatch.empty(A.rows, A.columns, A.dtype, A.xp)


def _columns_of(F, b, name):
    """Right-hand sides of a ragged batch, packed, once they are what F needs."""
    square_batch(F, name, REAL + COMPLEX)
    if not isinstance(b, MatrixBatch) or b.dtype != F.dtype or len(b) != len(F) or (b.rows != F.rows).any():
        raise ValueError(f"{name}: expected b a MatrixBatch with the rows and the precision of {F!r}, got {brief(b)}")
    return b.packed()


def _check_pivots(LU, piv):
    """ValueError unless piv is a MatrixBatch of columns of row numbers."""
    columns = isinstance(piv, MatrixBatch) and len(piv) == len(LU) and (piv.rows == LU.rows).all()
    if not columns or piv.dtype != np.int32 or (piv.columns != 1).any() or piv.xp is not LU.xp:
        raise ValueError(f"lu_solve: expected piv a MatrixBatch of int32 columns as LU has rows, got {brief(piv)}")
    if piv.xp is np:
        _check_rows(piv.entries, ranges(np.zeros_like(piv.rows), piv.rows), np.repeat(piv.rows, piv.rows))


def _check_rows(piv, first, rows):
    """ValueError unless first ≤ piv < rows."""
    if ((piv < first) | (piv >= rows)).any():
        raise ValueError("lu_solve: expected piv[k] from k to the last row, as lu_factor counts them, from 0")


def _with_columns(work, F, b, name):
    """work(F, b) on (batch, n, n) and (batch, n, k); b given as vectors or as matrices, and returned so."""
    return work(stack(F), columns_of(F, b, name)).reshape(np.shape(b))
