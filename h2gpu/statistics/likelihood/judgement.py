"""What cannot be estimated, refused, and what an estimate says nothing about, told in messages.

    length scale > extent of the sites      the data tell σ² l^(−2ν), not σ² and l
    ℓ < ℓ(independent data) + 2             the data tell no covariance
Reference: Zhang (2004), Inconsistent estimation and asymptotically equal interpolations in model-based geostatistics.
"""

import re

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.covariance import DistanceFunction, Expression, UserFunction
from h2gpu.statistics.likelihood.parameters import USUAL
from h2gpu.texts import brief

CORRELATED = 2.0  # of log-likelihood that a covariance must bring, two parameters more than independent data have


def check_free(model):
    """ValueError where a number that is asked for is none of the covariance's, or cannot be estimated."""
    if model.kinds == USUAL:
        unknown = _unknown(model.cov)
        if unknown is not None:
            raise ValueError(
                f"cov: {unknown!r} has no numbers that can be estimated; write it as an Expression with numbers by "
                'name, or choose those of the others, such as fit_parameters=["nugget"]'
            )
    along = any(getattr(term, "distance", None) == "great-circle" for term in getattr(model.cov, "terms", [model.cov]))
    if along and any(free.kind == "smoothness" for free in model.free):
        raise ValueError(
            "smoothness: expected a covariance of the chord to estimate it, as great circles allow ½ at most, got "
            f'{model.cov!r}; take on_sphere(…, distance="chordal")'
        )
    found = {name for free in model.free for name in (free.kind, free.name.rpartition(".")[2])}
    missing = [kind for kind in model.kinds if kind not in found] if model.kinds != USUAL else []
    if missing or not model.free:
        raise ValueError(
            f"cov: expected a covariance with {', '.join(missing or model.kinds)} to estimate, got {brief(model.cov)}"
        )


def _unknown(cov):
    """The first part of a covariance that is a caller's, without numbers; None without."""
    if isinstance(cov, (UserFunction, DistanceFunction)) or (isinstance(cov, Expression) and not cov.numbers):
        return cov
    return next(filter(None, map(_unknown, cov.parts)), None)


def judged(found, data):
    """The estimate with messages on what it says nothing about."""
    for name, length, extent in _beyond(found.model, data.sites):
        found = found.told(
            f"maximum likelihood: {name} {length:.4g} exceeds the extent {extent:.4g} of the sites: the data do not "
            "tell it and the variance apart; a trend that is left out does that"
        )
    independent = data.independent_log_likelihood
    kinds = {free.kind for free in found.model.free}
    if independent is not None and {"variance", "length_scale"} <= kinds and found.value < independent + CORRELATED:
        found = found.told(
            f"maximum likelihood: independent data are as likely, {independent:.6g} to {found.value:.6g}: variance "
            "and length scale are not determined; take more sites close to each other, or no covariance"
        )
    return found


def _beyond(model, sites):
    """(name, length scale, extent of the sites along it) of the free length scales that are longer."""
    x = to_host(model.cov.embed(sites))
    extents = np.ptp(x, axis=0)
    whole = float(np.linalg.norm(extents[:-1] if model.cov.timed or model.cov.variables else extents))
    for free in model.free:
        if free.kind == "time_scale" and free.value > extents[-1]:
            yield free.name, free.value, float(extents[-1])
        elif free.kind == "length_scale":
            along = None if model.cov.frame else re.search(r"length_scale\[(\d+)\]$", free.name)
            extent = float(extents[int(along[1])]) if along else whole
            if free.value > extent:
                yield free.name, free.value, extent
