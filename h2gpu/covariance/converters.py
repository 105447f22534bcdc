"""Covariances of other libraries as ours, with their conventions of scale.

scikit-learn   RBF exp(−r²/(2l²))         Matern z = √(2ν) r/l
GSTools        Gaussian exp(−(s r/l)²)    Matern z = √ν s r/l      Exponential exp(−s r/l)    s: rescale
               Rational (1 + (s r/l)²/α)^(−α)    Stable exp(−(s r/l)^α)
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from h2gpu.covariance.algebra import Nugget, Product, Sum
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.functions import Constant, Exponential, Gaussian
from h2gpu.covariance.matern import Matern
from h2gpu.covariance.models.compact import Cubic, Spherical
from h2gpu.covariance.models.mixtures import PoweredExponential, RationalQuadratic
from h2gpu.covariance.sphere import on_sphere
from h2gpu.texts import brief

SAME = {"Exponential": Exponential, "Spherical": Spherical, "Cubic": Cubic}  # of one name, l = length/rescale
GSTOOLS = (*SAME, "Gaussian", "Matern", "Rational", "Stable")


def from_sklearn(kernel: Any) -> Covariance:
    """The covariance of a scikit-learn kernel: RBF, Matern, RationalQuadratic, ConstantKernel, WhiteKernel, their sums
    and products.

    `from_sklearn(kernel)(X)` equals `kernel(X)`. Raises ValueError for every other kernel.
    Source: scikit-learn, `sklearn.gaussian_process.kernels`.

    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from_sklearn(2.0 * RBF(3.0) + WhiteKernel(0.1)).nugget
    0.1
    """
    from sklearn.gaussian_process import kernels

    kind = type(kernel)
    if kind is kernels.Sum:
        return from_sklearn(kernel.k1) + from_sklearn(kernel.k2)
    if kind is kernels.Product:
        return _simplified_product(from_sklearn(kernel.k1), from_sklearn(kernel.k2))
    if kind is kernels.ConstantKernel:
        return Constant(kernel.constant_value)
    if kind is kernels.WhiteKernel:
        return Nugget(kernel.noise_level)
    if kind is kernels.RBF or (kind is kernels.Matern and kernel.nu == math.inf):
        return Gaussian(1.0, kernel.length_scale)
    if kind is kernels.RationalQuadratic:
        return RationalQuadratic(1.0, kernel.length_scale, kernel.alpha)
    if kind is kernels.Matern:
        half = kernel.nu == 0.5
        return Exponential(1.0, kernel.length_scale) if half else Matern(1.0, kernel.length_scale, kernel.nu)
    raise ValueError(
        "kernel: expected scikit-learn's RBF, Matern, RationalQuadratic, ConstantKernel, WhiteKernel, sums, products, "
        f"got {brief(kernel)}; write others with from_function"
    )


def _simplified_product(f, g):
    if isinstance(f, Constant):
        return g.scaled(f.variance)
    return f.scaled(g.variance) if isinstance(g, Constant) else Product((f, g))


def from_gstools(model: Any) -> Covariance:
    """The covariance of a GSTools model: Exponential, Gaussian, Matern, Spherical, Cubic, Rational or Stable, with
    variance, nugget, anisotropy and rotation.

    Models of geographic coordinates (latlon=True) become `on_sphere(…, radius=geo_scale, distance="chordal")`,
    GSTools' own construction; its points are (lat, lon), ours (lon, lat). Raises ValueError for other models and for
    models in time. Source: GSTools, its `CovModel`: Müller et al. (2022).

    >>> import gstools
    >>> from_gstools(gstools.Exponential(dim=2, var=2.0, len_scale=3.0))
    Exponential(variance=2.0, length_scale=3.0)
    """
    scales = _gstools_scales(model)
    smoothness = getattr(model, "nu", None)
    name = type(model).__name__
    if name == "Matern" and smoothness > 20:  # there GSTools itself takes the Gaussian limit
        cov = Gaussian(model.var, _times(scales, math.sqrt(2)))
    elif name == "Matern":
        cov = Matern(model.var, _times(scales, math.sqrt(2)), smoothness)
    elif name == "Gaussian":
        cov = Gaussian(model.var, _times(scales, math.sqrt(0.5)))
    elif name == "Rational":
        cov = RationalQuadratic(model.var, _times(scales, math.sqrt(0.5)), model.alpha)
    elif name == "Stable":
        cov = PoweredExponential(model.var, scales, model.alpha)
    else:
        cov = SAME[name](model.var, scales)
    if isinstance(scales, tuple) and np.any(model.angles):
        cov = replace(cov, rotation=tuple(map(float, model.angles)))
    if model.nugget > 0:
        cov = Sum((cov, Nugget(model.nugget)))
    return on_sphere(cov, model.geo_scale, "chordal") if model.latlon else cov


def _gstools_scales(model):
    """l/s: one number, or one a coordinate."""
    known = type(model).__module__.startswith("gstools.")
    if not known or type(model).__name__ not in GSTOOLS:
        raise ValueError(f"model: expected GSTools' {', '.join(GSTOOLS)}, got {brief(model)}")
    if getattr(model, "temporal", False):
        raise ValueError(f"model: expected one of space alone, got one of space and time, {model!r}")
    scale = float(model.len_scale / model.rescale)
    return scale if model.is_isotropic else tuple(float(l / model.rescale) for l in model.len_scale_vec)


def _times(scales, factor):
    return tuple(factor * l for l in scales) if isinstance(scales, tuple) else factor * scales
