"""The Matérn correlation from a table: no Bessel functions, on any device.

    ρ(z) = exp(ν (log(1 + d/2) − d)) w^(−½) · S(log z),   w = √(1 + z²/ν²),   d = w − 1

The first factors are the leading term of Debye's expansion (DLMF 10.41.4), which carries all growth and decay; the
rest S is of order one and smooth in t = log z, analytic for |Im t| < π/2. So Chebyshev interpolation on pieces of
length ½ converges like 12.6^(−degree), and 51 pieces of degree 15 hold it for all z in [1e-8, 1000] (6.5 kB).
"""

import functools
import math

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from h2gpu.batched.arrays import array_module

DEGREE = 15
PIECES = 51
LENGTH = 0.5
START = math.log(1e-8)


def correlation(z, smoothness):
    """ρ(z) for an array 1e-8 ≤ z ≤ 1000 on any device, to 1e-13; smoothness ν < 20."""
    xp = array_module(z)
    t = xp.log(z)
    t -= START
    t *= 1 / LENGTH
    piece = xp.clip(t.astype(np.intp), 0, PIECES - 1)
    t -= piece
    t *= 2
    t -= 1  # now in [-1, 1] on the piece
    table = xp.asarray(coefficients(smoothness).astype(z.dtype))
    S = table[DEGREE].take(piece)
    for k in reversed(range(DEGREE)):
        S *= t
        S += table[k].take(piece)
    S *= debye_leading(z, smoothness)[0]
    return S


def debye_leading(z, smoothness):
    """exp(ν (log(1 + d/2) − d)) w^(−½), without cancellation at small z, and w."""
    xp = array_module(z)
    xx = (z / smoothness) ** 2
    w = xp.sqrt(1 + xx)
    d = xx / (1 + w)
    return xp.exp(smoothness * (xp.log1p(0.5 * d) - d)) / xp.sqrt(w), w


@functools.lru_cache(maxsize=256)
def coefficients(smoothness):
    """Powers of the piece's coordinate in [−1, 1]: array (DEGREE + 1, PIECES), made on the host."""
    nodes = chebyshev.chebpts1(DEGREE + 1)
    pieces = np.arange(PIECES)
    z = np.exp(START + LENGTH * (pieces + 0.5 * (nodes[:, None] + 1)))
    S = special.kve(smoothness, z) * (2 / special.gamma(smoothness)) * (0.5 * z) ** smoothness
    S *= np.exp(-remaining_decay(z, smoothness))
    series = np.linalg.solve(chebyshev.chebvander(nodes, DEGREE), S)
    table = np.zeros_like(series)
    for piece, column in enumerate(series.T):
        powers = chebyshev.cheb2poly(column)  # without trailing zeros
        table[: len(powers), piece] = powers
    table.setflags(write=False)
    return table


def remaining_decay(z, smoothness):
    """z plus the logarithm of `debye_leading`, where neither factor under- nor overflows."""
    xx = (z / smoothness) ** 2
    w = np.sqrt(1 + xx)
    d = xx / (1 + w)
    # z − ν d = ν (x − w + 1) with x − w = −1/(x + w): no difference of large numbers
    return smoothness * (np.log1p(0.5 * d) + 1 - 1 / (z / smoothness + w)) - 0.5 * np.log(w)
