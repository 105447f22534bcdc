"""The functions of h2gpu.batched.cpu on CuPy arrays: our kernels, or the vendor's where measured faster."""

import cupy
import numpy as np

from h2gpu.batched import cuda_truncated, cuda_truncated_resident
from h2gpu.batched.cuda_bidiagonal import bidiagonalize
from h2gpu.batched.cuda_blas import axpy, gemv, symv, syrk, trsm
from h2gpu.batched.cuda_blocksparse import block_multiply
from h2gpu.batched.cuda_gemm import gemm, sampled
from h2gpu.batched.cuda_linear import cholesky, cholesky_solve, lu_solve, slogdet
from h2gpu.batched.cuda_lu import lu_factor
from h2gpu.batched.cuda_pairwise import pairwise
from h2gpu.batched.cuda_products import triangles_of_products
from h2gpu.batched.cuda_qr import qr
from h2gpu.batched.cuda_qr_cholesky import cholesky_basis, cholesky_qr
from h2gpu.batched.cuda_ranks import discarded, shared_ranks
from h2gpu.batched.cuda_svd import svd
from h2gpu.batched.cuda_triangle import svd_of_transposed
from h2gpu.batched.cuda_triple import triple_product
from h2gpu.batched.cuda_truncated import pivoted_qr
from h2gpu.batched.launch import NULL, WARP, launch, tiling, upload
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch, offsets_of

__all__ = [
    "axpy",
    "bidiagonalize",
    "block_multiply",
    "cholesky",
    "cholesky_basis",
    "cholesky_qr",
    "cholesky_solve",
    "discarded",
    "frobenius_norms",
    "gather",
    "gemm",
    "gemv",
    "join",
    "lu_factor",
    "lu_solve",
    "pairwise",
    "pivoted_qr",
    "qr",
    "rounding_errors",
    "sampled",
    "shared_ranks",
    "slogdet",
    "svd",
    "svd_of_transposed",
    "symv",
    "syrk",
    "triangles_of_products",
    "triple_product",
    "trsm",
    "truncated_svd",
]

NORM_WARPS = 4
TILE, LINES = 32, 8  # of gather: entries along an edge, rows a pass
SOURCES, SOURCE_WORDS = 32, 4  # of kernels/copies/gather.cuh: batches of a launch at most
SOURCE_TABLE = np.dtype([("words", np.int64, SOURCES * SOURCE_WORDS)])


def truncated_svd(A, atol, padded=False, return_info=False, consume=False):
    """See h2gpu.batched.truncated_svd; padded: with zeros, as arrays."""
    if return_info and cuda_truncated_resident.fits(A):
        return cuda_truncated_resident.truncated_svd(A, atol, consume)
    results = cuda_truncated.truncated_svd(A, atol, padded)
    return (*results, cupy.zeros(len(A), np.int32)) if return_info else results


def frobenius_norms(A):
    """See h2gpu.batched.frobenius_norms."""
    return _norms(A, False)


def rounding_errors(A):
    """See h2gpu.batched.rounding_errors."""
    return _norms(A, True)


def _norms(A, of_rounding):
    A = A if isinstance(A, MatrixBatch) else MatrixBatch.from_stack(cupy.ascontiguousarray(A))
    norms = cupy.empty(len(A), np.float64)
    if len(A):
        offsets, sizes = upload(A.offsets, A.sizes)
        function = kernel("copies/frobenius_norms.cuh", "frobenius_norms", A.dtype, NORM_WARPS, of_rounding)
        launch(function, len(A), NORM_WARPS * WARP, (A.buffer, offsets, sizes, norms))
    return norms


def gather(A, index, transpose, out):
    """See h2gpu.batched.gather."""
    if not len(out):
        return out
    tiles = tiling(out, (TILE, TILE))
    if index is None:  # all, some of whose sizes only the device knows
        places = A.number(0), A.number(2), NULL, out.number(0), out.number(1), out.number(2)
    else:
        index = np.asarray(index)
        sources = A.offsets[index], A.columns[index], np.asarray(transpose)
        places = upload(*sources, out.offsets, out.rows, out.columns)
    function = kernel("copies/gather.cuh", "gather", A.dtype, TILE, LINES)
    launch(function, tiles.blocks, TILE * LINES, (A.buffer, out.buffer, *tiles.arguments, *places))
    return out


def join(batches, out):
    """See h2gpu.batched.join; as many batches a launch as the kernel takes."""
    first = offsets_of([len(A) for A in batches])
    for i in range(0, len(batches), SOURCES):
        these = batches[i : i + SOURCES]
        part = out if len(these) == len(batches) else out[first[i] : first[i + len(these)]]
        if not len(part):
            continue
        fields = [(A.buffer.data.ptr, A.number(0), A.number(2), k) for A, k in zip(these, first[i:] - first[i])]
        words = [word for a, offsets, pitches, k in fields for word in (a, offsets.data.ptr, pitches.data.ptr, k)]
        words = np.pad(np.array(words, np.int64), (0, SOURCE_WORDS * SOURCES - len(words)))
        tiles, places = tiling(part, (TILE, TILE)), (part.number(side) for side in range(3))
        function = kernel("copies/gather.cuh", "gather_batches", out.dtype, TILE, LINES)
        arguments = words.view(SOURCE_TABLE)[0], len(these), out.buffer, *tiles.arguments, *places
        launch(function, tiles.blocks, TILE * LINES, arguments)
    return out
