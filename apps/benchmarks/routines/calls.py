"""Every routine of h2gpu.batched as users call it, and what they would call of CuPy (or NumPy) and PyTorch instead.

A `Routine` is three functions of the same arguments, which `arguments` makes of its letters:

    A, C   square matrices of independent normal entries          x      a vector each, (batch, n)
    S      symmetric positive definite ones                       B      four columns each, (batch, n, 4)
    L      lower triangles, well conditioned                      T, D   of twice as many rows as A and B

Sixteen are distinct; larger batches repeat them, as random numbers would take longer than what is timed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks.routines.linear import positive

SIDES, RANK, ATOL = 4, 8, 1e-3
DISTINCT = 16  # matrices


@dataclass(frozen=True)
class Routine:
    """Calls of the same work; None where another has no batched routine for it.

    letters   of the arguments, see above
    ours      function of the arguments
    array     function of NumPy or CuPy as `xp`, and the arguments
    torch     function of PyTorch, and its tensors
    """

    letters: str
    ours: Callable
    array: Callable | None = None
    torch: Callable | None = None


def arguments(letters, batch, n, dtype, xp):
    """The arrays that the letters stand for: the same numbers for NumPy and CuPy."""
    return tuple(_repeated(xp.asarray(_matrices(letter, n).astype(dtype)), batch, xp) for letter in letters)


def _repeated(some, batch, xp):
    return xp.ascontiguousarray(xp.tile(some, (-(-batch // len(some)), *[1] * (some.ndim - 1)))[:batch])


def entries(letters, n):
    """Of the largest argument, a matrix of the batch."""
    return max(prod(_shape(letter, n)) for letter in letters)


def _shape(letter, n):
    return {"x": (n,), "B": (n, SIDES), "T": (2 * n, n), "D": (2 * n, SIDES)}.get(letter, (n, n))


@lru_cache(16)  # of some tens of megabytes
def _matrices(letter, n):
    """What a letter stands for: the distinct ones in float64."""
    A = np.random.default_rng([ord(letter), n]).standard_normal((DISTINCT, *_shape(letter, n)))
    if letter == "S":
        return positive(A)
    if letter == "L":
        return np.tril(A / n) + 2 * np.eye(n)
    return A


def _column(product):
    return lambda library, A, x: product(library, A, x[..., None])[..., 0]


def _lu_solve(A, B):
    return batched.lu_solve(batched.lu_factor(A), B)


def _torch_lu_solve(torch, A, B):
    return torch.linalg.lu_solve(*torch.linalg.lu_factor(A), B)


ROUTINES = {
    "axpy": Routine(
        "AC",
        lambda A, C: batched.axpy(A, C, 2.0),
        lambda xp, A, C: 2.0 * A + C,
        lambda torch, A, C: torch.add(C, A, alpha=2.0),
    ),
    "gemv": Routine(
        "Ax",
        batched.gemv,
        _column(lambda xp, A, x: xp.matmul(A, x)),
        _column(lambda torch, A, x: torch.bmm(A, x)),
    ),
    "gemv transposed": Routine(
        "Ax",
        lambda A, x: batched.gemv(A, x, trans=True),
        _column(lambda xp, A, x: xp.matmul(A.swapaxes(1, 2), x)),
        _column(lambda torch, A, x: torch.bmm(A.mT, x)),
    ),
    "symv": Routine(
        "Sx",
        batched.symv,
        _column(lambda xp, A, x: xp.matmul(A, x)),
        _column(lambda torch, A, x: torch.bmm(A, x)),
    ),
    "gemm": Routine(
        "AC",
        batched.gemm,
        lambda xp, A, C: xp.matmul(A, C),
        lambda torch, A, C: torch.bmm(A, C),
    ),
    "syrk": Routine(
        "A",
        batched.syrk,
        lambda xp, A: xp.matmul(A, A.swapaxes(1, 2)),
        lambda torch, A: torch.bmm(A, A.mT),
    ),
    "trsm": Routine(
        "LB",
        batched.trsm,
        None,
        lambda torch, L, B: torch.linalg.solve_triangular(L, B, upper=False),
    ),
    "lu_factor": Routine("A", batched.lu_factor, None, lambda torch, A: torch.linalg.lu_factor(A)),
    "lu_factor, lu_solve": Routine("AB", _lu_solve, None, _torch_lu_solve),
    "solve": Routine(
        "AB",
        batched.solve,
        lambda xp, A, B: xp.linalg.solve(A, B),
        lambda torch, A, B: torch.linalg.solve(A, B),
    ),
    "inv": Routine("A", batched.inv, lambda xp, A: xp.linalg.inv(A), lambda torch, A: torch.linalg.inv(A)),
    "det": Routine("A", batched.det, lambda xp, A: xp.linalg.det(A), lambda torch, A: torch.linalg.det(A)),
    "slogdet": Routine(
        "A",
        batched.slogdet,
        lambda xp, A: xp.linalg.slogdet(A),
        lambda torch, A: torch.linalg.slogdet(A),
    ),
    "cholesky": Routine(
        "S",
        batched.cholesky,
        lambda xp, S: xp.linalg.cholesky(S),
        lambda torch, S: torch.linalg.cholesky(S),
    ),
    "cholesky_solve": Routine("LB", batched.cholesky_solve, None, lambda torch, L, B: torch.cholesky_solve(B, L)),
    "lstsq": Routine("TD", batched.lstsq, None, lambda torch, T, D: torch.linalg.lstsq(T, D).solution),
    "qr": Routine("A", batched.qr, lambda xp, A: xp.linalg.qr(A), lambda torch, A: torch.linalg.qr(A)),
    "qr, R alone": Routine(
        "T",
        lambda T: batched.qr(T, "r"),
        lambda xp, T: xp.linalg.qr(T, "r"),
        lambda torch, T: torch.linalg.qr(T, "r"),
    ),
    "cholesky_qr": Routine("T", batched.cholesky_qr, None, lambda torch, T: torch.linalg.qr(T)),
    "pivoted_qr": Routine("T", lambda T: batched.pivoted_qr(T, ATOL)),
    "svd": Routine(
        "A",
        batched.svd,
        lambda xp, A: xp.linalg.svd(A, full_matrices=False),
        lambda torch, A: torch.linalg.svd(A, full_matrices=False),
    ),
    "truncated_svd": Routine("A", lambda A: batched.truncated_svd(A, ATOL)),
    "rsvd": Routine(
        "A",
        lambda A: batched.rsvd(A, rank=min(RANK, A.shape[-1]), random_state=0),
        None,
        lambda torch, A: torch.svd_lowrank(A, min(2 * RANK, A.shape[-1]), niter=0),
    ),
    "bidiagonalize": Routine("A", batched.bidiagonalize),
    "frobenius_norms": Routine(
        "A",
        batched.frobenius_norms,
        lambda xp, A: xp.linalg.norm(A, axis=(1, 2)),
        lambda torch, A: torch.linalg.matrix_norm(A),
    ),
}
