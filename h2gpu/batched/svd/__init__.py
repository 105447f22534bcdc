"""Singular value decompositions of many small matrices, exact and randomized.

    A_b = U_b diag(s_b) Vt_b

Source: Boukaram et al. (2018), "Batched QR and SVD algorithms on GPUs".
"""

from typing import Any, Literal, overload

import numpy as np

from h2gpu.arrays import any_array, array_module
from h2gpu.batched.core.checks import COMPLEX, REAL, checked, refuse_complex, stack, tolerances
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.shapes import over_leading
from h2gpu.batched.products.gaussian import seed_of
from h2gpu.batched.svd import randomized
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Integers, Matrices, Seed

twin = twins_of(__name__)
SVD_METHODS = ("auto", "register", "shared", "block-gram", "block-direct", "bidiagonal")


@overload
def svd(
    A: Matrices, vectors: Literal["both"] = ..., method: str = ..., *, return_info: Literal[False] = ...
) -> tuple[Matrices, Matrices, Matrices]: ...
@overload
def svd(
    A: Matrices, vectors: Literal["left"], method: str = ..., *, return_info: Literal[False] = ...
) -> tuple[Matrices, Matrices]: ...
@overload
def svd(A: Matrices, vectors: Literal["none"], method: str = ..., *, return_info: Literal[False] = ...) -> Matrices: ...
@overload
def svd(A: Matrices, vectors: str = ..., method: str = ..., *, return_info: Literal[True]) -> tuple[Any, ...]: ...
@any_array
def svd(
    A: Matrices, vectors: str = "both", method: str = "auto", *, return_info: bool = False
) -> Matrices | tuple[Matrices, ...]:
    """U_b diag(s_b) Vt_b = A_b, singular values descending and ≥ 0, k = min(m, n).

    A             (batch, m, n) array or MatrixBatch, real or complex; of complex ones Vt is V^H
    vectors       "both": (U, s, Vt); "left": (U, s); "none": s alone
    method        a kernel of the GPU by name: "register", "shared", "block-gram", "block-direct" turn columns (Jacobi),
                  "bidiagonal" is LAPACK's way, small values right to ε ‖A‖ only; or "auto", the only one for complex
                  matrices. The CPU calls LAPACK
    return_info   add a (batch,) array of integers, where A lives: sweeps of each matrix (0 on the CPU), −1 where it
                  holds NaN or Inf, −2 where it did not converge; their results are NaN then, and nothing is raised

    U is (batch, m, k), s (batch, k), Vt (batch, k, n). For a MatrixBatch, s is a MatrixBatch of k×1 columns. s is real.
    Raises ValueError for bad arguments, LinAlgError naming the matrices that hold NaN or Inf or did not converge.
    Source: Boukaram et al. (2018), sections 4 to 6; Golub & Van Loan (2013), section 8.6.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> U, s, Vt = batched.svd(A)
    >>> bool(np.allclose(U * s[:, None, :] @ Vt, A)), bool((np.diff(s) <= 0).all())
    (True, True)
    """
    if vectors not in ("both", "left", "none"):
        raise ValueError(f'svd: expected vectors "both", "left" or "none", got {brief(vectors)}')
    if method not in SVD_METHODS:
        raise ValueError(f"svd: expected method one of {', '.join(SVD_METHODS)}, got {brief(method)}")
    if method != "auto" and getattr(getattr(A, "dtype", None), "kind", None) == "c":
        raise ValueError(f'svd: expected method "auto" for complex matrices, got {brief(method)}')
    results = over_leading(lambda A: twin(A).svd(A, vectors, method, return_info), A, REAL + COMPLEX)
    if isinstance(A, MatrixBatch):
        return results
    if not isinstance(results, tuple):
        return results[..., 0]
    values = 0 if vectors == "none" else 1
    return tuple(M[..., 0] if i == values else M for i, M in enumerate(results))


def svd_of_transposed(
    R: Array | MatrixBatch,
    vectors: str = "both",
    rank: int | None = None,
    rest: Array | None = None,
    left: Array | None = None,
) -> tuple[Any, ...]:
    """U, s, Vt (vectors "both") or U, s ("left") of R_bᵀ, and info as `svd` with return_info.

    rank   of an array: triplets wanted, the leading ones; None: all of them
    rest   with "both", for R of `cholesky_qr`: its F or None, for Vt (I + F)⁻ᵀ in place of Vt
    left   of an array: upper triangular X_b as large as R_b, or None, for X U in place of U

    For R of a QR of a matrix whose columns are alike or fall in size, as samples of another or a pivoted R transposed:
    the GPU turns the columns of Rᵀ without the QR and LQ that others need first. Columns that rise by ten orders of
    magnitude cost it three times the sweeps, and by a hundred it reports no convergence: `svd` is right for these.
    NaN and Inf: as `svd` with return_info on the GPU, LinAlgError on the CPU. R is an array (batch, m, n) or a
    MatrixBatch. Raises ValueError for complex R. Source: Drmač & Veselić (2008).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> R = batched.qr(A, mode="r")
    >>> U, s, Vt, info = batched.svd_of_transposed(R)
    >>> bool(np.allclose(U * s[:, None, :] @ Vt, R.transpose(0, 2, 1)))
    True
    """
    refuse_complex(R, "svd_of_transposed")
    rest, left = (None if M is None else array_module(M).ascontiguousarray(M, R.dtype) for M in (rest, left))
    return twin(R).svd_of_transposed(R, vectors, rank, rest, left)


def truncated_svd(
    A: Array | MatrixBatch, atol: ArrayLike, *, return_info: bool = False, consume: bool = False
) -> tuple[Any, ...]:
    """Left singular vectors and values of the part of A_b that a pivoted QR stopped at atol_b leaves: U, s, missed.

    A             (batch, m, n) array or MatrixBatch
    atol          a number or (batch,) of them, ≥ 0
    missed        (batch,) float64 where A lives: ‖A_b − U_b U_bᵀ A_b‖_F ≤ atol_b
    return_info   of a MatrixBatch: nothing is waited for where the GPU can do without; sizes of U and s stay where A
                  lives then, s has zeros up to its bounds, and info is added, as by `svd`; the CPU raises
    consume       with return_info: U may lie where A was

    For a MatrixBatch U is m × rank and s rank × 1; of arrays U is (batch, m, k), s (batch, k), zeros beyond the rank.
    The rank is the least that atol allows on the CPU, and nearly so on the GPU. Raises as `pivoted_qr`.
    Source: Businger & Golub (1965); Drmač & Veselić (2008).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> U, s, missed = batched.truncated_svd(A, 1.0)
    >>> rest = A - U @ (U.transpose(0, 2, 1) @ A)
    >>> bool((np.linalg.norm(rest, axis=(1, 2)) <= 1.0).all())
    True
    """
    A = checked(A, "A")
    if isinstance(A, MatrixBatch):
        return twin(A).truncated_svd(A, tolerances(atol, (len(A),)), return_info=return_info, consume=consume)
    (*lead, m, _), k = A.shape, min(A.shape[-2:])
    U, s, missed = twin(A).truncated_svd(MatrixBatch.from_stack(stack(A)), tolerances(atol, lead), padded=True)
    return U.entries.reshape(*lead, m, k), s.entries.reshape(*lead, k), missed.reshape(lead)


def shared_ranks(sigma: Array, allowance: ArrayLike) -> Integers:
    """How many values each row keeps when as many of all as can be, the smallest first, are discarded: (batch,).

    sigma      (batch, values), each row descending, padded with zeros
    allowance  what the discarded squares may sum to, a number or an array of one where sigma is

    Raises nothing. Source: Mathematics page, Compress: squares of what is discarded add up.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> sigma = np.array([[4.0, 2.0, 0.1], [3.0, 0.2, 0.0]])
    >>> batched.shared_ranks(sigma, 0.06).tolist()  # 0.1² + 0.2² are discarded
    [2, 1]
    """
    return twin(sigma).shared_ranks(sigma, allowance)


def discarded(sigma: Array, ranks: Integers) -> Array:
    """Σ over the rows of sigma (batch, values) of the squares from the ranks[b]-th on, float64: where sigma is.

    Raises nothing. Source: Mathematics page, Compress: squares of what is discarded add up.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> sigma = np.array([[4.0, 2.0, 1.0], [3.0, 2.0, 0.0]])
    >>> float(batched.discarded(sigma, np.array([2, 1])))
    5.0
    """
    return twin(sigma).discarded(sigma, ranks)


@any_array
def rsvd(
    A: Matrices,
    rank: int | None = None,
    oversample: int = 8,
    power: int = 0,
    random_state: Seed = None,
    *,
    rtol: float | None = None,
) -> tuple[Matrices, Matrices, Matrices]:
    """The leading singular triplets by randomized projection: U, s, Vt.

    A             (batch, m, n) array or MatrixBatch
    rank          triplets wanted (fewer where min(m, n) is less); with rtol: the most of them, None for any number
    oversample    additional samples, discarded at the end
    power         power iterations, re-orthogonalized, for slowly decaying spectra
    random_state  seed of the samples: the same seed gives the same result, whatever the batch; or a NumPy Generator or
                  RandomState that one is drawn from, or None
    rtol          find the rank of each matrix: ‖A_b − U_b S_b Vt_b‖_F ≤ rtol ‖A_b‖_F with as few triplets as its
                  samples tell, which are doubled where they do not suffice; only `rank` ends that earlier

    With rtol, results of arrays are as wide as the largest rank found, with zeros beyond each matrix's own.

    Raises ValueError for bad arguments. Source: Boukaram et al. (2018), algorithm 4; Halko, Martinsson & Tropp (2011).

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((10, 40, 3)) @ rng.standard_normal((10, 3, 30))  # of rank 3
    >>> U, s, Vt = batched.rsvd(A, rank=3, random_state=0)
    >>> s.shape, bool(np.allclose(U * s[:, None, :] @ Vt, A))
    ((10, 3), True)
    """
    for name, value, least in (("rank", rank, 1), ("oversample", oversample, 0), ("power", power, 0)):
        missing = name == "rank" and rank is None and rtol is not None
        if not missing and (not isinstance(value, (int, np.integer)) or value < least):
            raise ValueError(f"rsvd: expected an integer {name} ≥ {least}, got {brief(value)}")
    if rtol is not None and not (isinstance(rtol, (int, float, np.number)) and 0 <= rtol < 1):
        raise ValueError(f"rsvd: expected rtol a number from 0 to below 1, got {brief(rtol)}")
    knobs = oversample, power, seed_of(random_state)
    if rtol is None:
        return over_leading(lambda A: randomized.svd(A, rank, *knobs), A)
    within = randomized.svd_within if isinstance(A, MatrixBatch) else randomized.stacks_within
    return over_leading(lambda A: within(A, rtol, rank, *knobs), A)
