"""What a fitted `CoKriging` can do besides predicting: cross-validation, profiles, files.

ŷ_i from all others     leave_one_out        ℓ along a parameter     profile        in a file and back     save, load
"""

from dataclasses import replace
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import array_module, to_host
from h2gpu.covariance import from_parameters
from h2gpu.covariance.models.variables import OfVariables
from h2gpu.statistics.cokriging.stacking import stacked, trend_of_variables
from h2gpu.statistics.inputs import seed_of
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.likelihood.profile import Profile, profile
from h2gpu.statistics.results import files
from h2gpu.statistics.results.leave_one_out import LeaveOneOut, leave_one_out
from h2gpu.statistics.trends import trend_of
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike, FileName

FORMAT = "h2gpu-cokriging"
ARRAYS = {"X": 2, "Y": 2, "w": 1, "gamma": 1, "solved": 2}
PLAIN = "parameters_", "parameter_errors_", "converged_", "iterations_", "rtol_", "residual_"


class CoResults:
    """A part of `CoKriging`, which fits."""

    def leave_one_out(self) -> LeaveOneOut:
        """Predictions of each observation from all others, those of other variables at its site among them, at the
        parameters in use and from one factorization: `LeaveOneOut` with values, mean and std (n, p), of observations,
        NaN where a variable was not observed. Exact for up to 4,096 observations, else std of stated error."""
        check_is_fitted(self, "cov_")
        X, Y = self._observed
        data, p, xp = stacked(X, Y), self.n_variables_, array_module(X)
        level = xp.asarray(self._means(p)[data.variable])
        found = leave_one_out(self._equations, data.values - level, level, seed_of(self.random_state))
        at = xp.asarray(data.row), xp.asarray(data.variable)

        def table(values):
            placed = xp.full((len(X), p), xp.nan)
            placed[at] = values
            return placed

        return replace(found, values=table(found.values), mean=table(found.mean), std=table(found.std))

    def profile(self, name: str, values: ArrayLike | None = None, full: bool = False) -> Profile:
        """The profile of the likelihood along an estimated parameter: a `likelihood.profile.Profile`.

        name     of `parameters_`
        values   on the parameter's own scale; default: 13 within three standard errors
        full     of more than 1,500 observations the full likelihood in place of Vecchia's

        Raises ValueError where the parameter was not estimated.
        """
        check_is_fitted(self, "cov_")
        if self.estimation_ is None:
            raise ValueError("profile: expected parameters that this object has estimated, got a fit with given ones")
        X, Y = self._observed
        p = self.n_variables_
        data = stacked(X, Y - array_module(X).asarray(self._means(p)))
        data = Data(data.places(np.ones(p)), self._trend, self.restricted)
        options = dict(zip(("rtol", "neighbours", "random_state", "solver"), self._accuracy))
        return profile(data, self.estimation_, name, values, options, full)

    def save(self, path: FileName) -> None:
        """Write the fitted estimator to an HDF5 file, whole or not at all, nothing pickled: `CoKriging.load` reads it.

        Raises ValueError for a trend that is a function, which a file cannot hold; OSError when the disk refuses.
        """
        check_is_fitted(self, "cov_")
        settings = files.constructor_arguments(self) | {name: getattr(self, name) for name in PLAIN}
        settings |= {
            "cov_": self.cov_.parameters(),
            "nugget_": self.nugget_.tolist(),
            "parameter_intervals_": {name: list(ends) for name, ends in self.parameter_intervals_.items()},
        }
        equations, (X, Y) = self._equations, self._observed
        arrays = {"X": X, "Y": Y, "w": equations.w[:, 0], "gamma": equations.gamma[:, 0]}
        files.write(path, FORMAT, settings, arrays | {"solved": equations.regression.solved})

    @classmethod
    def load(cls, path: FileName) -> Self:
        """The estimator of a file, on the CPU. Nothing in the file is trusted, nothing is solved again.

        Raises ValueError, one line, for a file that is damaged or of another kind; OSError when it cannot be opened.
        """
        settings, arrays = files.read(path, FORMAT, ARRAYS, "CoKriging.save", gaps=("Y",))
        try:
            return _restored(cls, settings, arrays)
        except (KeyError, TypeError, AttributeError, ValueError, np.linalg.LinAlgError) as error:
            raise ValueError(f"{path}: expected a CoKriging in order, got {type(error).__name__}: {error}") from None


def _restored(kind, settings, arrays):
    """The estimator as `fit` leaves it; anything may be wrong with the settings."""
    given = {name: settings[name] for name in kind._get_param_names()}
    one = kind(**(given | {"cov": from_parameters(given["cov"])}))
    p, _ = one._options()
    one._observed = X, Y = one._checked(arrays["X"], arrays["Y"], p)
    cov = from_parameters(settings["cov_"])
    if not isinstance(cov, OfVariables) or cov.variables != p or cov.dimension != X.shape[1] + 1:
        raise ValueError(
            f"cov_: expected a covariance of {p} variables in {X.shape[1]} dimensions, got {brief(cov, 80)}"
        )
    one._variable_trend = trend_of(one.trend, X.shape[1])
    one._trend = trend_of_variables(one._variable_trend, p)
    one.cov_, one.n_variables_, one.estimation_ = cov, p, None
    one.nugget_ = kind(cov, settings["nugget_"])._options()[1]
    for name in PLAIN:
        setattr(one, name, settings[name])
    one.parameter_intervals_ = {name: tuple(ends) for name, ends in settings["parameter_intervals_"].items()}
    data = stacked(X, Y - one._means(p))
    one._places, one._noisy = data.places(one.nugget_), float(one.nugget_.max() > 0)
    one._equations = files.restored_equations(one._places, one._trend, Model(cov, one._noisy), arrays, one._accuracy)
    one.trend_coefficients_ = (one._equations.regression.change @ to_host(one._equations.gamma)[:, 0]).reshape(p, -1)
    return one
