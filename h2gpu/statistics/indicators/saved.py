"""A fitted `IndicatorKriging` in a file: HDF5, nothing pickled, nothing in it trusted when read.

    settings   JSON: constructor arguments, covariances and nuggets in use, features
    arrays     X (n, features), y, weights (n,), thresholds (K,); gamma (p, K), w (places, K) of the indicators;
               solved (groups, places, p): K⁻¹ Q of each covariance and nugget in use

Reading solves nothing, and predictions are those of the estimator that was saved, to the last bit.
"""

from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import to_host
from h2gpu.covariance import from_parameters
from h2gpu.covariance.checks import checked
from h2gpu.covariance.sites import Sites
from h2gpu.statistics.indicators.equations import Solved, indicator_places
from h2gpu.statistics.inputs import weighted
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.results import files
from h2gpu.statistics.settings import check_accuracy
from h2gpu.statistics.trends import trend_of
from h2gpu.typing import FileName

FORMAT = "h2gpu-indicator-kriging"
ARRAYS = {"X": 2, "y": 1, "weights": 1, "thresholds": 1, "gamma": 2, "w": 2, "solved": 3}


class Saved:
    """A part of `IndicatorKriging`, which fits."""

    def save(self, path: FileName) -> None:
        """Write the fitted estimator to an HDF5 file, whole or not at all, nothing pickled; `load` reads it.

        Raises ValueError for functions, as cov or trend, that a file cannot hold; OSError when the disk refuses.
        """
        check_is_fitted(self, "thresholds_")
        settings = files.constructor_arguments(self) | files.features(self)
        settings |= {"covs_": [cov.parameters() for cov in self.covs_], "nuggets_": self.nuggets_}
        order = np.argsort(np.concatenate([solved.members for solved in self._solved]))
        X, y, weights = self._observed
        arrays = {"X": X, "y": y, "weights": weights, "thresholds": self.thresholds_}
        for name in ("gamma", "w"):
            arrays[name] = np.concatenate([to_host(getattr(one, name)) for one in self._solved], axis=1)[:, order]
        arrays["solved"] = np.stack([to_host(one.equations.regression.solved) for one in self._solved])
        files.write(path, FORMAT, settings, arrays)

    @classmethod
    def load(cls, path: FileName) -> Self:
        """The estimator of a file, on the CPU. Nothing in the file is trusted, nothing is solved again.

        Raises ValueError, one line, for a file that is damaged or of another kind; OSError when it cannot be opened.
        """
        settings, arrays = files.read(path, FORMAT, ARRAYS, "IndicatorKriging.save")
        with files.in_order(path, "an IndicatorKriging"):
            return _restored(cls, settings, arrays)


def _restored(kind, settings, arrays):
    """The estimator as `fit` leaves it; anything may be wrong with the settings."""
    given = {name: settings[name] for name in kind._get_param_names()}
    cov = given["cov"]
    given["cov"] = [from_parameters(one) for one in cov] if isinstance(cov, list) else from_parameters(cov)
    one = kind(**given)
    check_accuracy(one)
    X, y = arrays["X"], arrays["y"]
    if y.shape != (len(X),) or not len(X):
        raise ValueError(f"y: expected {len(X)} observations, one a row of X and one at least, got {len(y)}")
    files.remember(one, X, settings)
    one._observe(*weighted(X, y, arrays["weights"]), arrays["thresholds"])
    one.covs_ = [from_parameters(cov) for cov in one._each("covs_", list(settings["covs_"]))]
    one.nuggets_ = [checked("nuggets_", nugget, zero=True) for nugget in one._each("nuggets_", settings["nuggets_"])]
    trend = trend_of(one.trend, X.shape[1], settings["feature_names_in_"])
    for cov in one.covs_:
        Sites.of(trend.sites(X), cov)  # refuses what does not suit them
    one._solved = _solved(one, trend, arrays)
    return one


def _solved(one, trend, arrays):
    """The list of `Solved`, one a covariance and nugget in use. Raises ValueError."""
    groups, gamma, w, solved = one._alike(), arrays["gamma"], arrays["w"], arrays["solved"]
    for name, array, shape in (
        ("gamma", gamma, (gamma.shape[0], len(one.thresholds_))),
        ("w", w, (w.shape[0], len(one.thresholds_))),
        ("solved", solved, (len(groups), *solved.shape[1:])),
    ):
        if array.shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    found = []
    for members, own in zip(groups, solved):
        k = members[0]
        places = indicator_places(*one._observed, one.thresholds_[k], one._known_means()[k])
        model = Model(one.covs_[k], one.nuggets_[k], ())
        parts = {"w": w[:, k], "gamma": gamma[:, k], "solved": own}
        equations = files.restored_equations(places, trend, model, parts, one._accuracy)
        found.append(Solved.of(equations, gamma[:, members], w[:, members], members))
    return found
