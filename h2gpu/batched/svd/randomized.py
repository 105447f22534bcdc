"""Randomized singular value decomposition: project on random samples, decompose what is left.

    Y = A Ω,  Y = Q R,     AᵀQ = P R,  Rᵀ = U_R S V_Rᵀ,     A ≈ (Q U_R) S (P V_R)ᵀ

Boukaram et al., algorithm 4, with the power iterations of Halko, Martinsson & Tropp (2011), algorithm 4.4. One Gaussian
Ω serves the whole batch, so that a matrix's result does not depend on its neighbours. The columns of Rᵀ are graded, and
nearly orthogonal, because those of Y are: Jacobi needs no QR before it (one sweep more than with, of seven). For the
same reason AᵀQ, unlike Y, is well conditioned up to the sizes of its columns: its QR goes by Cholesky factors. That of
Y does in float32 without power iterations, its Gram matrix in float64; a last triangle X is left to smaller factors:

    Y = (Q X) T,     AᵀQ = P R,  (R X)ᵀ = U_R S V_Rᵀ,     A ≈ (Q (X U_R)) S (P V_R)ᵀ
"""

import numpy as np

from h2gpu.arrays import array_module, moved, to_host
from h2gpu.batched.copies import frobenius_norms, join, leading
from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.batched.core.tails import padded, rank_within
from h2gpu.batched.device.streams import on_its_way
from h2gpu.batched.products import gemm
from h2gpu.batched.products import sampled as product_with
from h2gpu.batched.products import twin as product_twin
from h2gpu.batched.products.gaussian import gaussian
from h2gpu.batched.qr import cholesky_basis, qr
from h2gpu.batched.qr import twin as qr_twin

twin = twins_of(__package__)
FIRST_SAMPLES = 32  # of an unknown rank
SAFE_NORMS = 1e-100, 1e100  # whose squares, and those of what is missed, stay in range


def sampled(A, count, random_state):
    """A_b Ω for the leading rows of one Gaussian matrix of `count` columns."""
    if isinstance(A, MatrixBatch):
        Omega = gaussian(int(A.columns.max(initial=0)), count, random_state, A.dtype, A.xp)
        zero = np.zeros(len(A), np.int64)
        return gemm(A, MatrixBatch(Omega.reshape(-1), zero, A.columns, zero + count))
    return product_with(A, gaussian(A.shape[2], count, random_state, A.dtype, array_module(A)))


def project(A, count, power=0, random_state=None):
    """Orthonormal Q_b (m_b × min(count, m_b)) whose range nearly holds the leading left singular vectors of A_b."""
    Q, _ = qr_twin(A).qr(sampled(A, count, random_state), "reduced")
    for _ in range(power):
        Z, _ = qr(gemm(A, Q, transa=True))
        Q, _ = qr(gemm(A, Z))
    return Q


def left(A, count, power=0, random_state=None):
    """Left singular vectors and values within `count` samples, and what they miss: U, s, ‖A − U Uᵀ A‖_F (batch,)."""
    Q = project(A, count, power, random_state)
    Z = gemm(A, Q, transa=True)
    missed = frobenius_norms(gemm(Q, Z, A, alpha=-1, beta=1, transb=True))
    U, s, info = _rotated(Q, Z)
    check(info)
    return U, s, missed


def left_unwatched(A, count, random_state=None):
    """The same without asking what is missed, nor waiting for a verdict: U, s, and info of `svd_of_transposed`.

    A   MatrixBatch; where no matrix has more rows, or columns, than samples, it is decomposed whole
    """
    if (np.minimum(A.rows, A.columns) <= count).all():
        U, s, *info = twin(A).svd(A, "left", "auto", A.xp is not np)  # the CPU raises at once
        return U, s, info[0] if info else np.zeros(len(A), np.int32)
    Q = project(A, count, 0, random_state)
    return _rotated(Q, gemm(A, Q, transa=True))


def _rotated(Q, Z):
    """Left singular vectors and values of Q Zᵀ, and info."""
    U, s, info = twin(Z).svd_of_transposed(qr(Z, mode="r"), "left")
    return gemm(Q, U), s, info


def left_within(A, allowed, samples, power=0, random_state=None, most=np.inf):
    """As many samples as it takes, doubled for the matrices of which too much is missed, in the end a full SVD.

    A         MatrixBatch
    allowed   bound on ‖A_b − U_b U_bᵀ A_b‖_F², a number or (batch,)
    most      samples that are not exceeded, whatever they miss

    Returns U, s (MatrixBatch) and the squares missed, on the host.
    """
    allowed = np.broadcast_to(allowed, len(A))
    rest, count, done = np.arange(len(A)), int(min(samples, most)), []
    while len(rest):
        full = np.minimum(A.rows[rest], A.columns[rest]) <= count
        whole = twin(A).svd(A[rest[full]], "left", "auto")
        done.append((rest[full], *whole, np.zeros(np.count_nonzero(full))))
        rest = rest[~full]
        U, s, missed = left(A[rest], count, power, random_state)
        squares = to_host(missed).astype(np.float64) ** 2
        good = (squares <= allowed[rest]) | (count >= most)
        done.append((rest[good], U[good], s[good], squares[good]))
        rest, count = rest[~good], int(min(2 * count, most))
    if not done:
        k = np.minimum(A.rows, A.columns)
        return MatrixBatch.empty(A.rows, k, A.dtype, A.xp), MatrixBatch.empty(k, 1, A.dtype, A.xp), np.zeros(0)
    index, *parts, squares = zip(*done)
    order = np.argsort(np.concatenate(index))
    U, s = (join(part)[order] for part in parts)
    return U, s, np.concatenate(squares)[order]


def triplets(A, Q, rank=np.inf):
    """U, s, Vt of Q_b Q_bᵀ A_b, `rank` (a number or one a matrix) triplets each, fewer where Q_b has fewer columns."""
    P, R = qr(gemm(A, Q, transa=True))
    U, s, Vt, info = twin(R).svd_of_transposed(R, "both")
    info = on_its_way(info)
    k = np.minimum(rank, s.rows).astype(np.int64)
    U, s, Vt = leading(U, U.rows, k), leading(s, k, s.columns), leading(Vt, k, Vt.columns)
    U, Vt = gemm(Q, U), gemm(Vt, P, transb=True)
    check(info())
    return U, s, Vt


def stack_triplets(A, Q, X, rank, qr):
    """U, s, Vt of A_b projected on orthonormal Q_b X_b, X None for I; and a function of the verdict, see on_its_way."""
    P, R, *rest = qr(stack_product(A, Q, transa=True), X)
    U, s, Vt, info = twin(A).svd_of_transposed(R, "both", rank, *rest, X)
    info = on_its_way(info)
    U, s, Vt = map(array_module(A).ascontiguousarray, (U, s, Vt))
    return (stack_product(Q, U), s, stack_product(Vt, P, transb=True)), info


def stack_product(A, B, transa=False, transb=False):
    """op(A_b) op(B_b) for contiguous arrays, past the questions to callers, which take the host's time."""
    return product_twin(A).gemm(A, B, None, 1, 0, transa, transb, None)


def write_again(A, Q, out, which):
    """The triplets of some matrices by Householder reflections, which fail for NaN and Inf alone; their info."""
    householder = qr_twin(A).qr
    parts, info = stack_triplets(A[which], Q, None, out[1].shape[1], lambda A, _: (*householder(A, "reduced"), None))
    for M, part in zip(out, parts):
        M[which] = part
    return info()


def svd(A, rank, oversample, power, random_state):
    """U, s, Vt of a batch, `rank` triplets each (fewer where m or n is less)."""
    count = rank + oversample
    if isinstance(A, MatrixBatch):
        return triplets(A, project(A, count, power, random_state), rank)
    count = min(count, *A.shape[1:])
    if random_state is None:  # the same samples, should some be asked for again
        random_state = int(np.random.default_rng().integers(2**63))
    if power:
        Q, X = project(A, count, power, random_state), None
    else:
        Q, X = cholesky_basis(sampled(A, count, random_state))
    out, info = stack_triplets(A, Q, X, rank, qr_twin(A).cholesky_qr)
    info = info().copy()
    which = np.flatnonzero(info < 0)
    if len(which):
        basis = project(A[which], count, 0, random_state) if power == 0 else Q[which]
        info[which] = write_again(A, basis, out, which)
    check(info)
    return out


def svd_within(A, rtol, rank, oversample, power, random_state):
    """U, s, Vt of a MatrixBatch, as few triplets as ‖A − U s Vt‖_F ≤ rtol ‖A‖_F takes, but at most `rank`."""
    norms = to_host(frobenius_norms(A))
    strange = (norms > 0) & ((norms < SAFE_NORMS[0]) | (norms > SAFE_NORMS[1])) & np.isfinite(norms)
    if strange.any():
        exponents = np.where(strange, np.frexp(norms)[1], 0)
        U, s, Vt = svd_within(scaled(A, -exponents), rtol, rank, oversample, power, random_state)
        return U, scaled(s, exponents), Vt
    allowed = (rtol * norms) ** 2
    most = np.inf if rank is None else rank + oversample
    U, s, squares = left_within(A, allowed, FIRST_SAMPLES + oversample, power, random_state, most)
    k = rank_within(padded(s), np.sqrt(np.maximum(allowed - squares, 0))[:, None])
    k = np.minimum(k, s.rows if rank is None else np.minimum(rank, s.rows))
    return triplets(A, leading(U, U.rows, k))


def scaled(A, exponents):
    """2^exponents[b] A_b, a MatrixBatch; in two steps, each a number."""
    A = A.packed()
    half, sizes = exponents // 2, A.rows * A.columns
    steps = (moved(np.repeat(np.ldexp(1.0, e), sizes).astype(A.dtype), A.xp) for e in (half, exponents - half))
    entries = A.buffer
    for step in steps:
        entries = entries * step
    return MatrixBatch(entries, offsets_of(sizes)[:-1], A.rows, A.columns)


def stacks_within(A, rtol, rank, oversample, power, random_state):
    """The same for an array: as wide as the largest rank found, zeros beyond each."""
    U, s, Vt = svd_within(MatrixBatch.from_stack(A), rtol, rank, oversample, power, random_state)
    (_, m, n), k = A.shape, int(s.rows.max(initial=0))
    return stacked(U, m, k), stacked(s, k, 1)[..., 0], stacked(Vt, k, n)


def stacked(M, rows, columns):
    """Matrices no larger than rows × columns as one (batch, rows, columns) array, zeros elsewhere."""
    out = M.xp.zeros((len(M), rows, columns), M.dtype)
    first = np.repeat(np.arange(len(M)) * rows, M.rows) + ranges(np.zeros_like(M.rows), M.rows)
    out.reshape(-1)[M.xp.asarray(ranges(first * columns, np.repeat(M.columns, M.rows)))] = M.entries
    return out
