"""Distributions given by their values at thresholds: order relations, means, quantiles.

    F_k = P(Z ≤ z_k), k = 1 … K     a distribution must not fall: 0 ≤ F_1 ≤ … ≤ F_K ≤ 1

Between thresholds, and from the lowest to the highest value there is, F is linear. Order relations are corrected by the
mean of the least distribution above and the greatest below. Reference: Deutsch & Journel (1998), GSLIB, section IV.1.9.
"""

import numpy as np

from h2gpu.arrays import array_module


def ordered(F):
    """F (m, K) as distributions: between 0 and 1, not falling along a row; what is one already stays as it is.

    >>> ordered(np.array([[0.2, 0.1, 1.1]]))
    array([[0.15, 0.15, 1.  ]])
    """
    xp = array_module(F)
    F = xp.clip(F, 0, 1)
    up, down = F.copy(), F.copy()
    for k in range(1, F.shape[1]):  # K is ten or so: array modules differ in what accumulates
        up[:, k] = xp.maximum(up[:, k], up[:, k - 1])
        down[:, -1 - k] = xp.minimum(down[:, -1 - k], down[:, -k])
    return 0.5 * (up + down)


def completed(F, thresholds, low, high):
    """F (m, K + 2) and its thresholds (K + 2,) with the ends, where F is 0 and 1."""
    xp, m = array_module(F), len(F)
    z = np.concatenate([[low], thresholds, [high]])
    return xp.concatenate([xp.zeros((m, 1)), F, xp.ones((m, 1))], axis=1), z


def means(F, z):
    """Mean (m,) of completed distributions."""
    xp = array_module(F)
    return (F[:, 1:] - F[:, :-1]) @ xp.asarray(0.5 * (z[1:] + z[:-1]))


def quantiles(F, z, levels):
    """Least values (m, count) at which completed distributions reach the levels (count,)."""
    xp, rows = array_module(F), array_module(F).arange(len(F))
    z, found = xp.asarray(z), xp.empty((len(F), len(levels)))
    for j, level in enumerate(levels):
        k = xp.clip((level > F).sum(axis=1), 1, F.shape[1] - 1)  # F_(k−1) < level ≤ F_k
        below, step = F[rows, k - 1], F[rows, k] - F[rows, k - 1]
        part = xp.where(step > 0, (level - below) / xp.where(step > 0, step, 1), 0.0)
        found[:, j] = z[k - 1] + xp.clip(part, 0, 1) * (z[k] - z[k - 1])
    return found


def at(F, z, value):
    """P(Z ≤ value) (m,) of completed distributions."""
    xp = array_module(F)
    if value < z[0]:
        return xp.zeros(len(F))
    if value >= z[-1]:
        return xp.ones(len(F))
    k = int(np.searchsorted(z, value, side="right"))
    part = (value - z[k - 1]) / (z[k] - z[k - 1])
    return (1 - part) * F[:, k - 1] + part * F[:, k]
