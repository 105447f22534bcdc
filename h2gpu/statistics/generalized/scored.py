"""Scores of predicted distributions beside observations: what a fitted `GeneralizedKriging` tells of itself.

Reference: Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
"""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import any_array, to_host
from h2gpu.statistics.generalized import predictive, scoring
from h2gpu.statistics.inputs import new_values
from h2gpu.statistics.scores import LEVEL, mae, rmse
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike


class Scored:
    """A part of `GeneralizedKriging`, which fits."""

    @any_array
    def log_scores(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Logarithms (m,) of the predicted density, or probability, of observations y (m,) at X (m, features)."""
        m, v, size, y = self._beside(X, y)
        return predictive.log_density(self.likelihood_, y, m, v, size)

    @any_array
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """D², the share of the deviance of y (m,) that predictions at X (m, features) explain: R² of this likelihood.

        The null model predicts one rate, share or mean everywhere, that of y.
        """
        m, v, size, y = self._beside(X, y)
        mean = predictive.moments(self.likelihood_, m, v, size)[0]
        null = size * (y.sum() / size.sum())
        explained = self.likelihood_.deviance(y, mean, size).sum()
        total = self.likelihood_.deviance(y, np.maximum(null, 1e-300), size).sum()
        return 1.0 - float(explained / total) if total > 0 else float(explained == 0)

    @any_array
    def crps_scores(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Continuous ranked probability scores (m,) of the predicted distributions of observations y (m,) at
        X (m, features), each in units of y: smaller is better, and the distance where the prediction is certain."""
        m, v, size, y = self._beside(X, y)
        return scoring.crps(self.likelihood_, y, m, v, size)

    @any_array
    def summary(self, X: ArrayLike, y: ArrayLike, level: float = LEVEL) -> dict[str, float]:
        """Averages of scores of observations y (m,) at X (m, features), by name, as `scores.summary` has them: rmse,
        mae, crps, interval (the score at the level), coverage; and log, minus the logarithm of density or probability.

        Of counts the central interval holds at least the level. Raises ValueError for a level outside (0, 1).
        """
        if not 0 < level < 1:
            raise ValueError(f"level: expected a number between 0 and 1, got {brief(level)}")
        m, v, size, y = self._beside(X, y)
        given = self.likelihood_, m, v, size
        mean = predictive.moments(*given)[0]
        low, high = (predictive.quantile(given[0], p, *given[1:]) for p in (0.5 - level / 2, 0.5 + level / 2))
        outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
        return {
            "rmse": rmse(y, mean),
            "mae": mae(y, mean),
            "crps": float(scoring.crps(given[0], y, *given[1:]).mean()),
            "interval": float(np.mean(high - low + 2 / (1 - level) * outside)),
            "coverage": float(np.mean((low <= y) & (y <= high))),
            "log": -float(np.mean(predictive.log_density(given[0], y, *given[1:]))),
        }

    def _beside(self, X, y):
        """The same, and observations y (m,) that the likelihood can give."""
        check_is_fitted(self, "weights_")
        m, v, size = self._posterior(X)
        y, _ = new_values(self, m, np.asarray(to_host(y), np.float64), None)
        return m, v, size, self.likelihood_.checked(y, size)
