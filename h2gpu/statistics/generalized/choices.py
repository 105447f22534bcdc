"""What a `GeneralizedKriging` was asked for, checked: covariance, likelihood, and which of their numbers are free.

    θ of C(θ), without a measurement error, whose place the likelihood takes;   α of p(y | η; α)

Reference: Diggle, Tawn & Moyeed (1998), Model-based geostatistics.
"""

import numpy as np

from h2gpu.covariance.checks import checked
from h2gpu.statistics.generalized.estimation import Joint
from h2gpu.statistics.generalized.likelihoods import LIKELIHOODS
from h2gpu.statistics.inputs import covariance_of
from h2gpu.statistics.likelihood.judgement import check_free
from h2gpu.statistics.likelihood.parameters import USUAL, Model, checked_kinds
from h2gpu.statistics.settings import check_accuracy, check_mean
from h2gpu.texts import brief

KEPT = "df"  # is estimated where it is asked for by name, or by "all"


def joint_of(estimator):
    """The `estimation.Joint` to start from. Raises ValueError for settings that are wrong."""
    _check_settings(estimator)
    kind, cov = LIKELIHOODS[estimator.likelihood], covariance_of(estimator.cov)
    names = kind().names
    likelihood = kind(**{name: checked(name, getattr(estimator, name)) for name in names})
    kinds, own = _wanted(estimator.fit_parameters, cov, names)
    return Joint(Model(cov, 1.0, kinds), likelihood, own)


def _check_settings(estimator):
    if estimator.likelihood not in LIKELIHOODS:
        raise ValueError(f"likelihood: expected one of {', '.join(LIKELIHOODS)}, got {brief(estimator.likelihood)}")
    check_accuracy(estimator)
    check_mean(estimator.mean)
    for name, owner in (("exposure", "poisson"), ("trials", "binomial")):
        if getattr(estimator, name) is not None and estimator.likelihood != owner:
            raise ValueError(f'{name}: expected likelihood="{owner}" with it, got {brief(estimator.likelihood)}')


def _wanted(wanted, cov, names):
    """Kinds of the covariance's numbers, and names of the likelihood's, that are free."""
    everything = isinstance(wanted, str) and wanted == "all"
    if everything or isinstance(wanted, (bool, np.bool_)):
        if wanted:
            check_free(Model(cov, 1.0, USUAL))
        every = checked_kinds("all", cov)
        kinds = tuple(k for k in every if (everything or k in USUAL) and (k != "nugget" or _has_nugget(cov)))
        return kinds, tuple(name for name in names if everything or name != KEPT)
    wanted = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    kinds = tuple(kind for kind in wanted if kind not in names)
    if "nugget" in kinds and not _has_nugget(cov):
        raise ValueError(
            f"cov: expected a Nugget within it to estimate the nugget, got {brief(cov)}; add Nugget(…) to it"
        )
    return checked_kinds(kinds, cov) if kinds else (), tuple(name for name in names if name in wanted)


def _has_nugget(cov):
    return not Model(cov, 1.0, ("nugget",)).error_is_free
