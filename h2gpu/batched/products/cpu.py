"""The reference for products: NumPy's, on stacks of matrices of one shape."""

import numpy as np
from scipy.linalg.blas import get_blas_funcs

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import ranges
from h2gpu.batched.device.stacks import each, like, shapes, transposed
from h2gpu.batched.device.threads import parallel, pieces

IN_CACHE = 1 << 17  # entries of a stack that a core's cache holds with what is made of it
SYMV_OF_BLAS = 40  # order from which a call of BLAS a matrix is quicker than two products of NumPy with one triangle


def gemm(A, B, C, alpha, beta, transa, transb, out, method="auto", triangular=False):
    """Whatever the method asked for: methods are kernels of the GPU. LAPACK's products read all of a triangle."""

    def product(A, B, *C):
        with np.errstate(invalid="ignore"):  # NaN stands in the result
            P = transposed(A, transa) @ transposed(B, transb)
        if alpha != 1:
            P *= P.dtype.type(alpha)
        if C:
            P += P.dtype.type(beta) * C[0]
        return (P,)

    if out is None:
        rows, columns = shapes(A)[1 if transa else 0], shapes(B)[0 if transb else 1]
        out = like(A, rows, columns)
    return each(product, [out], A, B, *([] if C is None or beta == 0 else [C]))[0]


def sampled(A, Omega):
    """A_b Ω for an array, Ω of `gaussian`: in float32 its entries have 11 bits, which the GPU makes use of."""
    with np.errstate(invalid="ignore"):
        return A @ Omega


def triple_product(A, B, C, out):
    """In stacks padded with zeros, each different A and C padded once: where shapes differ from matrix to matrix,
    threads that take them one by one wait for the interpreter more than they multiply."""
    out = like(A, A.rows, C.rows) if out is None else out
    (left, a), (right, c) = _padded(A), _padded(C)
    right = np.ascontiguousarray(right.swapaxes(1, 2))  # BLAS's products with a transposed one take half longer

    def run(piece):
        (m, n), (middle, b), target = B[piece].bounds, _padded(B[piece], whole=True), out[piece]
        with np.errstate(invalid="ignore"):
            P = (
                left.take(a[piece], axis=0)[:, : target.bounds[0], :m]
                @ middle[b]
                @ right.take(c[piece], axis=0)[:, :n, : target.bounds[1]]
            )
        rows, columns = (
            np.arange(most) < sides[:, None] for most, sides in zip(target.bounds, (target.rows, target.columns))
        )
        values = P[rows[:, :, None] & columns[:, None]]
        if target.is_packed:
            target.entries[...] = values
        else:
            target.buffer[ranges(target.offsets, target.sizes)] = values

    parallel(run, pieces(B.sizes, IN_CACHE))
    return out


def _padded(A, whole=False):
    """Matrices of a ragged batch with zeros to one shape, and the place of each among them: (stack, places).

    whole   places may be a slice, as all of them are wanted
    """
    m, n = A.bounds
    stack = A.as_stack()
    if stack is not None:
        return stack, slice(None) if whole else np.arange(len(A))
    key = (A.offsets * (m + 1) + A.rows) * (n + 1) + A.columns
    _, first, places = np.unique(key, return_index=True, return_inverse=True)
    stack = np.zeros((len(first), m, n), A.dtype)
    for padded, one in zip(stack, A[first].matrices()):
        padded[: one.shape[0], : one.shape[1]] = one
    return stack, places


def gemv(A, x, y, alpha, beta, trans):
    """Columns x and y."""
    rows = shapes(A)[1 if trans else 0]
    return _scaled(lambda A, x: transposed(A, trans) @ x, like(A, rows, 1), (A, x), y, alpha, beta)


def symv(A, x, y, alpha, beta, lower):
    """Columns x and y."""
    (blas,) = get_blas_funcs(("symv",), dtype=A.dtype)

    def product(A, x):
        if A.shape[-1] < SYMV_OF_BLAS:
            half = (np.tril if lower else np.triu)(A, -1 if lower else 1)
            return half @ x + half.swapaxes(-1, -2) @ x + np.einsum("...ii->...i", A)[..., None] * x
        if A.ndim == 2:
            return blas(1.0, A.T, x[:, 0], lower=not lower)[:, None]  # BLAS counts by columns
        return np.stack([product(*one) for one in zip(A, x)])

    return _scaled(product, like(A, shapes(A)[0], 1), (A, x), y, alpha, beta)


def syrk(A, C, alpha, beta, trans, lower):
    n, triangle = shapes(A)[1 if trans else 0], np.tril if lower else np.triu

    def product(A, *C):
        P = A.dtype.type(alpha) * (transposed(A, trans) @ transposed(A, not trans))
        if not C:
            return (triangle(P),)
        with np.errstate(invalid="ignore"):
            P = P if beta == 0 else P + A.dtype.type(beta) * C[0]
        return (np.where(triangle(np.ones(P.shape[-2:], bool)), P, C[0]),)

    return each(product, [like(A, n, n)], A, *([] if C is None else [C]))[0]


def axpy(X, Y, alpha):
    if not isinstance(X, MatrixBatch):
        return (alpha if np.ndim(alpha) == 0 else alpha[:, None, None]) * X + Y
    out = like(X, X.rows, X.columns)
    factors = np.broadcast_to(alpha, len(X))
    for b in range(len(X)):
        out[b][...] = factors[b] * X[b] + Y[b]
    return out


def _scaled(product, out, factors, y, alpha, beta):
    """alpha · product(factors) + beta · y into out; y is not read where beta is 0."""

    def work(A, x, *y):
        P = product(A, x)
        P = P if alpha == 1 else P.dtype.type(alpha) * P
        return (P + P.dtype.type(beta) * y[0],) if y else (P,)

    return each(work, [out], *factors, *([] if y is None or beta == 0 else [y]))[0]
