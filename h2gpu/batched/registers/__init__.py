"""Small problems in registers, NOT pivoted: LU, Gauss-Jordan elimination, Cholesky, QR and least squares.

    A = L U     [A | b] → [I | A⁻¹ b]     A = L Lᴴ     A = Q R     min ‖A x − b‖

Without pivoting LU and Gauss-Jordan are safe for diagonally dominant and for positive definite matrices only; elsewhere
they may lose all digits. A breakdown is reported for each matrix: the first pivot that is zero, or whose multipliers
exceed 1/√ε, which leaves less than half of the digits. Moderate growth below that goes unnoticed.

Arrays (batch, m, n) of float32, float64 or complex64, NumPy's: the CPU; CuPy's: the GPU, where the size is fixed when
the kernel is compiled, and `layout` says how it lies in registers: one problem a "thread", or in a thread block "2d",
by "row" or by "column" ("auto" chooses; the CPU takes no notice). Source: Anderson, Sheffield & Keutzer (2012).
"""

import numpy as np

from h2gpu.arrays import any_array
from h2gpu.batched.copies.verdicts import check, refuse
from h2gpu.batched.core.checks import REAL, checked, columns_of, square, stack
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike

DTYPES = (*REAL, np.complex64)
twin = twins_of(__name__)
METHODS = ("lu", "gauss-jordan")


@any_array
def lu(A: ArrayLike, layout: str = "auto", return_info: bool = False) -> Array | tuple[Array, Array]:
    """L_b U_b = A_b, not pivoted: U and below its diagonal L without its ones, (batch, n, n).

    return_info   add (batch,) integers where A lives: 0, or k where step k − 1 is the first that broke down, or −1
                  where the matrix holds NaN or Inf; nothing is raised then

    Raises ValueError for bad arguments, LinAlgError naming the matrices that broke down.
    Source: Anderson, Sheffield & Keutzer (2012), section III.B.

    >>> import numpy as np
    >>> from h2gpu.batched import registers
    >>> A = np.random.default_rng(0).standard_normal((10, 4, 4)) + 4 * np.eye(4)
    >>> LU = registers.lu(A)
    >>> bool(np.allclose((np.tril(LU, -1) + np.eye(4)) @ np.triu(LU), A))
    True
    """
    A = square(A, "lu", DTYPES)
    LU, info = twin(A).lu(stack(A), layout)
    return _told(LU.reshape(A.shape), info.reshape(A.shape[:-2]), "lu", return_info)


@any_array
def cholesky(A: ArrayLike, layout: str = "auto", return_info: bool = False) -> Array | tuple[Array, Array]:
    """L_b L_bᴴ = A_b, L lower triangular, of Hermitian positive definite matrices whose lower triangles are read.

    A thread has a problem: n ≤ 16. return_info and errors as `lu`; a pivot that is not positive is a breakdown.

    Raises as `lu`. Source: Golub & Van Loan (2013), section 4.2; Anderson, Sheffield & Keutzer (2012) for the layout.

    >>> import numpy as np
    >>> from h2gpu.batched import registers
    >>> G = np.random.default_rng(0).standard_normal((10, 4, 4))
    >>> A = G @ G.transpose(0, 2, 1) + np.eye(4)
    >>> L = registers.cholesky(A)
    >>> bool(np.allclose(L @ L.transpose(0, 2, 1), A))
    True
    """
    A = square(A, "cholesky", DTYPES)
    L, info = twin(A).cholesky(stack(A), layout)
    return _told(L.reshape(A.shape), info.reshape(A.shape[:-2]), "cholesky", return_info)


@any_array
def solve(
    A: ArrayLike, b: ArrayLike, method: str = "lu", layout: str = "auto", return_info: bool = False
) -> Array | tuple[Array, Array]:
    """x_b with A_b x_b = b_b, not pivoted, by "lu" or by "gauss-jordan" elimination: like b.

    b   (batch, n) vectors, or (batch, n, k)

    return_info and errors as `lu`.

    Raises as `lu`, and ValueError for another method.
    Source: Anderson, Sheffield & Keutzer (2012), sections III.A and III.B.

    >>> import numpy as np
    >>> from h2gpu.batched import registers
    >>> A = np.random.default_rng(0).standard_normal((10, 4, 4)) + 4 * np.eye(4)
    >>> x = registers.solve(A, np.ones((10, 4)), method="gauss-jordan")
    >>> bool(np.allclose(A @ x[..., None], 1))
    True
    """
    if method not in METHODS:
        raise ValueError(f"solve: expected method one of {', '.join(METHODS)}, got {brief(method)}")
    A = square(A, "solve", DTYPES)
    right = columns_of(A, b, "solve")
    X, info = twin(A).solve(stack(A), right, method == "gauss-jordan", layout)
    return _told(X.reshape(np.shape(b)), info.reshape(A.shape[:-2]), "solve", return_info)


@any_array
def qr(A: ArrayLike, layout: str = "auto", return_info: bool = False) -> tuple[Array, ...]:
    """Householder QR in LAPACK's form: QR, tau with R on and above the diagonal, reflectors below, H = I − τ v vᴴ.

    QR (batch, m, n), tau (batch, min(m, n)). Raises ValueError, and LinAlgError naming matrices with NaN or Inf.
    Source: Anderson, Sheffield & Keutzer (2012), section III.C; LAPACK's GEQRF.

    >>> import numpy as np
    >>> from h2gpu.batched import registers
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> QR, tau = registers.qr(A)
    >>> R = np.triu(QR[:, :4])
    >>> bool(np.allclose(R.transpose(0, 2, 1) @ R, A.transpose(0, 2, 1) @ A)), tau.shape
    (True, (10, 4))
    """
    A = checked(A, "qr", DTYPES)
    QR, tau, info = twin(A).qr(stack(A), layout)
    results = QR.reshape(A.shape), tau.reshape(*A.shape[:-2], min(A.shape[-2:]))
    if return_info:
        return *results, info.reshape(A.shape[:-2])
    check(info, "qr")
    return results


@any_array
def least_squares(A: ArrayLike, b: ArrayLike, layout: str = "auto") -> tuple[Array, Array]:
    """x_b that minimizes ‖A_b x_b − b_b‖ by QR, m ≥ n, and an upper bound on the condition of each A_b.

    b   (batch, m) vectors, or (batch, m, k)

    x (batch, n[, k]); condition (batch,) of A's real precision: Inf or NaN where A is exactly deficient, and x is of no
    use where it exceeds 1/ε. The bound may be far too large; `batched.lstsq` sees to what it leaves in doubt.

    Raises ValueError for bad arguments. Source: Anderson, Sheffield & Keutzer (2012), section III.D.

    >>> import numpy as np
    >>> from h2gpu.batched import registers
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> x, condition = registers.least_squares(A, np.ones((10, 6)))
    >>> bool(np.allclose(x, [np.linalg.lstsq(a, np.ones(6), rcond=None)[0] for a in A])), condition.shape
    (True, (10,))
    """
    A = checked(A, "least_squares", DTYPES)
    if A.shape[-2] < A.shape[-1]:
        raise ValueError(f"least_squares: expected at least as many rows as columns, got {A.shape}; see batched.lstsq")
    right = columns_of(A, b, "least_squares")
    X, condition = twin(A).least_squares(stack(A), right, layout)
    shape = (*A.shape[:-2], A.shape[-1], *np.shape(b)[A.ndim - 1 :])
    return X.reshape(shape), condition.reshape(A.shape[:-2])


def _told(result, info, name, return_info):
    """The result with info, or LinAlgError where info says so."""
    if return_info:
        return result, info
    refuse(info, name, "a breakdown without pivoting")
    return result
