"""What a batched routine must do at least: nominal flops, bytes, and the time that no kernel can go below.

    bound = max(bytes / MEMORY_RATE, Σ flops / rate of the unit that does them)

Flops are counted as the papers count them, whatever the kernel really does; every input is read once, every output
written once. Rates: memory and products measured on an H200, the vector pipe by datasheet.
"""

from dataclasses import dataclass

import numpy as np

MEMORY_RATE = 4.26e12  # bytes/s read and written, measured copy
VECTOR_RATE = {"float64": 34e12, "float32": 67e12}  # flop/s, datasheet
PRODUCT_RATE = {"float64": 55.6e12, "float32": 50.8e12}  # flop/s, measured large matrix products
SWEEPS = 6  # of Jacobi, for the bound; flops count those that were made


@dataclass(frozen=True)
class Work:
    """flops and bytes of a whole batch, and the milliseconds that its arithmetic takes at least."""

    flops: float
    nbytes: float
    arithmetic_ms: float

    @property
    def bound_ms(self):
        return max(1e3 * self.nbytes / MEMORY_RATE, self.arithmetic_ms)

    def of(self, ms):
        """GFLOP/s, GB/s and fraction of the bound reached by a time."""
        return {"GFLOP/s": self.flops / ms * 1e-6, "GB/s": self.nbytes / ms * 1e-6, "of bound": self.bound_ms / ms}


def qr(m, n, dtype, want_q):
    """QR of matrices m × n (arrays or numbers): 2mn² − ⅔n³ for R, as much again for Q."""
    m, n = np.atleast_1d(m).astype(float), np.atleast_1d(n).astype(float)
    k = np.minimum(m, n)
    flops = (2 if want_q else 1) * np.sum(2 * np.maximum(m, n) * k**2 - 2 / 3 * k**3)
    entries = np.sum(m * n + k * n + (m * k if want_q else 0))
    return _work(flops, entries, dtype, VECTOR_RATE)


def svd(batch, m, n, dtype, sweeps):
    """Left vectors by one-sided Jacobi: n(n − 1)/2 rotations of 8m flops a sweep; `sweeps` made on average."""
    m, n = max(m, n), min(m, n)
    sweep = batch * n * (n - 1) / 2 * 8 * m
    bound = _work(SWEEPS * sweep, batch * (2 * m * n + n), dtype, VECTOR_RATE)
    return Work(sweeps * sweep, bound.nbytes, bound.arithmetic_ms)


def gebrd(batch, m, n, dtype):
    """Reduction of m × n to bidiagonal form: 4mn² − 4/3n³; reflectors take its place, with both τ, d and e."""
    m, n = max(m, n), min(m, n)
    return _work(batch * (4 * m * n**2 - 4 / 3 * n**3), batch * (2 * m * n + 4 * n), dtype, VECTOR_RATE)


def pivoted_qr(batch, m, n, dtype, rank):
    """Pivoted QR stopped after `rank` columns, the first step of a truncated SVD; left vectors of that rank out."""
    flops = 4 * m * n * rank - 2 * (m + n) * rank**2 + 4 / 3 * rank**3
    return _work(batch * flops, batch * (m * n + (m + 1) * rank), dtype, VECTOR_RATE)


def rsvd(batch, m, n, dtype, rank, samples):
    """Algorithm 4 of Boukaram et al.: products 4mns + 2(m + n)s·rank, QR of m × s and n × s with Q, SVD of s × s."""
    products = batch * (4.0 * m * n * samples + 2.0 * (m + n) * samples * rank)
    rest = batch * sum(float(qr(rows, samples, dtype, True).flops) for rows in (m, n))
    rest += svd(batch, samples, samples, dtype, SWEEPS).flops
    nbytes = batch * (2 * m * n + (m + n + 1) * rank) * np.dtype(dtype).itemsize
    name = np.dtype(dtype).name
    return Work(products + rest, nbytes, 1e3 * (products / PRODUCT_RATE[name] + rest / VECTOR_RATE[name]))


def gemm(batch, m, n, k, dtype):
    """Products m × k by k × n."""
    return _work(2.0 * batch * m * n * k, batch * (m * k + k * n + m * n), dtype, PRODUCT_RATE)


def symv(batch, n, dtype):
    """A symmetric matrix n × n, of which one triangle is read, times a vector."""
    return _work(2.0 * batch * n**2, batch * (n * (n + 1) / 2 + 2 * n), dtype, PRODUCT_RATE)


def syrk(batch, n, k, dtype):
    """One triangle of A Aᵀ, A n × k."""
    return _work(1.0 * batch * n * (n + 1) * k, batch * (n * k + n * (n + 1) / 2), dtype, PRODUCT_RATE)


def axpy(batch, m, n, dtype):
    """α X + Y."""
    return _work(2.0 * batch * m * n, 3.0 * batch * m * n, dtype, VECTOR_RATE)


def trsm(batch, n, k, dtype):
    """A triangle n × n solved with k right-hand sides."""
    return _work(1.0 * batch * n**2 * k, batch * (n * (n + 1) / 2 + 2 * n * k), dtype, PRODUCT_RATE)


def lu(batch, m, n, dtype):
    """LU with partial pivoting: mn² − n³/3 for m ≥ n; L and U take the place of one matrix."""
    m, n = max(m, n), min(m, n)
    return _work(batch * (m * n**2 - n**3 / 3), batch * 2.0 * m * n, dtype, PRODUCT_RATE)


def cholesky(batch, n, dtype):
    """A triangle is read, a whole matrix written."""
    return _work(batch * n**3 / 3, batch * (n * (n + 1) / 2 + n**2), dtype, PRODUCT_RATE)


def triangles(batch, n, k, dtype):
    """k right-hand sides solved with a triangle n × n, and then with its transpose."""
    return _work(2.0 * batch * n**2 * k, batch * (n * (n + 1) / 2 + 2 * n * k), dtype, PRODUCT_RATE)


def block_multiply(entries, vectors, sides, dtype):
    """A symmetric matrix of stored blocks times `sides` vectors: 4 flops an entry and side, every entry read once."""
    return _work(4.0 * entries * sides, entries + 2 * vectors * sides, dtype, PRODUCT_RATE)


def _work(flops, entries, dtype, rate):
    flops = float(flops)
    return Work(flops, float(entries) * np.dtype(dtype).itemsize, 1e3 * flops / rate[np.dtype(dtype).name])
