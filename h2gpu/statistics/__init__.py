"""Spatial statistics on 10⁵ to 10⁶ sites: prediction, likelihood, simulation.

    y_i = f(x_i)ᵀ β + Z(x_i) + ε_i,     Z Gaussian of covariance C,  var ε_i = nugget,  K = C + nugget I

    Ẑ(x), its standard deviation, samples given y   Kriging      a scikit-learn regressor
    log density of y, its gradient                  log_likelihood
    samples of Z                                    simulate
    ½ E (Z(x) − Z(x + h))²                          variogram    empirical, and models fitted to it
    counts, shares, outliers: p(y | Z(x))           GeneralizedKriging
    P(Z(x) ≤ z), its mean and quantiles             IndicatorKriging
    means of Z over cells, areas, sets of places    predict_blocks of Kriging and CoKriging, cells, areas

Up to 4,096 sites dense and exact; more by an H²-matrix of K, conjugate gradients with Vecchia's preconditioner, and
Lanczos. The array decides where to compute. Everything is deterministic under `random_state`.

>>> import numpy as np
>>> from h2gpu.covariance import Exponential
>>> sites, cov = np.random.default_rng(0).random((400, 2)), Exponential(variance=2.0, length_scale=0.3)
>>> y = simulate(cov, sites, random_state=0, nugget=0.1)[:, 0]
>>> kriging = Kriging(Exponential(), fit_parameters=True).fit(sites, y)
>>> mean, std = kriging.predict([[0.5, 0.5], [0.2, 0.9]], return_std=True)
>>> kriging.log_marginal_likelihood() > log_likelihood(cov, sites, y, nugget=0.1, trend="constant")
True
"""

from h2gpu.statistics.blocks.discretization import Blocks, areas, cells
from h2gpu.statistics.cokriging import CoKriging
from h2gpu.statistics.generalized.estimator import GeneralizedKriging
from h2gpu.statistics.indicators.estimator import IndicatorKriging
from h2gpu.statistics.kriging import Kriging
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood, log_likelihood
from h2gpu.statistics.simulation import simulate
from h2gpu.statistics.variography.empirical import EmpiricalVariogram, variogram

__all__ = [
    "Blocks",
    "CoKriging",
    "EmpiricalVariogram",
    "GeneralizedKriging",
    "IndicatorKriging",
    "Kriging",
    "LogLikelihood",
    "areas",
    "cells",
    "log_likelihood",
    "simulate",
    "variogram",
]
