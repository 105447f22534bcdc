"""The kriging equations of indicators i_k = 1 where y ≤ z_k, shared by the thresholds of one covariance and nugget.

    γ_k = (Qᵀ K⁻¹ Q)⁻¹ Qᵀ K⁻¹ i_k,     w_k = K⁻¹ (i_k − Q γ_k)

Reference: Journel (1983), Nonparametric estimation of spatial distributions, Mathematical Geology 15.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.statistics.equations import Equations
from h2gpu.statistics.places import places_of


@dataclass(frozen=True, eq=False)
class Solved:
    """Equations shared by some thresholds: γ (p, members) and w (places, members) of their indicators.

    Both lie row by row, as a file brings them: products then round alike.
    """

    equations: Equations
    gamma: object
    w: object
    members: list

    @classmethod
    def of(cls, equations, gamma, w, members):
        """From γ and w in any order of memory."""
        laid = array_module(w).ascontiguousarray
        return cls(equations, laid(gamma), laid(w), members)


def indicator_places(X, y, weights, threshold, mean):
    """The Places of the indicator of y ≤ threshold, less its known mean."""
    return places_of(X, (y <= float(threshold)).astype(np.float64) - mean, weights)


def alike(models):
    """Lists of the indices of equal models, which share a factorization, in the order in which they come."""
    groups = []
    for k, model in enumerate(models):
        for other, members in groups:
            if other == model:
                members.append(k)
                break
        else:
            groups.append((model, [k]))
    return [members for _, members in groups]
