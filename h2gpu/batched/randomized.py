"""Randomized singular value decomposition: project on random samples, decompose what is left.

    Y = A Ω,  Y = Q R,  B = Qᵀ A,  Bᵀ = Q_B R_B,  R_Bᵀ = U_R S V_Rᵀ,   A ≈ (Q U_R) S (Q_B V_R)ᵀ

Boukaram et al., algorithm 4, with the power iterations of Halko, Martinsson & Tropp (2011), algorithm 4.4. One Gaussian
Ω serves the whole batch, so that a matrix's result does not depend on its neighbours.
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched.ragged import MatrixBatch


def samples(A, count, random_state):
    """Ω_b (n_b × count): the leading rows of one Gaussian matrix from a counter-based generator, sharing memory."""
    generator = np.random.Generator(np.random.Philox(random_state))
    Omega = generator.standard_normal((int(A.columns.max(initial=0)), count))
    zero = np.zeros(len(A), np.int64)
    return MatrixBatch(A.xp.asarray(Omega.astype(A.dtype)).reshape(-1), zero, A.columns, zero + count)


def project(A, count, power=0, random_state=None):
    """Orthonormal Q_b (m_b × min(count, m_b)) whose range nearly holds the leading left singular vectors of A_b."""
    Q, _ = batched.qr(batched.gemm(A, samples(A, count, random_state)))
    for _ in range(power):
        Z, _ = batched.qr(batched.gemm(A, Q, transa=True))
        Q, _ = batched.qr(batched.gemm(A, Z))
    return Q


def left(A, count, power=0, random_state=None):
    """Left singular vectors and values within `count` samples, and what they miss: U, s, ‖A − U Uᵀ A‖_F (batch,)."""
    Q = project(A, count, power, random_state)
    B = batched.gemm(Q, A, transa=True)
    missed = batched.frobenius_norms(batched.gemm(Q, B, A, alpha=-1, beta=1))
    R = batched.qr(batched.transpose(B), mode="r")
    U, s = batched.svd(batched.transpose(R), vectors="left")
    return batched.gemm(Q, U), s, missed


def svd(A, rank, oversample, power, random_state):
    """U, s, Vt of a MatrixBatch, `rank` triplets each (fewer where m or n is less)."""
    Q = project(A, rank + oversample, power, random_state)
    Q_B, R_B = batched.qr(batched.gemm(A, Q, transa=True))
    U, s, Vt = batched.svd(batched.transpose(R_B))
    k = np.minimum(rank, np.minimum(A.rows, A.columns))
    U = batched.gemm(Q, batched.leading(U, U.rows, k))
    Vt = batched.gemm(batched.leading(Vt, k, Vt.columns), Q_B, transb=True)
    return U, batched.leading(s, k, s.columns), Vt
