"""Singular values on the GPU, a file a way: jacobi, complex_jacobi, bidiagonal, triangle, truncated, shared_ranks."""

from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.svd import bidiagonal, complex_jacobi
from h2gpu.batched.svd.jacobi import decompose
from h2gpu.batched.svd.shared_ranks import discarded, shared_ranks
from h2gpu.batched.svd.triangle import svd_of_transposed
from h2gpu.batched.svd.truncated import truncated_svd

__all__ = ["discarded", "shared_ranks", "svd", "svd_of_transposed", "truncated_svd"]


def svd(A, vectors, method, return_info=False):
    """U, s, Vt (vectors "both"), U, s ("left") or s ("none") of an array or a MatrixBatch: see h2gpu.batched.svd."""
    if A.dtype.kind == "c":
        return complex_jacobi.svd(A, vectors, return_info)
    if method == "bidiagonal":
        return bidiagonal.svd(A, vectors, return_info)
    results, info = decompose(A, vectors, method)
    if return_info:
        return (*(results if isinstance(results, tuple) else (results,)), info[:-1])
    check(info[:-1])
    return results
