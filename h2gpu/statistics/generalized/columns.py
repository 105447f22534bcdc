"""The column of X that holds exposures or numbers of trials: no coordinate, no trend column.

X (n, features) → X without it (n, features − 1), size (n,)
"""

import numpy as np

from h2gpu.statistics.trends import Trend
from h2gpu.texts import brief


def of_column(column, features, names=None):
    """The index of a column given by name or index; None for None. Raises ValueError for what is no column."""
    if column is None:
        return None
    if features < 2:
        raise ValueError(f"X: expected coordinates beside the column {column!r}, got one column")
    if isinstance(column, str) and names is not None and column in list(names):
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and -features <= column < features:
        return int(column) % features
    raise ValueError(
        f"exposure, trials: expected a name or an index of the {features} columns of X, got {brief(column)}"
    )


def without(trend, column):
    """The Trend for X without a column, which is none of its own."""
    if column is None:
        return trend

    def moved(indices):
        return [i - (i > column) for i in indices if i != column]

    if column in trend.covariates:
        raise ValueError(f"trend: expected columns other than the one of exposure or trials, got column {column}")
    coordinates = moved(trend.coordinates)
    if not coordinates:
        raise ValueError("X: expected columns that are coordinates, got trend columns, exposure or trials only")
    return Trend(trend.kind, coordinates, moved(trend.covariates))
