"""The same work by GPBoost: Vecchia's approximation of likelihood and predictions, 30 neighbours.

Its Matérn length scales are scikit-learn's, as ours (its prediction from all neighbours agrees with ours to 1e-8).
Reference: Sigrist (2022), Gaussian process boosting, JMLR 23; the package gpboost (the extra `studies`).
"""

import importlib.util
import time
from dataclasses import replace

import numpy as np

from h2gpu.covariance import OnSphere

NEIGHBOURS = 30
LEAST = 1e-10  # of the variance: a nugget that GPBoost takes for none


def available():
    """Whether the package is installed."""
    return importlib.util.find_spec("gpboost") is not None


def kriging(field, cov, nugget, estimate, clock=time.process_time):
    """Means and standard deviations of new observations at the targets, and with which parameters.

    field        a `published.Field`
    cov, nugget  an Exponential or Matern of one length scale, or on the sphere along the chord, and the nugget;
                 `estimate`: only its smoothness is used
    clock        gives the time in seconds

    Returns mean (m,), std (m,), covariance, nugget, coefficients of the trend, (seconds to fit, seconds to predict).
    """
    import gpboost

    sphere = cov if isinstance(cov, OnSphere) else None
    flat = cov.covariance if sphere else cov
    shape = getattr(flat, "smoothness", 0.5)
    begin = clock()
    model = gpboost.GPModel(
        gp_coords=cov.embed(field.sites),
        cov_function="matern",
        cov_fct_shape=shape,
        gp_approx="vecchia",
        num_neighbors=NEIGHBOURS,
        likelihood="gaussian",
        seed=0,
    )
    if estimate:
        centre = field.sites.mean(axis=0)
        model.fit(y=field.values, X=_columns(field, field.sites - centre))
        nugget, variance, length = np.asarray(model.get_cov_pars()).ravel()[:3].tolist()
        flat, trend = replace(flat, variance=variance, length_scale=length), np.array(model.get_coef()).ravel()
        trend[0] -= centre[: len(trend) - 1] @ trend[1:]
        given = {"X_pred": _columns(field, field.targets - centre)}
    else:
        trend = np.array([field.mean])
        pars = np.array([max(nugget, LEAST * flat.variance), flat.variance, flat.length_scale])
        given = {"y": field.values - field.mean, "cov_pars": pars}
    fitted = clock()
    found = model.predict(gp_coords_pred=cov.embed(field.targets), predict_var=True, **given)
    mean = found["mu"] if estimate else found["mu"] + field.mean
    seconds = fitted - begin, clock() - fitted
    cov = replace(sphere, covariance=flat) if sphere else flat
    return mean, np.sqrt(found["var"]), cov, nugget, trend, seconds


def log_likelihood(sites, y, cov, nugget):
    """Vecchia's log-likelihood of observations y (n,) of mean zero at sites (n, dim), parameters given."""
    import gpboost

    model = gpboost.GPModel(
        gp_coords=sites,
        cov_function="matern",
        cov_fct_shape=getattr(cov, "smoothness", 0.5),
        gp_approx="vecchia",
        num_neighbors=NEIGHBOURS,
        likelihood="gaussian",
        seed=0,
    )
    pars = np.array([max(nugget, LEAST * cov.variance), cov.variance, cov.length_scale])
    return -float(model.neg_log_likelihood(cov_pars=pars, y=y))


def _columns(field, points):
    """Columns of the field's trend."""
    one = np.ones((len(points), 1))
    return np.concatenate([one, points], axis=1) if field.trend == "linear" else one
