"""min ‖A_b x_b − b_b‖ on the GPU: by QR where that surely has full rank, else by singular values.

    κ_F(R) rcond < 1  ⇒  σ_min(A) > rcond σ_max(A)

Three ways, each for what the one before leaves in doubt: QR in registers with a bound on the condition
(kernels/registers/); R of [A b], whose last columns are Qᵀb, with R⁻¹; the SVD.
Golub & Van Loan (2013), sections 5.3 to 5.5.
"""

import cupy
import numpy as np

from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.core.status import NOT_FINITE
from h2gpu.batched.qr import householder
from h2gpu.batched.registers import cuda as registers
from h2gpu.batched.svd import cuda as singular_values
from h2gpu.batched.systems import triangles


def lstsq(A, b, rcond):
    """See h2gpu.batched.lstsq."""
    (batch, m, n), k = A.shape, b.shape[-1]
    X, rank = cupy.empty((batch, n, k), A.dtype), cupy.full(batch, n, np.int32)
    if not X.size or not m:
        X.fill(0)
        return X, _ranks(A, rcond) if batch * m * n else cupy.zeros(batch, np.int32)
    ways = [_in_registers] * (m >= n and registers.fits(A, k)) + [_by_triangle] * (m >= n and A.dtype.kind == "f")
    doubtful = np.arange(batch)
    for way in ways:
        if len(doubtful) == batch:
            X, condition = way(A, b)
        else:
            chosen = cupy.asarray(doubtful)
            X[chosen], condition = way(A[chosen], b[chosen])
        doubtful = doubtful[~(condition.get() * rcond < 1)]
        if not len(doubtful):
            return X, rank
    chosen = cupy.asarray(doubtful)
    X[chosen], rank[chosen] = _by_values(A[chosen], b[chosen], rcond, doubtful, batch)
    return X, rank


def _in_registers(A, b):
    return registers.least_squares(A, b, "auto")


def _by_triangle(A, b):
    """x and κ_F from R of [A b]; Inf or NaN where A is deficient."""
    n = A.shape[-1]
    R = householder.qr(cupy.concatenate((A, b), axis=2), "r")[:, :n]
    identity = cupy.broadcast_to(cupy.eye(n, dtype=A.dtype), (len(A), n, n))
    triangle, sides = cupy.ascontiguousarray(R[..., :n]), cupy.concatenate((R[..., n:], identity), axis=2)
    in_place = cupy.broadcast_to(cupy.arange(n, dtype=np.int32), (len(A), n))
    # R as U of an LU with L = I: trsm would multiply by inverses of tiles, which may cost digits where κ is large
    solved = triangles.lu_solve(triangle, cupy.ascontiguousarray(in_place), sides)
    X, inverse = solved[..., : b.shape[-1]], solved[..., b.shape[-1] :]
    return X, cupy.linalg.norm(triangle, axis=(1, 2)) * cupy.linalg.norm(inverse, axis=(1, 2))


def _by_values(A, b, rcond, names, batch):
    """x of least norm and the rank, from singular values; LinAlgError naming matrices with NaN or Inf."""
    U, s, Vt = _decomposed(A, names, batch)
    kept = s > rcond * s[:, :1]
    c = U.conj().swapaxes(1, 2) @ b
    c = cupy.where(kept[..., None], c / cupy.where(kept, s, 1)[..., None], 0)
    return Vt.conj().swapaxes(1, 2) @ c, kept.sum(axis=1)


def _ranks(A, rcond):
    """Ranks alone, where there are no right-hand sides."""
    _, s, _ = _decomposed(A, np.arange(len(A)), len(A))
    return (s > rcond * s[:, :1]).sum(axis=1).astype(np.int32)


def _decomposed(A, names, batch):
    """U, s (batch, min(m, n)), Vt; names: the numbers of these matrices among all of the batch."""
    info = np.zeros(batch, np.int32)
    info[names] = np.where(cupy.isfinite(A).all(axis=(1, 2)).get(), 0, NOT_FINITE)
    check(info, "lstsq")
    if A.dtype.kind == "c":
        return cupy.linalg.svd(A, full_matrices=False)
    U, s, Vt = singular_values.svd(cupy.ascontiguousarray(A), "both", "auto", False)
    return U, s[..., 0], Vt
