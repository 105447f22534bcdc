"""A fitted `Kriging` in a file: HDF5, nothing pickled, nothing in it trusted when read.

    attributes   format, version, settings (JSON: constructor arguments, covariance and nugget in use, estimates)
    datasets     X (n, features), y (n,), weights (n,); w (n places,), gamma (p,), solved (n places, p): the solution

Reading solves nothing: predictions of the mean need w and γ alone. The factor or the H²-matrix is made when something
first asks for it, such as standard deviations of few targets. Written whole or not at all.
"""

import json
from contextlib import contextmanager
from functools import cached_property

import h5py
import numpy as np

from h2gpu.arrays import to_host
from h2gpu.covariance import Covariance, from_parameters
from h2gpu.statistics.equations import Equations
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.places import places_of
from h2gpu.statistics.regression import Regression, orthonormalizer
from h2gpu.statistics.systems import covariance_system
from h2gpu.statistics.trends import trend_of
from h2gpu.storage import whole_hdf5
from h2gpu.texts import brief

FORMAT, VERSION = "h2gpu-kriging", 1
ARRAYS = {"X": 2, "y": 1, "weights": 1, "w": 1, "gamma": 1, "solved": 2}


class LateSystem:
    """The system of K, made when first asked for anything."""

    def __init__(self, *arguments):
        self._arguments = arguments

    @cached_property
    def _system(self):
        return covariance_system(*self._arguments)

    def __getattr__(self, name):
        if name.startswith("__") or name == "_arguments":
            raise AttributeError(name)
        return getattr(self._system, name)


def save(kriging, path):
    """See `Kriging.save`."""
    settings = constructor_arguments(kriging) | features(kriging)
    settings |= {
        "cov_": kriging.cov_.parameters(),
        "nugget_": float(kriging.nugget_),
        "parameters_": {name: float(value) for name, value in kriging.parameters_.items()},
        "parameter_errors_": {name: float(value) for name, value in kriging.parameter_errors_.items()},
        "parameter_intervals_": {name: list(ends) for name, ends in kriging.parameter_intervals_.items()},
        "converged_": bool(kriging.converged_),
        "rtol_": float(kriging.rtol_),
        "residual_": float(kriging.residual_),
        "iterations_": int(kriging.iterations_),
    }
    X, y, weights = kriging._observed
    equations = kriging._equations
    arrays = {"X": X, "y": y, "weights": weights, "w": equations.w[:, 0], "gamma": equations.gamma[:, 0]}
    arrays["solved"] = equations.regression.solved
    write(path, FORMAT, settings, arrays)


def write(path, kind, settings, arrays):
    """A file of this format: settings, a dictionary that JSON holds, and arrays by name."""
    text = json.dumps(settings, allow_nan=False)
    with whole_hdf5(path) as file:
        file.attrs.update(format=kind, version=VERSION, settings=text)
        for name, array in arrays.items():
            file[name] = np.ascontiguousarray(to_host(array), np.float64)


def restored(kind, path):
    """A fitted estimator of the class from a file; see `Kriging.load`."""
    settings, arrays = read(path, FORMAT, ARRAYS, "Kriging.save")
    n = len(arrays["X"])
    if arrays["y"].shape != (n,) or arrays["weights"].shape != (n,) or n < 1:
        raise ValueError(f"{path}: expected observations of one length, got {arrays['y'].shape} for {n} sites")
    with in_order(path, "a Kriging"):
        settings = {"solver": "auto", **settings}  # files of before there was a choice
        given = {name: settings[name] for name in kind._get_param_names()}
        given["cov"] = from_parameters(given["cov"])
        kriging = kind(**given)
        model = Model(from_parameters(settings["cov_"]), float(settings["nugget_"]))
        _fill(kriging, model, settings, arrays)
    return kriging


@contextmanager
def in_order(path, what):
    """What damaged settings or arrays bring about within the block is a ValueError that names the file."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, np.linalg.LinAlgError) as error:
        raise ValueError(f"{path}: expected {what} in order, got {type(error).__name__}: {error}") from None


def _fill(kriging, model, settings, arrays):
    """The attributes that `fit` makes."""
    kriging._check_options()
    X, y, weights = kriging._observed = arrays["X"], arrays["y"], arrays["weights"]
    remember(kriging, X, settings)
    for name in ("parameters_", "parameter_errors_", "converged_", "rtol_", "residual_", "iterations_"):
        setattr(kriging, name, settings[name])
    kriging.parameter_intervals_ = {name: tuple(ends) for name, ends in settings["parameter_intervals_"].items()}
    kriging.estimation_, kriging.cov_, kriging.nugget_ = None, model.cov, model.nugget
    kriging._trend = trend = trend_of(kriging.trend, X.shape[1], settings["feature_names_in_"])
    kriging._places = places = places_of(X, y - kriging._known_mean(), weights)
    kriging._equations = restored_equations(places, trend, model, arrays, kriging._accuracy)
    kriging.weights_ = arrays["w"]
    kriging.trend_coefficients_ = kriging._equations.regression.change @ arrays["gamma"]


def restored_equations(places, trend, model, arrays, accuracy):
    """The Equations of `places.Places` under a Model, their solution from a file. Raises ValueError."""
    F = trend.columns(places.sites)
    change, w, solved, gamma = orthonormalizer(F), arrays["w"], arrays["solved"], arrays["gamma"]
    n, p = F.shape
    for name, array, shape in (("w", w, (n,)), ("solved", solved, (n, p)), ("gamma", gamma, (p,))):
        if array.shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    Q, noise, sites = F @ change, places.noise(model.nugget), trend.sites(places.sites)
    information = Q.T @ solved
    regression = Regression(change, Q, solved, 0.5 * (information + information.T))
    system = LateSystem(sites, model.cov, noise, *accuracy)
    spread = float(places.values.std()) or max(1e-300, float(abs(places.values).max()))
    return Equations(
        sites, model.cov, noise, trend, system, regression, gamma[:, None], w[:, None], spread, accuracy[0]
    )


def features(estimator):
    """Names of the features and reference system, as JSON holds them."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "feature_names_in_": None if names is None else [str(name) for name in names],
        "crs_": crs_text(estimator.crs_),
    }


def crs_text(crs):
    """A reference system as JSON holds it; None for None."""
    return None if crs is None else str(getattr(crs, "srs", crs))


def remember(estimator, X, settings):
    """The features of X (n, features) and their `features`, as `fit` keeps them."""
    names = settings["feature_names_in_"]
    estimator.n_features_in_, estimator._variables, estimator.crs_ = X.shape[1], None, settings["crs_"]
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def constructor_arguments(estimator):
    """Those of an estimator as JSON holds them. Raises ValueError."""
    return {name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()}


def _plain(name, value):
    """A constructor argument as JSON holds it. Raises ValueError."""
    if isinstance(value, Covariance):
        return value.parameters()
    value = value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(value, (list, tuple)):
        return [_plain(name, one) for one in value]
    if name == "cov" or callable(value) or not isinstance(value, (type(None), bool, int, float, str)):
        raise ValueError(
            f"save: expected {name} to be a value that a file can hold, got {brief(value, 80)}; give a named one"
        )
    return value


def read(path, kind, wanted, written_by, gaps=()):
    """Settings and arrays {name: dimensions} of a file of this format; NaN may be in those of `gaps`.

    Raises ValueError, and OSError where it cannot be opened.
    """
    with open(path, "rb"):
        pass
    try:
        with h5py.File(path, "r") as file:
            told = file.attrs["format"], int(file.attrs["version"])
            if told != (kind, VERSION):
                raise ValueError(f"expected {kind} of version {VERSION}, got {told[0]} of version {told[1]}")
            settings = json.loads(file.attrs["settings"])
            if not isinstance(settings, dict):
                raise ValueError(f"expected a dictionary of settings, got {brief(settings, 80)}")
            arrays = {name: _array(file, name, ndim, name in gaps) for name, ndim in wanted.items()}
    except Exception as error:  # HDF5 parses bytes of unknown origin
        raise ValueError(f"{path}: expected a file of {written_by}, got {' '.join(str(error).split()):.160}") from None
    return settings, arrays


def _array(file, name, ndim, gaps=False):
    node = file.get(name, getlink=True)
    if not isinstance(node, h5py.HardLink) or not isinstance(file[name], h5py.Dataset):
        raise ValueError(f"no dataset {name}")
    data = file[name]
    if data.dtype != np.float64 or data.ndim != ndim or data.is_virtual or data.external:
        raise ValueError(f"{name}: expected {ndim} dimensions of float64 in this file, got {data.ndim} of {data.dtype}")
    values = data[()]
    if not (np.isfinite(values) | (gaps & np.isnan(values))).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")
    return values
