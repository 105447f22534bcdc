"""Complex matrices as `latms` has real ones: random, of given spectra, and exceptional."""

import numpy as np
from latms import CONDITIONS, EXCEPTIONAL, MODES, exceptional, extremes, spectrum

from h2gpu.batched import MatrixBatch

PARTS = {np.complex64: np.float32, np.complex128: np.float64}
DTYPES = list(PARTS)


def gaussian(shape, dtype, rng):
    """Complex normal numbers."""
    parts = rng.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def normal(shapes, dtype, rng):
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


def all_spectra(m, n, dtype, rng):
    """One matrix of each of LATMS' modes and of each condition."""
    cases = [(mode, condition) for mode in MODES for condition in CONDITIONS[PARTS[dtype]]]
    return np.stack([of_values(spectrum(min(m, n), *case, rng), m, n, rng, dtype) for case in cases])


def every_kind(m, n, dtype, rng):
    """The exceptional ones, rows and columns turned by random phases; (kinds, m, n)."""
    found = exceptional(m, n, PARTS[dtype], rng)
    rows, columns = (np.exp(2j * np.pi * rng.random(size)) for size in (m, n))
    turned = [found[name].astype(np.complex128) * rows[:, None] * columns for name in EXCEPTIONAL]
    return np.stack(turned).astype(dtype)


def scales(dtype):
    """Factors towards underflow and overflow."""
    return extremes(PARTS[dtype]).values()
