"""Batches of test matrices on the GPU, by their singular values.

| name | singular values |
|---|---|
| decaying | geometric from 1 to 1e-7, LATMS mode 3 |
| steep | exp(−0.7 k): what compression meets |
| rank 64 | 64 of them geometric from 1 to 1e-7, zeros behind |
| flat | of independent normal entries |
"""

import numpy as np

RANK = 64  # of the low-rank matrices
CONDITION = 1e7
STEEPNESS = 0.7
FACTORS = 8  # different pairs of orthogonal matrices in a batch


def singular_values(k, name):
    """The k singular values of a named spectrum, descending."""
    if name == "steep":
        return np.exp(-STEEPNESS * np.arange(k))
    values = {"decaying": k, f"rank {RANK}": min(RANK, k)}[name]
    return np.append(CONDITION ** -np.linspace(0, 1, values), np.zeros(k - values))


def matrices(batch, m, n, dtype, name="flat", seed=0):
    """(batch, m, n) CuPy array of a named spectrum: a few matrices, their rows and columns in many orders."""
    import cupy as cp

    rng = cp.random.default_rng(seed)
    if name == "flat":
        return rng.standard_normal((batch, m, n), dtype=np.dtype(dtype).type)
    k = min(m, n)
    left, right = (cp.linalg.qr(rng.standard_normal((FACTORS, rows, k)))[0] for rows in (m, n))
    few = ((left * cp.asarray(singular_values(k, name))) @ right.swapaxes(1, 2)).astype(dtype)
    b, i, j = cp.ogrid[:batch, :m, :n]
    return few[b % FACTORS, (i + b) % m, (j + 3 * b) % n]
