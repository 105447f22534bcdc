"""Several variables in h2krige: --values zinc,lead is cokriging of both.

--covariance matern     the parsimonious multivariate Matérn covariance, a smoothness a variable
others                  a linear model of coregionalization of one structure

Reference: Wackernagel (2003), Multivariate geostatistics, chapters 24 to 26.
"""

from dataclasses import replace

import numpy as np

import h2gpu
from h2gpu.apps.command import options
from h2gpu.apps.command.command import InputError
from h2gpu.covariance import Coregionalization, MultivariateMatern
from h2gpu.covariance.models.variables import MOST_VARIABLES

OF_ONE = "time", "sphere", "radius", "drift", "rotation", "variance", "nugget", "plot"
KINDS = "variance", "length_scale", "partial", "nugget"  # that are estimated


def check(arguments):
    """InputError for options that are of one variable."""
    a, p = arguments, len(arguments.values)
    if len({short(name) for name in a.values}) < p or p > MOST_VARIABLES:
        raise InputError(f"--values: expected up to {MOST_VARIABLES} different names, got {','.join(a.values)}")
    if a.truth and len(a.truth) != p:
        raise InputError(f"--truth: expected {p} names as in --values, got {len(a.truth)}")
    for name in OF_ONE if p > 1 else ():
        if getattr(a, name):
            raise InputError(f"--{name}: is for one of --values, got {p} of them")
    if p > 1 and not a.fit:
        raise InputError(f"--values: expected --fit with {p} variables, whose correlations are estimated")


def model(arguments, cov, values, trend, dim, comm):
    """The CoKriging to be fitted to values (n, p) of sites of dim coordinates, from the covariance of one variable; by
    the ranks of comm where there are several."""
    a, (_, p) = arguments, values.shape
    spread = [float(v) or 1.0 for v in np.nanvar(values, axis=0)]
    if a.covariance == "matern":
        if isinstance(cov.length_scale, tuple) and len(cov.length_scale) > 1:
            raise InputError("--length-scale: expected one number for --covariance matern of several variables")
        own = (cov.smoothness,) * p
        cov = MultivariateMatern(spread, cov.first_length_scale, own, np.eye(p), dim)
    else:
        cov = Coregionalization([np.diag(spread)], [replace(cov, variance=1.0)], dim)
    kinds = [*KINDS, *options.shapes(a)]
    if comm.size > 1:
        return h2gpu.distributed.statistics.CoKriging(cov, 0.0, trend, a.rtol, comm=comm, fit_parameters=kinds)
    return h2gpu.statistics.CoKriging(cov, 0.0, trend, a.rtol, fit_parameters=kinds)


def scored(names, truth, mean, std):
    """{name: scores} of variables, (m, p) each, where the truth is known."""
    told = {}
    for name, t, m, s in zip(names, truth.T, mean.T, std.T):
        known = np.isfinite(t)
        if known.any():
            told[short(name)] = h2gpu.statistics.scores.summary(t[known], m[known], s[known])
    return told


def short(name):
    """A dataset's name without its group."""
    return name.rpartition("/")[2]
