"""The reference for bidiagonal reduction: Householder's reflections by NumPy, for all matrices of a stack at once.

    W = H_0 ⋯ H_{n−1} B (G_0 ⋯ G_{n−2})ᵀ,   H = I − τ v vᵀ,   v_0 = 1

SciPy wraps no GEBRD. Golub & Van Loan, algorithm 5.4.2.
"""

import numpy as np

from h2gpu.batched.device.stacks import each, like, shapes


def bidiagonalize(A, vectors):
    """See h2gpu.batched.bidiagonalize; d and e as columns."""
    m, n = shapes(A)
    k = np.minimum(m, n)
    d, e = like(A, k, np.ones_like(k)), like(A, np.maximum(k - 1, 0), np.ones_like(k))
    if vectors == "none":
        return tuple(each(lambda A: factors(A, False), [d, e], A))
    return tuple(each(lambda A: factors(A, True), [like(A, m, k), d, e, like(A, k, n)], A))


def factors(A, vectors):
    """(Q, d, e, Pt), or (d, e), of a stack or of one matrix."""
    if A.shape[-2] < A.shape[-1]:
        results = factors(A.swapaxes(-1, -2), vectors)
        if not vectors:
            return results
        Q, d, e, Pt = results
        return Pt.swapaxes(-1, -2), d, e, Q.swapaxes(-1, -2)
    with np.errstate(invalid="ignore"):
        exponent = np.frexp(np.abs(A).max(axis=(-1, -2), keepdims=True, initial=0))[1]
        W = np.ldexp(A, -exponent)
        W[~np.isfinite(W).all(axis=(-1, -2))] = np.nan
        left, right = reduce(W)
    d, e = np.diagonal(W, 0, -2, -1)[..., None], np.diagonal(W, 1, -2, -1)[..., None]
    n = W.shape[-1]
    d, e = np.ldexp(d, exponent), np.ldexp(e[..., : max(n - 1, 0), :], exponent)
    if not vectors:
        return d, e
    return form(left, W.shape[-2], n, W), d, e, form(right, n, n, W).swapaxes(-1, -2)


def reduce(W):
    """W becomes B; the reflections from the left and from the right, each (first index, v, τ)."""
    left, right = [], []
    for j in range(W.shape[-1]):
        v, tau = reflection(W[..., j:, j])
        reflect(W[..., j:, j:], v, tau)
        left.append((j, v, tau))
        if j + 1 < W.shape[-1]:
            v, tau = reflection(W[..., j, j + 1 :])
            reflect(W[..., j:, j + 1 :].swapaxes(-1, -2), v, tau)
            right.append((j + 1, v, tau))
    return left, right


def reflection(x):
    """v and τ with H x = [β; 0], of the vectors along the last axis; τ = 0 where all but the first are negligible.

    The matrix has entries up to 1; entries whose squares underflow change nothing.
    """
    alpha, rest = x[..., :1], np.linalg.norm(x[..., 1:], axis=-1, keepdims=True)
    beta = -np.copysign(np.hypot(alpha, rest), alpha)
    limits = np.finfo(x.dtype)
    none = rest < np.sqrt(limits.tiny) / limits.eps
    v = x / np.where(none, 1, alpha - beta)
    v[..., 0] = 1
    return v[..., None], np.where(none, 0, (beta - alpha) / np.where(none, 1, beta))[..., None]


def reflect(W, v, tau):
    """W ← H W."""
    W -= tau * v * (v.swapaxes(-1, -2) @ W)


def form(reflections, rows, columns, like):
    """H_0 H_1 ⋯ [I; 0], of the precision of `like`."""
    Q = np.broadcast_to(np.eye(rows, columns, dtype=like.dtype), (*like.shape[:-2], rows, columns)).copy()
    for first, v, tau in reversed(reflections):
        reflect(Q[..., first:, first:], v, tau)
    return Q
