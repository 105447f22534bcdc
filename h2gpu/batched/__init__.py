"""Batched dense linear algebra: many small matrices at once, on the CPU or the GPU.

Every function takes a (batch, m, n) array (NumPy: the CPU; CuPy: the GPU; more leading dimensions and single matrices
work as in NumPy, but for `cholesky_qr` and `svd_of_transposed`) or a `MatrixBatch` of matrices of differing sizes, and
returns the same kind. float32 and float64; `gemm`, `gemv` and systems of linear equations (`lu_factor`, `solve`, `inv`,
`det`) complex64 and complex128 as well, `lstsq` complex64. Small problems in registers, not pivoted:
`h2gpu.batched.registers`.

One room an operation, `h2gpu.batched.<room>`: its __init__ holds the public functions, cpu.py their reference, cuda.py
what launches the kernels. README.md in this folder is the map.
"""

from h2gpu.arrays import to_host
from h2gpu.batched.bidiagonal import bidiagonalize
from h2gpu.batched.copies import frobenius_norms, gather, join, leading, rounding_errors, transpose
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.least_squares import lstsq
from h2gpu.batched.model import predict_time
from h2gpu.batched.products import axpy, gemm, gemv, symv, syrk, triple_product
from h2gpu.batched.qr import Products, cholesky_qr, pivoted_qr, qr, triangles_of_products
from h2gpu.batched.svd import discarded, rsvd, shared_ranks, svd, svd_of_transposed, truncated_svd
from h2gpu.batched.systems import (
    cholesky,
    cholesky_solve,
    det,
    inv,
    lu_factor,
    lu_solve,
    slogdet,
    solve,
    trsm,
)

__all__ = [
    "MatrixBatch",
    "Products",
    "axpy",
    "bidiagonalize",
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
