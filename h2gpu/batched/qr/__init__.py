"""QR: by Householder reflections, by Cholesky factors, with column pivoting, and of products that are never stored.

    A_b = Q_b R_b        A_b P_b = Q_b R_b + E_b        W_bᵀ W_b = Σ_l P_lᵀ P_l

Source: Boukaram et al. (2018), "Batched QR and SVD algorithms on GPUs", section 3.
"""

from collections.abc import Sequence
from typing import Any, Literal, overload

from h2gpu.arrays import any_array, array_module
from h2gpu.batched.core.checks import COMPLEX, REAL, check_triangles, checked, refuse_complex, stack, tolerances
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.shapes import over_leading
from h2gpu.batched.qr.products import Products
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Integers, Matrices

__all__ = ["Products", "cholesky_basis", "cholesky_qr", "pivoted_qr", "qr", "triangles_of_products"]

twin = twins_of(__name__)


@overload
def qr(A: Matrices, mode: Literal["reduced"] = ..., *, out: None = ...) -> tuple[Matrices, Matrices]: ...
@overload
def qr(A: Matrices, mode: Literal["r"], *, out: MatrixBatch | None = ...) -> Matrices: ...
@any_array
def qr(A: Matrices, mode: str = "reduced", *, out: MatrixBatch | None = None) -> Matrices | tuple[Matrices, Matrices]:
    """Q_b R_b = A_b by Householder reflections, k = min(m, n).

    A      (batch, m, n) array or MatrixBatch, real or complex
    mode   "reduced": (Q, R) with Q (batch, m, k) orthonormal and R (batch, k, n) upper triangular; "r": R alone
    out    optional MatrixBatch that receives R alone of a MatrixBatch

    The diagonal of R is real, also of complex matrices, and of either sign, as LAPACK's reflections leave it.

    Raises ValueError for another mode or a wrong shape.
    Source: Boukaram et al. (2018), section 3; Golub & Van Loan (2013), section 5.2.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> Q, R = batched.qr(A)
    >>> Q.shape, R.shape, bool(np.allclose(Q @ R, A))
    ((10, 6, 4), (10, 4, 4), True)
    """
    if mode not in ("reduced", "r"):
        raise ValueError(f'qr: expected mode "reduced" or "r", got {brief(mode)}')
    if out is not None:
        check_triangles(A, mode, out)
        return twin(A).qr(A, mode, out)
    return over_leading(lambda A: twin(A).qr(A, mode), A, REAL + COMPLEX)


def cholesky_qr(A: Array, before: Array | None = None) -> tuple[Array, Array, Array | None]:
    """P_b (I + F_b)⁻¹ R_b = A_b, columns of A_b well conditioned up to their sizes: quicker than `qr`, as exact.

    A        (batch, m, n) array, m ≥ n
    before   (batch, n, n) upper triangular X, or None: R_b X_b is given in place of R_b

    P, R and F (None for zeros), float64, upper triangular and no larger than 1e-5: P_b (I + F_b)⁻¹ has orthonormal
    columns, and its product with V is that of P_b with what `svd_of_transposed` makes of V, given F.
    Where this fails P_b and R_b are NaN: on the GPU for columns that depend on each other exactly, NaN, Inf, and
    squares that leave the range of float64. Ill conditioned columns take longer; of eight that are nearly dependent by
    themselves, A − P (I + F)⁻¹ R keeps their condition times rounding in float64. The CPU takes `qr`.

    Raises nothing for such columns: they become NaN; ValueError for complex ones. Source: Fukaya et al. (2020).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> P, R, F = batched.cholesky_qr(A)
    >>> Q = P if F is None else P @ np.linalg.inv(np.eye(4) + F)
    >>> bool(np.allclose(Q @ R, A)), bool(np.allclose(Q.transpose(0, 2, 1) @ Q, np.eye(4)))
    (True, True)
    """
    refuse_complex(A, "cholesky_qr")
    before = None if before is None else array_module(before).ascontiguousarray(before, A.dtype)
    return twin(A).cholesky_qr(A, before)


def cholesky_basis(A):
    """Q_b and upper triangular X_b of condition ≤ √3: Q_b X_b, orthonormal, has the range of A_b. X is None for I.

    A   (batch, m, n) array, m ≥ n

    On the GPU by Cholesky factors, as `cholesky_qr`, and as fallible: where it fails, Q and X hold NaN.
    """
    return twin(A).cholesky_basis(A)


@overload
def pivoted_qr(
    A: Matrices, atol: ArrayLike = ..., mode: Literal["reduced"] = ...
) -> tuple[Matrices, Matrices, Array | MatrixBatch, Integers]: ...
@overload
def pivoted_qr(
    A: Matrices, atol: ArrayLike = ..., *, mode: Literal["r"]
) -> tuple[Matrices, Array | MatrixBatch, Integers]: ...
@any_array
def pivoted_qr(A: Matrices, atol: ArrayLike = 0.0, mode: str = "reduced") -> tuple[Any, ...]:
    """A_b[:, pivots_b] = Q_b R_b + E_b, ‖E_b‖_F ≤ atol_b: QR with column pivoting, stopped as early as atol allows.

    A      (batch, m, n) array or MatrixBatch
    atol   a number or (batch,) of them, ≥ 0; 0: all of A but what is zero
    mode   "reduced", or "r" for what follows without Q

    Q, R, pivots, ranks. Of arrays: Q (batch, m, k) and R (batch, k, n), k = min(m, n), with zeros beyond the rank,
    pivots (batch, n). For a MatrixBatch Q is m × rank, R rank × n, pivots n × 1. ranks: (batch,) on the host.
    Raises ValueError for bad arguments, LinAlgError naming the matrices that hold NaN or Inf.
    Source: Businger & Golub (1965); Golub & Van Loan (2013), section 5.4.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> Q, R, pivots, ranks = batched.pivoted_qr(A)
    >>> bool(np.allclose(np.take_along_axis(A, pivots[:, None, :].astype(int), 2), Q @ R)), ranks.tolist() == [4] * 10
    (True, True)
    """
    if mode not in ("reduced", "r"):
        raise ValueError(f'pivoted_qr: expected mode "reduced" or "r", got {brief(mode)}')
    A = checked(A, "A")
    if isinstance(A, MatrixBatch):
        return twin(A).pivoted_qr(A, tolerances(atol, (len(A),)), mode)
    (*lead, m, n), k = A.shape, min(A.shape[-2:])
    *parts, ranks = twin(A).pivoted_qr(MatrixBatch.from_stack(stack(A)), tolerances(atol, lead), mode, padded=True)
    shapes = ((m, k), (k, n), (n,))[-len(parts) :]
    return *(M.entries.reshape(*lead, *shape) for M, shape in zip(parts, shapes)), ranks.reshape(lead)


def triangles_of_products(products: Sequence[Products], out: MatrixBatch) -> MatrixBatch:
    """W_b with W_bᵀ W_b = Σ_l P_lᵀ P_l over the links l of segment b in all lists, P_l = F_l S_l or F_l S_lᵀ.

    products   list of `Products` of equally many segments
    out        MatrixBatch that receives W_b, n × n with n the columns of its P_l, or without rows for no result

    W_b is Q R for the R-factor of the stack of its P_l: singular values agree to a small multiple of ε ‖P‖. It is
    triangular on the CPU. NaN and Inf give NaN. Raises ValueError where batches or precisions do not match.
    Source: Börm (2010), chapter 6, total weights.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> rng = np.random.default_rng(0)
    >>> F, S = (batched.MatrixBatch.from_stack(rng.standard_normal((6, 5, 5))) for _ in range(2))
    >>> links = batched.Products(F, S, np.array([0, 2, 6]))  # two segments, of two and of four products
    >>> W = batched.MatrixBatch.empty([5, 5], [5, 5], np.float64)
    >>> batched.triangles_of_products([links], W)
    >>> P = np.concatenate([F[l] @ S[l] for l in range(2)])
    >>> bool(np.allclose(W[0].T @ W[0], P.T @ P))
    True
    """
    for kind in products:
        if len(kind.first) != len(out) + 1 or kind.F.dtype != out.dtype or kind.S.dtype != out.dtype:
            raise ValueError(
                f"triangles_of_products: expected lists of {len(out)} segments and of {out.dtype}, got "
                f"{len(kind.first) - 1} segments of {kind.F.dtype} and {kind.S.dtype}"
            )
    twin(out).triangles_of_products(products, out)
