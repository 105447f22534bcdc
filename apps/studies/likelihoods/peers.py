"""Laplace's approximation by this package and by GPBoost: exponential covariance, constant mean of η.

Each function takes an `observations.Case` and returns a `Fit`. GPBoost's approximation is Vecchia's, 30 neighbours; its
log-determinants and variances are stochastic then, as it ships. `exact`: its dense computation.
Reference: Kündig & Sigrist (2025), Iterative methods for Vecchia–Laplace approximations, JASA 120; the package gpboost
(the extra `studies`).
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.apps.studies.likelihoods.observations import DF
from h2gpu.apps.studies.peers import gpboost_vecchia
from h2gpu.covariance import Exponential
from h2gpu.statistics import GeneralizedKriging
from h2gpu.statistics.generalized.likelihoods import LIKELIHOODS

THEIRS = {"poisson": "poisson", "binomial": "binomial_logit", "gamma": "gamma", "student-t": "t_fix_df"}


@dataclass(frozen=True, eq=False)
class Fit:
    """Covariance, likelihood and mean of η in use, and means (m,) and variances (m,) of η at the targets."""

    cov: Exponential
    likelihood: object
    level: float
    mean: np.ndarray
    variance: np.ndarray


def h2gpu(case):
    """GeneralizedKriging, from its own starting values."""
    estimator = kriging(case.likelihood, Exponential(), {}, fit_parameters=True)
    model = estimator.fit(features(case.likelihood, case.sites, case.size), case.y)
    mean, std = model.predict_latent(features(case.likelihood, case.targets, case.target_size), return_std=True)
    return Fit(model.cov_, model.likelihood_, float(model.trend_coefficients_[0]), mean, std**2)


def marginal(case, fit):
    """Laplace's log-likelihood of all observations at the parameters of a Fit, the mean of η at its best value."""
    own = {name: getattr(fit.likelihood, name) for name in fit.likelihood.names}
    model = kriging(case.likelihood, fit.cov, own)
    return float(model.fit(features(case.likelihood, case.sites, case.size), case.y).log_marginal_likelihood())


def kriging(likelihood, cov, own, **more):
    """The estimator, numbers of the likelihood given; the last column holds exposure or trials where there are some."""
    sized = {"poisson": {"exposure": 2}, "binomial": {"trials": 2}}.get(likelihood, {})
    return GeneralizedKriging(
        cov, likelihood, **{"df": DF, **own} if likelihood == "student-t" else own, **sized, **more
    )


def features(likelihood, sites, size):
    """Sites, and sizes as a column where the likelihood has some."""
    return np.column_stack([sites, size]) if likelihood in ("poisson", "binomial") else sites


def gpboost(case, exact=False, given=None):
    """GPModel, from its own starting values, or at the parameters of another Fit."""
    import gpboost

    lattice = {"gp_approx": "none"} if exact else {"gp_approx": "vecchia", "num_neighbors": gpboost_vecchia.NEIGHBOURS}
    if case.likelihood == "binomial":
        lattice["weights"] = case.size
    if case.likelihood == "student-t":
        lattice["likelihood_additional_param"] = DF
    kind, one = THEIRS[case.likelihood], np.ones((len(case.truth), 1))
    model = gpboost.GPModel(gp_coords=case.sites, cov_function="exponential", likelihood=kind, seed=0, **lattice)
    shift, none = {}, {}
    if case.likelihood == "poisson":
        shift, none = {"offset": np.log(case.size)}, {"offset_pred": np.zeros(len(case.truth))}
    y = case.y / case.size if case.likelihood == "binomial" else case.y
    model.fit(y=y, X=np.ones((len(y), 1)), params=_fixed(case.likelihood, given), **shift)
    found = model.predict(gp_coords_pred=case.targets, X_pred=one, predict_var=True, predict_response=False, **none)
    variance, length = np.asarray(model.get_cov_pars()).ravel()[:2].tolist()
    likelihood, level = _likelihood(case.likelihood, model), float(np.asarray(model.get_coef()).ravel()[0])
    return Fit(Exponential(variance, length), likelihood, level, found["mu"], np.maximum(found["var"], 0))


def _fixed(likelihood, given):
    """GPBoost's options that keep given parameters; None for none."""
    if given is None:
        return None
    cov, own = np.array([given.cov.variance, given.cov.length_scale]), given.likelihood
    kept = {"maxit": 0, "init_cov_pars": cov, "init_coef": np.array([given.level])}
    numbers = {"gamma": ["shape"], "student-t": ["scale", "df"]}.get(likelihood)
    if numbers:
        kept |= {"init_aux_pars": np.array([getattr(own, name) for name in numbers]), "estimate_aux_pars": False}
    return kept


def _likelihood(name, model):
    """Our value of GPBoost's likelihood."""
    kind = LIKELIHOODS[name]
    if not kind().names:
        return kind()
    first = float(np.asarray(model.get_aux_pars()).ravel()[0])
    return kind(first) if name == "gamma" else kind(first, DF)
