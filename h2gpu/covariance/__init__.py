"""Covariance functions C(x, y) of random fields: immutable values that are called, added and multiplied.

    C(x, y) = f(x − y) + nugget · [x and y are the same observation]

`cov(X)` is the dense matrix of one point set, nugget on the diagonal; `cov(X, Y)` that of two sets, without.
Reference: C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning (2006), chapter 4.
"""

from h2gpu.covariance.algebra import Nugget, Product, Sum
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.converters import from_gstools, from_sklearn
from h2gpu.covariance.expression import Expression
from h2gpu.covariance.functions import Constant, Exponential, Gaussian
from h2gpu.covariance.matern import Matern
from h2gpu.covariance.models.compact import Cubic, Spherical, Wendland
from h2gpu.covariance.models.mixtures import PoweredExponential, RationalQuadratic
from h2gpu.covariance.models.modulated import Modulated
from h2gpu.covariance.models.multivariate import Coregionalization, MultivariateMatern
from h2gpu.covariance.models.spacetime import Gneiting, SpaceTime
from h2gpu.covariance.models.varying import VaryingLength
from h2gpu.covariance.pairs import pairwise
from h2gpu.covariance.parameters import from_parameters
from h2gpu.covariance.sphere import OnSphere, on_sphere
from h2gpu.covariance.user import DistanceFunction, UserFunction, from_distance, from_function

__all__ = [
    "Constant",
    "Coregionalization",
    "Covariance",
    "Cubic",
    "DistanceFunction",
    "Exponential",
    "Expression",
    "Gaussian",
    "Gneiting",
    "Matern",
    "Modulated",
    "MultivariateMatern",
    "Nugget",
    "OnSphere",
    "PoweredExponential",
    "Product",
    "RationalQuadratic",
    "SpaceTime",
    "Spherical",
    "Sum",
    "UserFunction",
    "VaryingLength",
    "Wendland",
    "from_distance",
    "from_function",
    "from_gstools",
    "from_parameters",
    "from_sklearn",
    "on_sphere",
    "pairwise",
]
