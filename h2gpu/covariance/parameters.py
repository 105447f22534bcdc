"""Read back what `Covariance.parameters` wrote: {"name": "Exponential", "variance": 1.0, "length_scale": 0.1}.

The reader trusts nothing: only the names below, exactly their keys, numbers checked by the classes themselves.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from h2gpu.covariance.algebra import Nugget, Product, Sum
from h2gpu.covariance.base import OMITTED, Covariance
from h2gpu.covariance.expression import Expression
from h2gpu.covariance.formula import shown
from h2gpu.covariance.functions import Constant, Exponential, Gaussian
from h2gpu.covariance.matern import Matern
from h2gpu.covariance.models.compact import Cubic, Spherical, Wendland
from h2gpu.covariance.models.mixtures import PoweredExponential, RationalQuadratic
from h2gpu.covariance.models.modulated import Modulated
from h2gpu.covariance.models.multivariate import Coregionalization, MultivariateMatern
from h2gpu.covariance.models.spacetime import Gneiting, SpaceTime
from h2gpu.covariance.models.varying import VaryingLength
from h2gpu.covariance.sphere import OnSphere
from h2gpu.texts import brief

NAMED = (
    *(Constant, Coregionalization, Cubic, Exponential, Expression, Gaussian, Gneiting, Matern, Modulated),
    *(MultivariateMatern, Nugget, OnSphere, PoweredExponential, Product, RationalQuadratic, SpaceTime, Spherical),
    *(Sum, VaryingLength, Wendland),
)
KINDS = {kind.__name__: kind for kind in NAMED}
INNER = "covariance", "space", "time"  # fields that are covariances
NEVER_WRITTEN = {"function"}  # fields that files do not hold
DEEPEST = 32


def from_parameters(parameters: Mapping[str, Any], depth: int = 0) -> Covariance:
    """The covariance of a dictionary made by `parameters()`, as JSON gives it back.

    Raises ValueError for unknown names, missing or unknown keys, wrong types and values, and for nesting deeper
    than 32. Source: JSON, as written by `Covariance.parameters`.

    >>> from_parameters({"name": "Nugget", "variance": 0.5})
    Nugget(variance=0.5)
    """
    if not isinstance(parameters, dict) or depth > DEEPEST:
        raise ValueError(
            f"covariance: expected a dictionary nested at most {DEEPEST} deep, got {brief(parameters, 80)}"
        )
    name = parameters.get("name")
    if not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"covariance: expected a name of {', '.join(KINDS)}, got {brief(name, 80)}")
    kind = KINDS[name]
    given = {key: value for key, value in parameters.items() if key != "name"}
    wanted = {field.name for field in fields(kind)} - NEVER_WRITTEN
    if given.keys() | (wanted & set(OMITTED)) != wanted:
        got = shown(", ".join(sorted(map(str, given))))
        raise ValueError(f"covariance {name}: expected the keys {', '.join(sorted(wanted))}, got {got}")
    if "terms" in given:
        if not isinstance(given["terms"], list):
            raise ValueError(f"covariance {name}: expected a list of terms, got {brief(given['terms'], 80)}")
        return kind(tuple(from_parameters(term, depth + 1) for term in given["terms"]))
    if "parts" in given:
        if not isinstance(given["parts"], list):
            raise ValueError(f"covariance {name}: expected a list of parts, got {brief(given['parts'], 80)}")
        given["parts"] = [from_parameters(part, depth + 1) for part in given["parts"]]
    given |= {key: from_parameters(given[key], depth + 1) for key in INNER if key in given}
    if kind is Expression:
        numbers = given["numbers"]
        if not isinstance(numbers, dict) or numbers.keys() & {"function", "dimension"}:
            raise ValueError(f"covariance {name}: expected a dictionary of numbers, got {brief(numbers, 80)}")
        return Expression(given["text"], dimension=given["dimension"], **numbers)
    return kind(**given)
