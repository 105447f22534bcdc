"""Test matrices of LAPACK's LATMS kind, random singular vectors and a spectrum of a given mode and condition; and those
that are exceptional: of zeros, equal columns, deficient rank, near underflow and overflow.

Demmel & McKenney (1989), A test matrix generation suite, LAPACK Working Note 9.
"""

import numpy as np

from h2gpu.batched import MatrixBatch

MODES = (1, 2, 3, 4, 5, 6)
CONDITIONS = {np.float64: (2.0, 2.1e7, 4.5e14), np.float32: (2.0, 2.1e3, 4.5e6, 4.5e14)}


def spectrum(k, mode, condition, rng):
    """k values of LATMS: 1 one large, 2 one small, 3 geometric, 4 arithmetic, 5 random logarithms, 6 random normal."""
    i = np.arange(k) / max(k - 1, 1)
    match mode:
        case 1:
            return np.where(np.arange(k) == 0, 1.0, 1 / condition)
        case 2:
            return np.where(np.arange(k) == k - 1, 1 / condition, 1.0)
        case 3:
            return condition**-i
        case 4:
            return 1 - i * (1 - 1 / condition)
        case 5:
            return condition ** -rng.random(k)
        case 6:
            return rng.standard_normal(k)
    raise ValueError(f"spectrum: expected mode 1 … 6, got {mode}")


def orthonormal(batch, m, k, rng):
    """(batch, m, k) matrices of orthonormal columns, uniformly distributed."""
    Q, R = np.linalg.qr(rng.standard_normal((batch, m, k)))
    return Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]


def latms(batch, m, n, mode, condition, rng, dtype=np.float64):
    """(batch, m, n) matrices of the mode and condition."""
    k = min(m, n)
    d = np.stack([spectrum(k, mode, condition, rng) for _ in range(batch)])
    return ((orthonormal(batch, m, k, rng) * d[:, None, :]) @ orthonormal(batch, n, k, rng).swapaxes(1, 2)).astype(
        dtype
    )


def all_spectra(m, n, dtype, rng):
    """One matrix of each mode and condition."""
    conditions = CONDITIONS[dtype]
    return np.concatenate([latms(1, m, n, mode, condition, rng, dtype) for mode in MODES for condition in conditions])


def extremes(dtype):
    """Factors that bring entries around 1 near underflow, below it, and near overflow."""
    limits = np.finfo(dtype)
    return {
        "near underflow": limits.tiny / (4 * limits.eps),  # LAPACK's
        "next to underflow": limits.tiny * 64,
        "denormal": limits.tiny / 64,
        "near overflow": limits.max / 2**14,
    }


def exceptional(m, n, dtype, rng):
    """{what is exceptional: m × n matrix}"""
    A = {name: rng.standard_normal((m, n)) for name in EXCEPTIONAL}
    A["zero"][...] = 0
    A["minus zero"][...] = -0.0
    A["one entry"][...] = 0
    A["one entry"][m // 2, n // 2] = -3
    A["identity"] = np.eye(m, n)
    A["ones"][...] = 1
    A["triangle"] = np.triu(A["triangle"])
    A["zeros of both signs"] *= np.where(rng.random((m, n)) < 0.5, -0.0, 1)
    A["first column zero"][:, 0] = 0
    A["last column zero"][:, -1] = 0
    A["last half zero"][:, n // 2 :] = 0
    A["last rows zero"][m // 2 :] = 0
    A["equal columns"][:, n // 2 :] = A["equal columns"][:, : n - n // 2]
    A["equal rows"][m // 2 :] = A["equal rows"][: m - m // 2]
    A["rank one"] = np.outer(A["rank one"][:, 0], A["rank one"][0])
    A["rank n/3"] = np.round(8 * A["rank n/3"][:, : n // 3 + 1]) @ np.round(8 * rng.standard_normal((n // 3 + 1, n)))
    A["columns scaled"] *= 2.0 ** -np.linspace(0, 50, n).round()
    A["rows scaled"] *= 2.0 ** -np.linspace(0, 50, m).round()[:, None]
    A["first rows tiny"][: m // 2] *= extremes(dtype)["near underflow"]
    A["last rows tiny"][m // 2 :] *= extremes(dtype)["near underflow"]
    for name, factor in extremes(dtype).items():
        A[name] *= factor
    return {name: M.astype(dtype) for name, M in A.items()}


EXCEPTIONAL = (
    *("zero", "minus zero", "one entry", "identity", "ones", "triangle", "zeros of both signs"),
    *("first column zero", "last column zero", "last half zero", "last rows zero", "equal columns", "equal rows"),
    *(
        "rank one",
        "rank n/3",
        "columns scaled",
        "rows scaled",
        "first rows tiny",
        "last rows tiny",
        *extremes(np.float64),
    ),
)


# Batches


def normal(shapes, dtype, rng):
    """A ragged batch of random matrices of the shapes."""
    rows, columns = np.array(shapes, int).reshape(-1, 2).T
    A = MatrixBatch.empty(rows, columns, dtype)
    A.buffer[...] = rng.standard_normal(A.buffer.size)
    return A


def to(A, xp):
    """A copy of a batch on the host in the memory of an array module."""
    if isinstance(A, MatrixBatch):
        return MatrixBatch(xp.array(A.buffer), A.offsets, A.rows, A.columns)
    return xp.array(A)


# Complex ones

PARTS = {np.complex64: np.float32, np.complex128: np.float64}
COMPLEX = list(PARTS)


def gaussian(shape, dtype, rng):
    """Complex normal numbers."""
    parts = rng.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def complex_normal(shapes, dtype, rng):
    """A ragged batch of random matrices of the shapes."""
    rows, columns = np.array(shapes, int).reshape(-1, 2).T
    A = MatrixBatch.empty(rows, columns, dtype)
    A.buffer[...] = gaussian(A.buffer.shape, dtype, rng)
    return A


def unitary(m, k, rng):
    """m × k, of orthonormal columns."""
    return np.linalg.qr(gaussian((m, k), np.complex128, rng))[0]


def of_values(values, m, n, rng, dtype):
    """U diag(values) Vᴴ, m × n."""
    k = min(m, n)
    return ((unitary(m, k, rng) * values) @ unitary(n, k, rng).conj().T).astype(dtype)


def complex_spectra(m, n, dtype, rng):
    """One matrix of each of LATMS' modes and of each condition."""
    cases = [(mode, condition) for mode in MODES for condition in CONDITIONS[PARTS[dtype]]]
    return np.stack([of_values(spectrum(min(m, n), *case, rng), m, n, rng, dtype) for case in cases])


def turned_exceptional(m, n, dtype, rng):
    """The exceptional ones, rows and columns turned by random phases; (kinds, m, n)."""
    found = exceptional(m, n, PARTS[dtype], rng)
    rows, columns = (np.exp(2j * np.pi * rng.random(size)) for size in (m, n))
    turned = [found[name].astype(np.complex128) * rows[:, None] * columns for name in EXCEPTIONAL]
    return np.stack(turned).astype(dtype)


def complex_extremes(dtype):
    """Factors towards underflow and overflow."""
    return extremes(PARTS[dtype]).values()
