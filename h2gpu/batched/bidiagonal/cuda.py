"""Bidiagonal reduction on the GPU, ragged batches; arrays of one shape are stacks.py's.

    W = Q B Pᵀ,   W = A or Aᵀ, whichever is not wide

Kernels: bidiagonalize.cuh or bidiagonalize_large.cuh; reflectors.cuh applies Q and P.
Golub & Kahan (1965); Dong, Haidar, Tomov & Dongarra (2018).
"""

from dataclasses import dataclass

import cupy as cp
import numpy as np

from h2gpu.batched.bidiagonal import plans
from h2gpu.batched.bidiagonal.stacks import bidiagonalize_stack, reduce_class
from h2gpu.batched.copies.cuda import transposed
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device.launch import NULL
from h2gpu.batched.device.limits import shared_limit
from h2gpu.batched.qr.reflectors import Factors, reflect


@dataclass(frozen=True)
class Reduced:
    """W_b = H_0 ⋯ B_b (G_0 ⋯)ᵀ.

    A, d, e   MatrixBatch; W_b = A_bᵀ where A_b is wide
    V, U      MatrixBatch of n × m and n × n: the reflectors of H and of G, row by row
    taus      their τ, two buffers laid out as d; None all four where B alone is wanted
    """

    A: MatrixBatch
    d: MatrixBatch
    e: MatrixBatch
    V: MatrixBatch | None
    U: MatrixBatch | None
    taus: tuple | None

    def left(self, members):
        """Q of these matrices, as a product of reflectors."""
        return self._factors(self.V, self.taus[0], members)

    def right(self, members):
        """P of these matrices."""
        return self._factors(self.U, self.taus[1], members)

    def _factors(self, V, tau, members):
        parts = V.offsets[members], self.d.offsets[members]
        return Factors(V.buffer, tau, *parts, None, None, self.d.rows[members], None)


def bidiagonalize(A, vectors):
    """See h2gpu.batched.bidiagonalize; d and e as columns."""
    if not isinstance(A, MatrixBatch):
        return bidiagonalize_stack(A, vectors)
    F = factor(A, vectors == "both")
    if vectors == "none":
        return F.d, F.e
    U, V = applied(F, None, None)
    return U, F.d, F.e, transposed(V)


def factor(A, keep):
    """The Reduced form of a MatrixBatch; keep: with its reflectors."""
    m, n = np.maximum(A.rows, A.columns), np.minimum(A.rows, A.columns)
    d, e = MatrixBatch.empty(n, 1, A.dtype, cp), MatrixBatch.empty(np.maximum(n - 1, 0), 1, A.dtype, cp)
    V = U = taus = None
    buffers = A.buffer, NULL, NULL, d.buffer, e.buffer, NULL, NULL
    if keep:
        V, U = MatrixBatch.empty(n, m, A.dtype, cp), MatrixBatch.empty(n, n, A.dtype, cp)
        taus = cp.empty(d.buffer.size, A.dtype), cp.empty(d.buffer.size, A.dtype)
        buffers = A.buffer, V.buffer, U.buffer, d.buffer, e.buffer, *taus
    offsets = A.offsets, V.offsets if keep else 0, U.offsets if keep else 0, d.offsets, e.offsets
    for these in classes(
        A.rows, A.columns, lambda m, n: plans.keys(A.dtype.itemsize, m, n, shared_limit(cp.cuda.runtime.getDevice()))
    ):
        reduce_class(
            A.dtype, these.keys, these.rows, these.columns, (*buffers, these.table(*offsets, A.rows, A.columns))
        )
    return Reduced(A, d, e, V, U, taus)


def applied(F, X, Y, both=True):
    """U (m × k) and V (n × k) for every A_b: Q X and P Y, or for wide A_b P Y and Q X; X, Y: identities where None."""
    tall = F.A.rows >= F.A.columns
    groups = [(tall, F.left, X, F.right, Y), (~tall, F.right, Y, F.left, X)]
    U = MatrixBatch.empty(F.A.rows, F.d.rows, F.A.dtype, cp)
    V = MatrixBatch.empty(F.A.columns, F.d.rows, F.A.dtype, cp) if both else None
    for members, first, M, second, N in groups:
        if not members.any():
            continue
        members = slice(None) if members.all() else np.flatnonzero(members)
        reflect(first(members), None if M is None else M[members], U[members])
        if both:
            reflect(second(members), None if N is None else N[members], V[members])
    return U, V
