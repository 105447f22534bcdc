"""Checks at the doors of the statistics: sites, values, weights, covariances, seeds.

All work is in float64, where the arrays are: NumPy or CuPy. Arrays on the host are checked by scikit-learn.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_X_y, validate_data

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.products import gaussian
from h2gpu.covariance import Covariance, from_gstools, from_sklearn
from h2gpu.solvers.operators import check_vectors
from h2gpu.statistics.tables import check_crs, check_same_crs, crs_of, table, values, variables_of
from h2gpu.statistics.trends import columns_in
from h2gpu.texts import brief, plain


def covariance_of(cov):
    """An `h2gpu.covariance` value from one, from a scikit-learn kernel or a GSTools model; ValueError for others."""
    if isinstance(cov, Covariance):
        return cov
    origin = type(cov).__module__.partition(".")[0]
    if origin == "sklearn":
        return from_sklearn(cov)
    if origin == "gstools":
        return from_gstools(cov)
    raise ValueError(
        "cov: expected a covariance such as h2gpu.covariance.Exponential(), a scikit-learn kernel or a GSTools model, "
        f"got {plain(repr(cov), 80)}"
    )


def training(estimator, X, y, weights, cov):
    """X (n, features) and y (n,) in float64 as scikit-learn checks them, and weights that leave out what the estimator
    skips. It remembers the features, and the reference system of a GeoDataFrame, which must suit the covariance."""
    estimator.crs_ = crs_of(X)
    check_crs(estimator.crs_, cov)
    if array_module(X, y) is not np:
        X = _device_table(estimator, X, reset=True)
        y, weights = known_values(estimator, y, weights)
        return X, _device_values(X, y), weights
    estimator._variables = variables_of(X, y)
    sites, y = rows(table(X, _columns(estimator), estimator._variables)), values(y, X)
    y, weights = known_values(estimator, y, weights)
    sites, y = validate_data(estimator, sites, y, dtype=np.float64, y_numeric=True, ensure_all_finite=False)
    return finite_rows(sites, "X"), y, weights


def _columns(estimator):
    """The columns of X that are no coordinates, by name or index."""
    return [*columns_in(estimator.trend), *getattr(estimator, "_more_columns", [])]


def new_values(estimator, X, y, weights):
    """Observations (n,) in float64 at checked X, and their weights."""
    y, weights = known_values(estimator, values(y, X), weights)
    return _device_values(X, y if array_module(y) is not np else np.asarray(y, np.float64)), weights


def known_values(estimator, y, weights):
    """y, and weights: where the estimator skips NaN, they are zero there, and so is y. ValueError for other NaN, and
    infinity, in arrays on the host; what is no array of numbers is left to scikit-learn."""
    xp = array_module(y)
    a = xp.asarray(y)
    if a.dtype.kind in "US":
        raise ValueError(f"y: expected numbers, got text, {brief(str(a.ravel()[0]))}; convert with astype(float)")
    if a.dtype.kind != "f" or a.ndim != 1 or not len(a):
        return y, weights
    bad = xp.isnan(a) if estimator.missing == "skip" else None
    if bad is not None and bool(bad.any()):
        if bool(bad.all()):
            raise ValueError(f"y: expected some observations, got NaN for all {len(a)}")
        weights = np.ones(len(a)) if weights is None else np.array(to_host(weights), np.float64)
        weights[to_host(bad)[: len(weights)]] = 0
        a = xp.where(bad, 0.0, a)
    return (a if xp is not np else finite_rows(a, "y")), weights


def observations(X, y, trend):
    """The same without an estimator, and the names of the features if they have any."""
    if array_module(X, y) is not np:
        return _checked_table(X), _device_values(X, y), None
    X, y = rows(table(X, columns_in(trend), variables_of(X, y))), values(y, X)
    if getattr(np.asarray(y), "dtype", None) == np.float64 and np.ndim(y) == 1:
        finite_rows(np.asarray(y), "y")
    sites, y = check_X_y(X, y, dtype=np.float64, y_numeric=True, ensure_all_finite=False)
    return finite_rows(sites, "X"), y, getattr(X, "columns", None)


def targets(estimator, X):
    """X (m, features) in float64, checked against the features and the reference system of the training."""
    check_same_crs(getattr(estimator, "crs_", None), crs_of(X))
    if array_module(X) is not np:
        return _device_table(estimator, X, reset=False)
    X = rows(table(X, _columns(estimator), estimator._variables if hasattr(X, "data_vars") else None))
    return finite_rows(validate_data(estimator, X, dtype=np.float64, reset=False, ensure_all_finite=False), "X")


def rows(X):
    """X where it may be a table; ValueError for what has one dimension, in the words that scikit-learn asks for."""
    shape = getattr(X, "shape", ())
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], Real):
        shape = (len(X),)
    if isinstance(shape, tuple) and len(shape) == 1:
        raise ValueError(
            f"X: expected shape (n, dim), got {shape}. Reshape your data: X[:, None] for points on a line, "
            "X[None] for one point"
        )
    return X


def finite_rows(A, name):
    """A (n,) or (n, features) if it is finite; ValueError otherwise."""
    bad = ~np.isfinite(A.reshape(len(A), -1)).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name}: expected finite numbers, got NaN or infinity in {int(bad.sum())} of {len(A)} rows, first in row "
            f"{int(np.argmax(bad))}; leave those rows out"
        )
    return A


def weighted(X, y, weights):
    """X, y and weights (n,) on the host, ones for None, without the rows of weight zero; ValueError for others."""
    n = len(y)
    if weights is None:
        return X, y, np.ones(n)
    weights = np.asarray(weights if array_module(weights) is np else to_host(weights), np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"sample_weight: expected {n} finite numbers ≥ 0, got {brief(weights, 60)}")
    used = np.flatnonzero(weights)
    if not len(used):
        raise ValueError("sample_weight: expected weights of which some are not zero, got zero for all")
    if len(used) == n:
        return X, y, weights
    rows = array_module(X).asarray(used)
    return X[rows], y[rows], weights[used]


def seed_of(random_state):
    """An integer seed from what scikit-learn calls random_state."""
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return gaussian.seed_of(random_state)
    return 0 if seeds(random_state) is None else int(random_state)


def seeds(random_state):
    """It as NumPy's generators take it, an integer or None; ValueError for others."""
    if random_state is not None and (not isinstance(random_state, Integral) or random_state < 0):
        raise ValueError(f"random_state: expected an integer ≥ 0, a NumPy generator or None, got {brief(random_state)}")
    return random_state


def _device_table(estimator, X, reset):
    """The same checks for an array on the GPU."""
    X = _checked_table(X)
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X: expected {estimator.n_features_in_} features as in fit, got {X.shape[1]}")
    return X


def _checked_table(X):
    if getattr(X, "ndim", None) != 2 or not len(X):
        raise ValueError(f"X: expected shape (n, dim) with n ≥ 1, got {getattr(X, 'shape', type(X))}")
    return check_vectors(X, len(X), "X").astype(np.float64)


def _device_values(X, y):
    return check_vectors(y, len(X), "y").astype(np.float64).reshape(len(X))
