"""A fitted `GeneralizedKriging` in a file: HDF5, nothing pickled, nothing in it trusted when read.

    settings   JSON: constructor arguments, covariance and likelihood in use, estimates
    arrays     X (n, features), y (n,), mode (places,)

Reading estimates nothing again; the search for the mode begins at the one that was found.
"""

from typing import Self

from sklearn.utils.validation import check_is_fitted

from h2gpu.covariance import from_parameters
from h2gpu.statistics.generalized.choices import joint_of
from h2gpu.statistics.results import files
from h2gpu.typing import FileName

FORMAT, ARRAYS = "h2gpu-generalized-kriging", {"X": 2, "y": 1, "mode": 1}
ESTIMATES = "parameters_", "parameter_errors_", "parameter_intervals_"


class Saved:
    """A part of `GeneralizedKriging`, which fits."""

    def save(self, path: FileName) -> None:
        """Write the fitted estimator to an HDF5 file, whole or not at all, nothing pickled; `load` reads it.

        Raises ValueError for functions, as cov or trend, that a file cannot hold; OSError when the disk refuses.
        """
        check_is_fitted(self, "weights_")
        settings = files.constructor_arguments(self) | {name: getattr(self, name) for name in ESTIMATES}
        settings |= files.features(self)
        settings |= {
            "cov_": self.cov_.parameters(),
            "likelihood_": {name: getattr(self.likelihood_, name) for name in self.likelihood_.names},
        }
        files.write(path, FORMAT, settings, dict(zip(ARRAYS, (*self._observed, self.mode_))))

    @classmethod
    def load(cls, path: FileName) -> Self:
        """The estimator of a file, on the CPU, its mode found again. Nothing in the file is trusted.

        Raises ValueError, one line, for a file that is damaged or of another kind; OSError when it cannot be opened.
        """
        settings, arrays = files.read(path, FORMAT, ARRAYS, "GeneralizedKriging.save")
        with files.in_order(path, "a GeneralizedKriging"):
            return _restored(cls, settings, arrays)


def _restored(kind, settings, arrays):
    """The estimator as `fit` leaves it; anything may be wrong with the settings."""
    given = {name: settings[name] for name in kind._get_param_names()}
    one = kind(**(given | {"cov": from_parameters(given["cov"])}))
    in_use = given | settings["likelihood_"] | {"cov": from_parameters(settings["cov_"])}
    joint, X, y = joint_of(kind(**in_use)), arrays["X"], arrays["y"]
    if len(y) != len(X):
        raise ValueError(f"y: expected {len(X)} observations, one a row of X, got {len(y)}")
    files.remember(one, X, settings)
    one.cov_, one.likelihood_, one._kinds, one.estimation_ = joint.cov, joint.likelihood, joint.model.kinds, None
    for name in ESTIMATES:
        setattr(one, name, dict(settings[name]))
    one.parameter_intervals_ = {name: tuple(ends) for name, ends in one.parameter_intervals_.items()}
    latent, change = one._prepared(joint.likelihood, X, y)
    if len(arrays["mode"]) != len(latent.Q):
        raise ValueError(f"mode: expected {len(latent.Q)} numbers, one a place, got {len(arrays['mode'])}")
    one._solve(latent, change, arrays["mode"] - one._level())
    return one
