"""What a fitted `CoKriging` can do besides predicting: cross-validation, profiles, further observations, files.

ŷ_i from all others     leave_one_out          the same with more data     update
ℓ along a parameter     profile                in a file and back          save, load
means over areas        predict_blocks
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.covariance import from_parameters
from h2gpu.covariance.models.variables import OfVariables
from h2gpu.statistics.blocks.averages import block_predictions
from h2gpu.statistics.blocks.discretization import Blocks, blocks_of
from h2gpu.statistics.cokriging.stacking import blocks_of_variables, merged, stacked
from h2gpu.statistics.inputs import seed_of
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.likelihood.profile import Profile, profile
from h2gpu.statistics.results import files
from h2gpu.statistics.results.leave_one_out import LeaveOneOut, leave_one_out
from h2gpu.statistics.results.updating import check_same_arrays, take_over
from h2gpu.statistics.tables import check_same_crs
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, FileName

FORMAT = "h2gpu-cokriging"
ARRAYS = {"X": 2, "Y": 2, "w": 1, "gamma": 1, "solved": 2}
PLAIN = "parameters_", "parameter_errors_", "converged_", "iterations_", "rtol_", "residual_"


class CoResults:
    """A part of `CoKriging`, which fits."""

    def predict_blocks(
        self, blocks: Blocks | Sequence[ArrayLike], return_std: bool = False, *, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predictions of block means of all variables, (blocks, p), and where asked for one of

        return_std   standard deviations (blocks, p), exact: a solve a block and variable
        return_cov   covariances (blocks, p, blocks, p) of the errors, for up to 5,000 means

        blocks   `cells` of a grid, `areas` (polygons), or a list of (m, d) tables: the mean over those places

        Raises ValueError for anything else, and for both.
        """
        check_is_fitted(self, "cov_")
        check_same_crs(self.crs_, getattr(blocks, "crs", None))
        p = self.n_variables_
        blocks = blocks_of_variables(blocks_of(blocks, self._targets), p)
        mean, more = block_predictions(self._equations, blocks, return_std, return_cov)
        mean = mean.reshape(-1, p) + array_module(mean).asarray(self._means(p))
        return mean if more is None else (mean, more.reshape(mean.shape * (1 + return_cov)))

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

    @any_array
    def update(self, X: ArrayLike, Y: ArrayLike) -> Self:
        """Observations Y (n, p) at X (n, d) added, at the parameters in use: nothing is estimated again.

        Y is NaN where a variable was not observed; all of a column may be. Known sites get values that they
        lacked. Raises ValueError for a value where there is one already, and for what `fit` refuses.
        """
        check_is_fitted(self, "cov_")
        p = self.n_variables_
        new = self._rows(self._targets(X), Y, p)
        check_same_arrays(self._observed, new)
        later = copy(self)
        later._solve(later._observe(*merged(self._observed, new), p), self.cov_, self.nugget_)
        take_over(self, later)
        return self

    def save(self, path: FileName) -> None:
        """Write the fitted estimator to an HDF5 file, whole or not at all, nothing pickled: `CoKriging.load` reads it.

        Raises ValueError for a trend that is a function, which a file cannot hold; OSError when the disk refuses.
        """
        check_is_fitted(self, "cov_")
        settings = files.constructor_arguments(self) | {name: getattr(self, name) for name in PLAIN}
        settings |= {
            "cov_": self.cov_.parameters(),
            "crs_": files.crs_text(self.crs_),
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
        with files.in_order(path, "a CoKriging"):
            return _restored(cls, settings, arrays)


def _restored(kind, settings, arrays):
    """The estimator as `fit` leaves it; anything may be wrong with the settings."""
    given = {name: settings[name] for name in kind._get_param_names()}
    one = kind(**(given | {"cov": from_parameters(given["cov"])}))
    p, _ = one._options()
    X, Y = one._checked(arrays["X"], arrays["Y"], p)
    cov = from_parameters(settings["cov_"])
    if not isinstance(cov, OfVariables) or cov.variables != p or cov.dimension != X.shape[1] + 1:
        raise ValueError(
            f"cov_: expected a covariance of {p} variables in {X.shape[1]} dimensions, got {brief(cov, 80)}"
        )
    one.cov_, one.estimation_, one.crs_ = cov, None, settings.get("crs_")  # files of before it was kept
    one.nugget_ = kind(cov, settings["nugget_"])._options()[1]
    for name in PLAIN:
        setattr(one, name, settings[name])
    one.parameter_intervals_ = {name: tuple(ends) for name, ends in settings["parameter_intervals_"].items()}
    data = one._observe(X, Y, p)
    one._places, one._noisy = data.places(one.nugget_), float(one.nugget_.max() > 0)
    one._equations = files.restored_equations(one._places, one._trend, Model(cov, one._noisy), arrays, one._accuracy)
    one.trend_coefficients_ = (one._equations.regression.change @ to_host(one._equations.gamma)[:, 0]).reshape(p, -1)
    return one
