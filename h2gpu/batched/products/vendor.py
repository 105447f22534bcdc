"""out_b = α op(A_b) op(B_b) + β C_b of one shape by cuBLAS: outᵀ = op(B)ᵀ op(A)ᵀ, since its matrices lie by columns.

A_bᵀ x_b too, as a product with one column, where a tuning row says so.

Called without CuPy's matmul, which takes twice as long to ask for it as the device for small products.
"""

from typing import NamedTuple

import cupy
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.plans import remembered

try:
    from cupy_backends.cuda.libs import cublas
except ImportError:  # no CuPy of CUDA's
    cublas = None

PIECE = 16  # bytes that a thread reads at a time
BEYOND = 1 << 27  # bytes of matrices that no cache holds: a few percent of their time are more than asking cuBLAS takes
PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


class Place(NamedTuple):
    """Where matrices lie in an array: entries before the first, from row to row, and from one to the next."""

    first: int
    pitch: int
    step: int


class Strided:
    """A call of cuBLAS that waits for its arrays alone: contiguous, of `batch` matrices each, or with parts of them.

    sizes   (m, n, k), none of them 0     factors   alpha and beta     places   a `Place` in A, B and out, if parts
    """

    __slots__ = "between", "factors", "first", "head", "pitches", "routine", "tail"

    def __init__(self, dtype, batch, sizes, transa, transb, factors, places=None):
        m, n, k = sizes
        places = places or (
            Place(0, m if transa else k, m * k),
            Place(0, k if transb else n, k * n),
            Place(0, n, m * n),
        )
        left, right, result = places
        self.routine = getattr(cublas, f"{PREFIXES[dtype.name]}gemmStridedBatched")
        self.factors = np.array(factors, dtype)  # cuBLAS reads them where they are
        alpha, beta = (self.factors[i:].ctypes.data for i in range(2))
        ways = [cublas.CUBLAS_OP_T if turned else cublas.CUBLAS_OP_N for turned in (transb, transa)]
        self.head = *ways, n, m, k, alpha
        self.between, self.pitches, self.tail = right[1:], (*left[1:], beta), (*result[1:], batch)
        self.first = [place.first * dtype.itemsize for place in places]

    def __call__(self, A, B, out):
        handle, (a, b, c) = cupy.cuda.device.get_cublas_handle(), self.first
        ours = B.data.ptr + b, *self.between, A.data.ptr + a, *self.pitches, out.data.ptr + c
        self.routine(handle, *self.head, *ours, *self.tail)


def vendor_product(A, B, C, alpha, beta, transa, transb, out):
    """See h2gpu.batched.gemm: arrays of one shape, `out` contiguous or None."""
    m, k = A.shape[:0:-1] if transa else A.shape[1:]
    n = B.shape[1 if transb else 2]
    if cublas is None or not all((len(A), m, n, k)):
        return _matmul(A, B, C, alpha, beta, transa, transb, out)
    out = cupy.empty((len(A), m, n), A.dtype) if out is None else out
    if C is not None:
        out[...] = C
    factors = alpha, 0 if C is None else beta
    Strided(A.dtype, len(A), (m, n, k), transa, transb, factors)(*map(cupy.ascontiguousarray, (A, B)), out)
    return out


@remembered
def suits_columns(dtype, batch, m, n):
    """Whether A_bᵀ x_b is cuBLAS's, by a row of kernels/tuning/…/gemv_t_way.csv: `column_product`."""
    if cublas is None or dtype.kind == "c" or not batch * m * n:
        return False
    row = n * dtype.itemsize
    limits = {
        "rows": m,
        "pieces": -(-row // PIECE),
        "partial": int(row % PIECE > 0),
        "cheap": int(batch * m * row < BEYOND),
    }
    return tuning.row("gemv_t_way", dtype, **limits)["method"] == "vendor"


def column_product(dtype, batch, m, n, alpha):
    """The call for x_bᵀ A_b, of arrays x, A and the result."""
    return Strided(dtype, batch, (1, n, m), False, False, (alpha, 0))


def _matmul(A, B, C, alpha, beta, transa, transb, out):
    A, B = (M.swapaxes(1, 2) if turned else M for M, turned in ((A, transa), (B, transb)))
    out = cupy.matmul(A, B, out=out)
    if alpha != 1:
        out *= A.dtype.type(alpha)
    if C is not None:
        out += A.dtype.type(beta) * C
    return out
