"""Trends: the mean of the field as a combination of known functions, E Z(x) = f(x)ᵀ β.

    None  known mean, no columns     "constant"  1     "linear"  1, x_1, …, x_d     callable  its columns
    [names or indices]  1 and these columns of X, which are then no coordinates (external drift)
    ["linear", names or indices]  1, the coordinates and these columns

Coordinates are centred and scaled, so that far-away origins and small units cost no digits.
Reference: Chilès & Delfiner (2012), Geostatistics, section 3.4.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.copies import all_finite
from h2gpu.texts import brief

DEGREES = {"constant": 0, "linear": 1}


@dataclass(frozen=True, eq=False)
class Trend:
    """f of the rows of X.

    kind        None, "constant", "linear", or a callable of the coordinates
    coordinates indices of the columns of X that are coordinates
    covariates  indices of the columns of X that are trend columns
    """

    kind: object
    coordinates: list
    covariates: list

    def sites(self, X):
        """The coordinates of X (n, features): (n, dim)."""
        return X[:, self.coordinates] if self.covariates else X

    def columns(self, X):
        """f of the rows of X (n, features): (n, p)."""
        xp, n = array_module(X), len(X)
        one = xp.ones((n, 1))
        if self.kind is None:
            return one[:, :0]
        if callable(self.kind):
            return self._called(X, xp, n)
        used = [*(self.coordinates if self.kind == "linear" else []), *self.covariates]
        return xp.concatenate([one, X[:, used]], axis=1) if used else one

    def _called(self, X, xp, n):
        F = xp.asarray(self.kind(self.sites(X)), dtype=np.float64)
        F = F[:, None] if F.ndim == 1 else F
        if F.ndim != 2 or len(F) != n or not all_finite(F):
            raise ValueError(
                f"trend: expected a function that returns finite numbers of shape ({n},) or ({n}, p) for {n} sites, "
                f"got shape {F.shape}"
            )
        return F


def trend_of(spec, features, names=None):
    """The Trend that a user means by `spec`, for X of so many features, of these names if they have any.

    Raises ValueError for anything else.
    """
    everything = list(range(features))
    if spec is None or callable(spec) or (isinstance(spec, str) and spec in DEGREES):
        return Trend(spec, everything, [])
    if isinstance(spec, (list, tuple)) and spec:
        words, columns = [c for c in spec if _is_word(c)], [c for c in spec if not _is_word(c)]
        chosen = [_index(column, features, names) for column in columns]
        ambiguous = [word for word in words if names is not None and word in list(names)]
        if ambiguous:
            raise ValueError(f"trend: {ambiguous[0]!r} is a column of X and a kind of trend; rename the column")
        rest = [i for i in everything if i not in chosen]
        if not rest:
            raise ValueError(f"trend: expected some columns of X to remain as coordinates, got all {features} of them")
        return Trend("linear" if "linear" in words else "constant", rest, chosen)
    raise ValueError(
        'trend: expected None, "constant", "linear", a function of the sites, or a list of columns of X and "linear", '
        f"got {brief(spec)}"
    )


def columns_in(spec):
    """The columns of X that a trend names, by name or index."""
    return [c for c in spec if not _is_word(c)] if isinstance(spec, (list, tuple)) else []


def _is_word(part):
    """Whether a part of a list is a kind of trend and no column."""
    return isinstance(part, str) and part in DEGREES


def _index(column, features, names):
    """The index of a column given by name or index."""
    if isinstance(column, str) and names is not None and column in list(names):
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and -features <= column < features:
        return int(column) % features
    raise ValueError(f"trend: expected names or indices of the {features} columns of X, got {brief(column)}")
