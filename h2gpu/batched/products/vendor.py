"""out_b = α op(A_b) op(B_b) + β C_b of one shape by cuBLAS: outᵀ = op(B)ᵀ op(A)ᵀ, since its matrices lie by columns.

Called without CuPy's matmul, which takes twice as long to ask for it as the device for small products.
"""

import cupy
import numpy as np

try:
    from cupy_backends.cuda.libs import cublas
except ImportError:  # no CuPy of CUDA's
    cublas = None

PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


class Strided:
    """A call of cuBLAS that waits for its arrays alone: contiguous, of `batch` matrices each.

    sizes   (m, n, k), none of them 0     factors   alpha and beta
    """

    __slots__ = "between", "factors", "head", "pitches", "routine", "tail"

    def __init__(self, dtype, batch, sizes, transa, transb, factors):
        m, n, k = sizes
        self.routine = getattr(cublas, f"{PREFIXES[dtype.name]}gemmStridedBatched")
        self.factors = np.array(factors, dtype)  # cuBLAS reads them where they are
        alpha, beta = (self.factors[i:].ctypes.data for i in range(2))
        ways = [cublas.CUBLAS_OP_T if turned else cublas.CUBLAS_OP_N for turned in (transb, transa)]
        self.head = *ways, n, m, k, alpha
        self.between = k if transb else n, k * n
        self.pitches = m if transa else k, m * k, beta
        self.tail = n, m * n, batch

    def __call__(self, A, B, out):
        handle = cupy.cuda.device.get_cublas_handle()
        ours = B.data.ptr, *self.between, A.data.ptr, *self.pitches, out.data.ptr
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


def _matmul(A, B, C, alpha, beta, transa, transb, out):
    A, B = (M.swapaxes(1, 2) if turned else M for M, turned in ((A, transa), (B, transb)))
    out = cupy.matmul(A, B, out=out)
    if alpha != 1:
        out *= A.dtype.type(alpha)
    if C is not None:
        out += A.dtype.type(beta) * C
    return out
