"""The Matérn correlation from a table: no Bessel functions, on any device.

    ρ(z) = G(z) exp(−z),   G(z) = 2^(1−ν)/Γ(ν) z^ν K_ν(z) e^z

G is analytic away from z = 0 and grows like z^(ν−½). Every octave [2^e, 2^(e+1)) of z is cut into equal pieces, on each
of which G is a polynomial in the distance from its middle: with 2^b pieces Chebyshev interpolation converges like
(4 · 2^b)^(−degree). Piece and distance are bits of z: neither logarithm nor division. matern.cuh reads
the same table. Reference: L. N. Trefethen, Approximation Theory and Approximation Practice (2013), theorem 8.2.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.polynomial import chebyshev

from h2gpu.arrays import array_module

LOWEST, OCTAVES = -27, 37  # of z: from 2^-27, below which z² is under the rounding error of 1, to 2^10: exp(−1024) = 0


class Layout(NamedTuple):
    """Pieces of an octave, 2^bits, and the degree of their polynomials."""

    bits: int
    degree: int


LAYOUTS = {"float64": Layout(4, 9), "float32": Layout(6, 3)}  # 59 and 38 kB
SMALLEST, LARGEST = 2.0**LOWEST, 2.0 ** (LOWEST + OCTAVES)


@dataclass(frozen=True)
class Table:
    """The table of one smoothness as kernels read it, piece by piece: a value that names it."""

    smoothness: float
    dtype: str

    @property
    def type(self):
        """What C++ calls it."""
        return f"Pieces<{LAYOUTS[self.dtype].bits}, {LAYOUTS[self.dtype].degree}, {LOWEST}, {OCTAVES}>"

    @property
    def entries(self):
        """Powers from the constant on, piece after piece."""
        return coefficients(self.smoothness, self.dtype).T.ravel()


def correlation(z, smoothness):
    """ρ(z) for an array SMALLEST ≤ z < LARGEST on any device, to 2e-14 (float32: 4e-7); smoothness ν < 20."""
    xp = array_module(z)
    table = xp.asarray(coefficients(smoothness, z.dtype.name))
    layout, digits = LAYOUTS[z.dtype.name], np.finfo(z.dtype).nmant - LAYOUTS[z.dtype.name].bits
    one = np.ones(1, z.dtype).view(f"i{z.itemsize}")[0]
    bits = z.view(one.dtype)
    piece = bits >> digits
    piece -= (one >> digits) + (LOWEST << layout.bits)
    u = bits & one.dtype.type((1 << digits) - 1)
    u |= one
    u = u.view(z.dtype)
    u -= 1 + 0.5 ** (layout.bits + 1)  # now the distance from the middle of the piece, in units of 2^e
    G = table[-1].take(piece)
    for powers in table[-2::-1]:
        G *= u
        G += powers.take(piece)
    xp.negative(z, out=u)
    G *= xp.exp(u, out=u)
    return G


@functools.lru_cache(maxsize=64)
def coefficients(smoothness, dtype):
    """Powers of the distance from the middle of a piece: array (degree + 1, pieces), made on the host."""
    pieces, degree = 1 << LAYOUTS[dtype].bits, LAYOUTS[dtype].degree
    nodes = chebyshev.chebpts1(degree + 1)
    mantissas = 1 + (np.arange(pieces) + 0.5 * (nodes[:, None] + 1)) / pieces
    octaves = 2.0 ** np.arange(LOWEST, LOWEST + OCTAVES)
    z = (octaves[:, None] * mantissas[:, None, :]).reshape(degree + 1, -1)
    G = scipy.special.kve(smoothness, z) * (2 / scipy.special.gamma(smoothness)) * (0.5 * z) ** smoothness
    series = np.linalg.solve(chebyshev.chebvander(nodes, degree), G)
    table = powers_of_chebyshev(degree) @ series
    table *= (2.0 * pieces) ** np.arange(degree + 1)[:, None]
    table = table.astype(dtype)
    table.setflags(write=False)
    return table


def powers_of_chebyshev(degree):
    """Column k holds the powers of T_k: integers, exact."""
    T = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        T[: k + 1, k] = chebyshev.cheb2poly(np.eye(k + 1)[k])
    return T
