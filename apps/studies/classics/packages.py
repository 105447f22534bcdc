"""Ordinary kriging with an exponential covariance and a nugget, estimated and predicted by each package.

Each function takes a `data.Split` and returns means (m,), standard deviations (m,) of new observations, the estimated
variance, length scale ℓ of exp(−r/ℓ), and nugget. GSTools and PyKrige fit variograms, the others likelihoods.
"""

import warnings
from importlib.util import find_spec

import numpy as np

from h2gpu.covariance import Exponential
from h2gpu.statistics import Kriging

RESTARTS = 5  # of scikit-learn's optimizer
LAGS = 15  # of PyKrige's variogram
MOST = 100_000  # evaluations of GSTools' fit: its default is too few for Walker Lake


def h2gpu(split):
    """Kriging of this package, from its own starting values."""
    model = Kriging(Exponential(), fit_parameters=True).fit(split.sites, split.values)
    mean, std = model.predict(split.targets, return_std=True, observations=True)
    return mean, std, model.cov_.variance, model.cov_.length_scale, model.nugget_


def scikit_learn(split):
    """GaussianProcessRegressor: the mean is the observations' own, its uncertainty is left out."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    extent = float(np.ptp(split.sites, axis=0).max())
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(extent / 5, (1e-4 * extent, 10 * extent), nu=0.5)
    kernel = kernel + WhiteKernel(0.1, (1e-8, 1e2))
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=RESTARTS, random_state=0)
    model.fit(split.sites, split.values)
    mean, std = model.predict(split.targets, return_std=True)
    smooth, white = model.kernel_.k1, model.kernel_.k2
    scale = float(np.var(split.values))
    return mean, std, scale * smooth.k1.constant_value, smooth.k2.length_scale, scale * white.noise_level


def gstools(split):
    """Empirical variogram, fit by weighted least squares, ordinary kriging."""
    import gstools

    distance, gamma = gstools.vario_estimate(split.sites.T, split.values)
    model = gstools.Exponential(dim=2)
    model.fit_variogram(distance, gamma, nugget=True, max_eval=MOST)
    krige = gstools.krige.Ordinary(model, split.sites.T, split.values, exact=False)
    mean, variance = krige(split.targets.T, return_var=True)
    return mean, np.sqrt(variance + model.nugget), model.var, model.len_scale, model.nugget


def pykrige(split):
    """Variogram fit and ordinary kriging; PyKrige's range is 3 ℓ."""
    from pykrige.ok import OrdinaryKriging

    model = OrdinaryKriging(*split.sites.T, split.values, variogram_model="exponential", nlags=LAGS, exact_values=False)
    sill, reach, nugget = model.variogram_model_parameters
    mean, variance = model.execute("points", *split.targets.T)
    return np.asarray(mean), np.sqrt(np.asarray(variance) + nugget), sill, reach / 3, nugget


def gpboost(split):
    """GPModel with all sites, its constant mean a coefficient."""
    import gpboost

    one = np.ones((len(split.values), 1))
    model = gpboost.GPModel(gp_coords=split.sites, cov_function="exponential", likelihood="gaussian", seed=0)
    model.fit(y=split.values, X=one)
    nugget, variance, length = np.asarray(model.get_cov_pars()).ravel()[:3].tolist()
    found = model.predict(gp_coords_pred=split.targets, X_pred=one[:1].repeat(len(split.truth), 0), predict_var=True)
    return found["mu"], np.sqrt(found["var"]), variance, length, nugget


ALL = {"h2gpu": h2gpu, "scikit-learn": scikit_learn, "GSTools": gstools, "PyKrige": pykrige, "GPBoost": gpboost}


def available():
    """{name: function} of the packages that are installed."""
    own = "h2gpu", "scikit-learn"
    return {name: function for name, function in ALL.items() if name in own or find_spec(name.lower())}


def told_missing():
    """One line on the packages that are not installed; none where all are."""
    lacking = [name for name in ALL if name not in available()]
    return f"not installed, left out: {', '.join(lacking)}; pip install 'h2gpu[studies]'" if lacking else None


def quietly(function, split):
    """What a function returns, and the number of warnings on the way."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return function(split), len(told)
