"""Test matrices of LAPACK's LATMS kind: random singular vectors and a spectrum of a given mode and condition."""

import numpy as np

MODES = (1, 2, 3, 4, 5, 6)


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
