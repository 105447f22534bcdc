"""Steps of the elimination at another covariance by the skeletons of a factor near it.

    S, R as they were;   F_S = Q R11,   T = R11⁻¹ Qᵀ F_R   and what follows, of the new A

Differences by parameters then are those of a smooth function. With the old T, too, they would miss what the derivative
of F_R − F_S T adds: 0.5 of a slope of 1,094 (5,000 sites, Matérn 2.3 with a nugget), whatever eta.

Reference: Minden, Damle, Ho & Ying (2017), Fast spatial Gaussian process maximum likelihood estimation via
skeletonization factorizations.
"""

from itertools import groupby

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.batched.copies import add_to_diagonals
from h2gpu.batched.device.threads import parallel
from h2gpu.solvers.skeletonization.elimination import Panels
from h2gpu.solvers.skeletonization.flat_changes import twin


def alike(field, level, changes, steps):
    """The Steps of one level by those of another factor, (cells, …) each, in their order; level and changes are brought
    up to date."""
    if not steps:
        return []
    xp, n = array_module(field.points), field.n
    within = xp.full(n + 1, n, np.int32)  # position of each index in its cell
    first, members = xp.asarray(np.repeat(level.first[:-1], level.count)), level.members[:-1]
    within[members] = xp.arange(len(members)) - first

    def one(step):
        cells = level.numbers(step.places)
        panels = Panels.of(field, level, changes, step.depth, cells)
        skeleton = _padded_last(step.SN[:, : step.s], n)
        S, R = (xp.minimum(within[indices], panels.rows.own) for indices in (skeleton, step.R))
        T = _interpolation(panels.K[:, panels.rows.far :], S, R, panels.rows.own)
        return panels.step(np.arange(len(cells)), slice(None), S, R, T, to_host((skeleton < n).sum(axis=1)))

    found = []
    for colour in [list(some) for _, some in groupby(steps, lambda step: tuple(step.places[0] % 3))]:
        found += parallel(one, colour) if changes.threaded else map(one, colour)
    return found


def _padded_last(skeleton, n):
    """Indices (cells, s) with the padded ones, n, behind the others: a GPU's steps have them in front."""
    return twin(skeleton).along(skeleton, array_module(skeleton).argsort(skeleton == n, axis=1, kind="stable"), 1)


def _interpolation(F, S, R, dummy):
    """T (cells, s, r) with F[:, R] ≈ F[:, S] T in the least squares sense; zero where padded."""
    xp, s = array_module(F), S.shape[1]
    triangles = batched.qr(xp.concatenate([twin(F).along(F, which, 2) for which in (S, R)], axis=2), "r")[:, :s]
    R11 = xp.ascontiguousarray(triangles[:, :, :s])
    padded = dummy == S
    R11 *= ~padded[:, None, :]
    add_to_diagonals(R11, padded)
    T = batched.trsm(R11, xp.ascontiguousarray(triangles[:, :, s:]), lower=False)
    return T * ~padded[:, :, None]
