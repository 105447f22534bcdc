"""How far an estimation may go: logarithms of parameters.

    θ_start − log reach ≤ θ ≤ θ_start + log reach,   and numbers of limited range within it

Reference: Nocedal & Wright (2006), Numerical optimization, section 16.7, on projection to bounds.
"""

import numpy as np

REACH = {  # factors, at most
    **{"variance": 1e6, "length_scale": 1e3, "time_scale": 1e3, "nugget": 1e9},
    **{"number": 1e2, "rotation": 1e3},
}
LIMITS = {
    **{"smoothness": (0.05, 10.0), "exponent": (0.05, 1.99), "alpha": (0.01, 1e3)},
    **{"time_exponent": (0.05, 0.999), "interaction": (1e-3, 0.999)},
}

FARTHEST = {"partial": 3.8, "slopes": 10.0, "length_slopes": 10.0}  # of θ from 0: artanh 0.999; factor e¹⁰ an extent


def limits(model):
    """Logarithms between which numbers of limited range lie; no limits for others."""
    low, high = (np.log([LIMITS.get(free.kind, (1e-300, 1e300))[i] for free in model.free]) for i in (0, 1))
    unlimited = np.array([free.kind not in LIMITS for free in model.free])
    most = np.array([FARTHEST.get(free.kind, np.inf) for free in model.free])
    return np.where(unlimited, -most, low), np.where(unlimited, most, high)


def bounds(model):
    """Lowest and highest logarithms."""
    reach, (least, most) = np.log([REACH.get(free.kind, np.inf) for free in model.free]), limits(model)
    return np.maximum(model.theta - reach, least), np.minimum(model.theta + reach, most)
