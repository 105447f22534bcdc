"""Products of matrices, with vectors and of symmetric matrices, and sums: many small matrices at once.

    gemm  α op(A) op(B) + β C
    gemv  α op(A) x + β y      symv  α A x + β y, A = Aᵀ      syrk  α op(A) op(A)ᵀ + β C
    axpy  α X + Y             triple_product  A B Cᵀ

Names are those of the Basic Linear Algebra Subprograms. Symmetric and triangular matrices have one triangle read,
`lower` or upper; vectors of a MatrixBatch are a MatrixBatch of columns. gemm and gemv take complex64 and complex128
arrays too.
"""

import numpy as np

from h2gpu.arrays import any_array, array_module, as_array
from h2gpu.batched.core.checks import (
    COMPLEX,
    REAL,
    check_batch,
    check_products,
    checked,
    number,
    of_precision,
    operand_like,
    square,
    square_batch,
    stack,
)
from h2gpu.batched.core.dispatch import repeated, twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike, Matrices

twin = twins_of(__name__)
GEMM_METHODS = ("auto", "fixed", "redirected", "tiles", "vendor")


@repeated
@any_array
def gemm(
    A: Matrices,
    B: Matrices,
    C: Matrices | None = None,
    alpha: complex = 1,
    beta: complex = 0,
    transa: bool = False,
    transb: bool = False,
    *,
    method: str = "auto",
    out: MatrixBatch | None = None,
    triangular: bool = False,
) -> Matrices:
    """alpha · op(A_b) op(B_b) + beta · C_b for every matrix of the batch; op transposes where asked.

    A, B, C     arrays (batch, ·, ·) of matching inner dimensions, also complex, or MatrixBatch all three
    method      a kernel of the GPU by name or "auto": "fixed" compiled for the sizes (of one shape, up to 160),
                "tiles", "redirected" (ragged, up to 80), "vendor" for cuBLAS; where it is not for a batch, another
                is taken. "auto" compiles where that was measured faster and pays: untransposed stacks up to 160,
                nearly cubic, batch · m n k ≥ 2³⁰ (products/choice.py). "fixed", so "auto" there, splits float32 of
                m n k > 33³ into parts: infinite entries, and those beyond 3.4e38, give NaN
    out         optional MatrixBatch (of packed or shared memory), or contiguous array, that receives the result
    triangular  the A_b of a MatrixBatch are upper triangular or trapezoidal: zeros below may be passed over

    Raises ValueError for another method, and where shapes, batch lengths or precisions do not match.
    Source: Dongarra et al. (1990), level 3 BLAS; Nath, Tomov & Dongarra (2010).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> bool(np.allclose(batched.gemm(A, A, transa=True), A.transpose(0, 2, 1) @ A))
    True
    """
    if method not in GEMM_METHODS:
        raise ValueError(f"gemm: expected method one of {', '.join(GEMM_METHODS)}, got {brief(method)}")
    if isinstance(A, MatrixBatch):
        check_products("gemm", [(A, transa), (B, transb)], C, out)
        alpha, beta = _factors("gemm", A, alpha, beta)
        return twin(A).gemm(A, B, C, alpha, beta, transa, transb, out, method, triangular)
    A, B = checked(A, "A", REAL + COMPLEX), checked(B, "B", REAL + COMPLEX)
    xp = array_module(A, B)
    lead = A.shape[:-2]
    if lead != B.shape[:-2]:
        lead = np.broadcast_shapes(lead, B.shape[:-2])
        A, B = (xp.broadcast_to(M, (*lead, *M.shape[-2:])) for M in (A, B))
    inner = A.shape[-2 if transa else -1], B.shape[-1 if transb else -2]
    if inner[0] != inner[1] or A.dtype != B.dtype:
        raise ValueError(
            f"gemm: expected matching inner dimensions and precisions, got {A.shape} {A.dtype} and {B.shape} {B.dtype}"
            " with the transposes asked for; check transa and transb"
        )
    shape = (*lead, A.shape[-1 if transa else -2], B.shape[-2 if transb else -1])
    alpha, beta = _factors("gemm", A, alpha, beta)
    if C is not None:
        C = as_array(C)
        C = stack(xp.broadcast_to(of_precision("gemm", "C", C, A), shape))
    A, B = stack(A), stack(B)
    if out is not None:
        out = _out(out, shape, A.dtype)
    return twin(A).gemm(A, B, C, alpha, beta, transa, transb, out, method).reshape(shape)


def _out(out, shape, dtype):
    """The (batch, m, n) view of the array that receives a result. ValueError for another shape, precision or order."""
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
        raise ValueError(f"gemm: expected out contiguous, {shape} {dtype}, got {out.shape} {out.dtype}")
    return stack(out)


def triple_product(A: MatrixBatch, B: MatrixBatch, C: MatrixBatch, out: MatrixBatch | None = None) -> MatrixBatch:
    """A_b B_b C_bᵀ for every matrix of three MatrixBatch; out: optional MatrixBatch that receives the results.

    Raises ValueError where sizes, batch lengths or precisions do not match.
    Source: Mathematics page, Compress: projected couplings.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = batched.MatrixBatch.from_matrices([np.ones((2, 3)), np.ones((1, 1))])
    >>> B = batched.MatrixBatch.from_matrices([np.eye(3), np.eye(1)])
    >>> batched.triple_product(A, B, A)[0].tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    check_products("triple_product", [(A, False), (B, False), (C, True)], None, out)
    return twin(A).triple_product(A, B, C, out)


@repeated
@any_array
def gemv(
    A: Matrices, x: Matrices, y: Matrices | None = None, alpha: complex = 1, beta: complex = 0, trans: bool = False
) -> Matrices:
    """alpha · op(A_b) x_b + beta · y_b, op transposes where asked: like x.

    A      (batch, m, n) array or MatrixBatch
    x, y   (batch, n) and (batch, m), the other way round with trans; or MatrixBatch of columns

    Raises ValueError where shapes, batch lengths or precisions do not match.
    Source: Dongarra et al. (1988), level 2 BLAS; Dong et al. (2018), section 6.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> bool(np.allclose(batched.gemv(A, np.ones((10, 4))), A.sum(axis=2)))
    True
    """
    return _with_vectors(
        "gemv",
        lambda *all: twin(all[0]).gemv(*all, *_factors("gemv", all[0], alpha, beta), trans),
        *(A, x, y, trans, REAL + COMPLEX),
    )


@repeated
@any_array
def symv(
    A: Matrices, x: Matrices, y: Matrices | None = None, alpha: float = 1, beta: float = 0, lower: bool = True
) -> Matrices:
    """alpha · A_b x_b + beta · y_b for symmetric A_b (batch, n, n), of which one triangle is read, once.

    x, y   as in `gemv`.   Raises as that, and for matrices that are not square.

    Source: Dongarra et al. (1988), level 2 BLAS; Nath, Tomov & Dongarra (2010).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.array([[[2.0, 9.0], [1.0, 3.0]]])  # the lower triangle counts
    >>> batched.symv(A, np.ones((1, 2))).tolist()
    [[3.0, 4.0]]
    """
    A = square_batch(A, "symv") if isinstance(A, MatrixBatch) else square(A, "symv")
    alpha, beta = _factors("symv", A, alpha, beta)
    return _with_vectors("symv", lambda *all: twin(all[0]).symv(*all, alpha, beta, lower), A, x, y, False, REAL)


@repeated
@any_array
def syrk(
    A: Matrices, C: Matrices | None = None, alpha: float = 1, beta: float = 0, trans: bool = False, lower: bool = True
) -> Matrices:
    """alpha · op(A_b) op(A_b)ᵀ + beta · C_b in one triangle; the other is that of C_b, or zero without C.

    A   (batch, n, k) array, (batch, k, n) with trans, or MatrixBatch     C   (batch, n, n), or MatrixBatch

    On a GPU large stacks without C, n and k up to 160, are compiled for the shape; float32 then as `gemm`'s "fixed".
    Raises ValueError where shapes, batch lengths or precisions do not match.
    Source: Dongarra et al. (1990), level 3 BLAS; Nath, Tomov & Dongarra (2010).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> bool(np.allclose(np.tril(batched.syrk(A)), np.tril(A @ A.transpose(0, 2, 1))))
    True
    """
    A = checked(A, "A")
    alpha, beta = _factors("syrk", A, alpha, beta)
    if isinstance(A, MatrixBatch):
        n = A.columns if trans else A.rows
        check_batch("syrk", "C", C, A, n, n)
        return twin(A).syrk(A, C, alpha, beta, trans, lower)
    n = A.shape[-1 if trans else -2]
    shape = (*A.shape[:-2], n, n)
    C = None if C is None else stack(operand_like("syrk", "C", C, A, shape))
    return twin(A).syrk(stack(A), C, alpha, beta, trans, lower).reshape(shape)


@repeated
@any_array
def axpy(X: Matrices, Y: Matrices, alpha: ArrayLike = 1) -> Matrices:
    """alpha_b · X_b + Y_b, alpha a number or (batch,) of them.

    X, Y   arrays (batch, m, n) of one shape, or MatrixBatch

    Raises ValueError where shapes, batch lengths or precisions do not match.
    Source: Lawson, Hanson, Kincaid & Krogh (1979), level 1 BLAS.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> bool(np.allclose(batched.axpy(A, A, alpha=2.0), 3 * A))
    True
    """
    X = checked(X, "X")
    if isinstance(X, MatrixBatch):
        check_batch("axpy", "Y", Y, X, X.rows, X.columns)
        return twin(X).axpy(X, Y, _numbers(alpha, X.xp, X.dtype, (len(X),)))
    Y = operand_like("axpy", "Y", Y, X, X.shape)
    return twin(X).axpy(stack(X), stack(Y), _numbers(alpha, array_module(X), X.dtype, X.shape[:-2])).reshape(X.shape)


def _factors(name, A, alpha, beta):
    """alpha and beta in the precision of A."""
    return number(alpha, f"{name}: alpha", A.dtype), number(beta, f"{name}: beta", A.dtype)


def _numbers(alpha, xp, dtype, shape):
    """alpha as one number, or as (batch,) where the matrices are."""
    alpha = as_array(alpha)
    if alpha.ndim == 0:
        return number(alpha, "axpy: alpha", dtype)
    if alpha.dtype.kind not in "iuf":
        raise ValueError(f"axpy: expected alpha real numbers, got {alpha.dtype}")
    if alpha.shape != tuple(shape):
        raise ValueError(f"axpy: expected alpha a number or {tuple(shape)} of them, got shape {alpha.shape}")
    return xp.ascontiguousarray(xp.asarray(alpha, dtype)).reshape(-1)


def _with_vectors(name, work, A, x, y, trans, dtypes):
    """work(A, x, y) on (batch, m, n) and columns (batch, ·, 1), the result as vectors again."""
    A = checked(A, "A", dtypes)
    if isinstance(A, MatrixBatch):
        if not isinstance(x, MatrixBatch):
            raise ValueError(f"{name}: expected x a MatrixBatch of columns as A is a MatrixBatch, got {brief(x)}")
        for label, vector, rows in (("x", x, A.rows if trans else A.columns), ("y", y, A.columns if trans else A.rows)):
            check_batch(name, label, vector, A, rows, np.ones_like(rows))
        return work(A, x, y)
    lead, (m, n) = A.shape[:-2], A.shape[-2:]
    x = operand_like(name, "x", x, A, (*lead, m if trans else n))
    y = None if y is None else stack(operand_like(name, "y", y, A, (*lead, n if trans else m))[..., None])
    return work(stack(A), stack(x[..., None]), y).reshape(*lead, n if trans else m)


def sampled(A, Omega):
    """A_b Ω for a contiguous array A, Ω of `gaussian`: in float32 its entries have 11 bits, which the GPU exploits."""
    return twin(A).sampled(A, Omega)
