"""Covariances as kernels know them: a type of kernels/covariance/thread/covariance.cuh and its numbers.

    2 exp(−r/l) in the plane   →   Matern<0, Isotropic<2>>,  (1 / (l log 2), largest r², 2)

Every covariance answers `on_device(space, dtype)`, `space` being the distance between points it is a function of.
None means that no kernel knows it: it is then evaluated by array operations.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

LONGEST_DECAY = {"float64": 1020, "float32": 125}  # log2 of the least value, as covariance/thread/decay.cuh allows
MOST_DEBYE = 1e8  # (z/ν)² beyond which ρ = 0 for ν ≥ 20


@dataclass(frozen=True)
class DeviceFunction:
    """C++ type and numbers, in the order in which the type reads them: its own, then those of what it is made of.

    tables        of more numbers, in memory, in the same order: hashable values with `entries`, a host array
    definitions   C++ texts that the type needs besides kernels/covariance/thread/covariance.cuh, one function's each
    """

    type: str
    parameters: tuple = ()
    tables: tuple = ()
    definitions: tuple = ()

    def of(self, *others):
        """The template of this name with others as its last arguments, and all their numbers after its own."""
        separator = ", " if "<" in self.type else "<"
        arguments = ", ".join(other.type for other in others)
        numbers = sum((other.parameters for other in others), self.parameters)
        tables = sum((other.tables for other in others), self.tables)
        definitions = dict.fromkeys(sum((other.definitions for other in others), self.definitions))
        return DeviceFunction(f"{self.type.removesuffix('>')}{separator}{arguments}>", numbers, tables, (*definitions,))


@dataclass(frozen=True)
class PairFunction:
    """The values of a covariance between embedded points, as a function that `batched.pairwise` takes.

    Called with broadcast arrays x (..., d), y (..., d) it is `covariance.values`; a kernel asks `on_device`.
    """

    covariance: object

    def __call__(self, x, y):
        return self.covariance.values(x, y)

    def into(self, x, y, out):
        """The values written to `out`, which is in cache or will be: no temporary of its size."""
        self.covariance.values(x, y, out=out)

    def on_device(self, dim, dtype):
        """The DeviceFunction for points of dim coordinates, its parameters an array of dtype; None without kernel."""
        if self.covariance.coordinates not in (None, dim):
            return None
        function = self.covariance.on_device(isotropic(dim), np.dtype(dtype))
        return function and replace(function, parameters=np.array(function.parameters, dtype))


def isotropic(dim):
    """‖x − y‖."""
    return DeviceFunction(f"Isotropic<{dim}>")


def stretched(stretches):
    """(Σ stretch_k (x_k − y_k)²)^½, the first stretch 1."""
    return DeviceFunction(f"Stretched<{len(stretches)}>", tuple(stretches[1:]))


def rotated(metric):
    """‖A (x − y)‖ of a matrix A."""
    return DeviceFunction(f"Rotated<{len(metric)}>", tuple(float(a) for row in metric for a in row))


def great_circle(radius):
    """2R atan2(‖x − y‖, ‖x + y‖)."""
    return DeviceFunction("GreatCircle", (2 * radius,))


def matern(coefficients, decay, space, dtype):
    """Σ_i coefficients[i] r^i · exp(−decay r)."""
    rate = decay / math.log(2)
    largest = _largest_square(lambda: (LONGEST_DECAY[dtype.name] / rate) ** 2, dtype)
    numbers = rate, largest, *coefficients
    own = DeviceFunction(f"Matern<{len(coefficients) - 1}>", numbers)
    return own.of(space) if _representable(numbers, dtype) else None


def matern_of_table(variance, decay, smoothness, near_zero, table, space, dtype):
    """variance · ρ(decay r) from a table of matern_table, variance (1 − near_zero (decay r)^2ν) below its range."""
    rate = decay / math.log(2)
    largest = _largest_square(lambda: (LONGEST_DECAY[dtype.name] / rate) ** 2, dtype)
    numbers = rate, largest, decay, variance
    own = DeviceFunction("MaternTable", (*numbers, near_zero, 2 * smoothness), (table,))
    return own.of(DeviceFunction(table.type), space) if _representable(numbers, dtype) else None


def matern_by_debye(variance, ratio, smoothness, polynomial, space, dtype):
    """variance · ρ by Debye's expansion, z/ν = ratio · r, T by its powers from the constant on."""
    limits = np.finfo(dtype)
    squared = ratio**2 if ratio < math.sqrt(float(limits.max)) else math.inf
    largest = _largest_square(lambda: MOST_DEBYE / squared, dtype)
    numbers = squared, largest, variance, smoothness
    own = DeviceFunction(f"MaternDebye<{len(polynomial) - 1}>", (*numbers, *polynomial))
    decayed = squared * smoothness * float(limits.tiny) > float(limits.eps)  # at the least normal r²
    return own.of(space) if _normal(numbers, dtype) and not decayed else None


def gaussian(variance, decay, space, dtype):
    """variance · exp(−decay r²)."""
    rate = decay / math.log(2)
    numbers = rate, _largest_square(lambda: LONGEST_DECAY[dtype.name] / rate, dtype), variance
    return DeviceFunction("Gaussian", numbers).of(space) if _representable(numbers, dtype) else None


def compact(variance, rate, exponent, coefficients, space, dtype):
    """variance · t^exponent Σ_i coefficients[i] z^i, z = min(rate r, 1), t = 1 − z."""
    own = DeviceFunction(f"Compact<{exponent}, {len(coefficients) - 1}>", (rate, variance, *coefficients))
    return own.of(space) if _normal((rate, variance), dtype) else None


def powered_exponential(variance, rate, exponent, space, dtype):
    """variance · exp(−(rate r)^exponent)."""
    numbers = rate, variance, exponent
    return DeviceFunction("PoweredExponential", numbers).of(space) if _normal(numbers, dtype) else None


def rational_quadratic(variance, decay, alpha, space, dtype):
    """variance · (1 + decay r²)^(−alpha)."""
    numbers = decay, variance, alpha
    return DeviceFunction("RationalQuadratic", numbers).of(space) if _normal(numbers, dtype) else None


def joined(space, time):
    """The product of one covariance of all coordinates but the last and one of that; None where one of them is."""
    return None if space is None or time is None else DeviceFunction("SpaceTime").of(space, time)


def modulated(function, slopes, center):
    """s(x) s(y) times a covariance, s(x) = exp(slopesᵀ (x − center)); None where it is."""
    return function and DeviceFunction("Modulated", (*slopes, *center)).of(function)


def leading(function, seen, dim):
    """A covariance of the first `seen` of dim coordinates; None where it is."""
    return function if seen == dim or function is None else DeviceFunction(f"Leading<{dim}>").of(function)


def varying(distance, slopes, center):
    """‖x − y‖ / (½ (g(x)² + g(y)²))^½ of the first coordinates, g(x) = exp(slopesᵀ (x − center))."""
    return DeviceFunction(f"Varying<{len(slopes)}>", (*slopes, *center)).of(distance)


def overlap(values, slopes, seen):
    """A covariance times q^(seen/2), q = sech slopesᵀ (x − y); None where it is."""
    return composed("Product", [values, DeviceFunction(f"Overlap<{len(slopes)}, {seen}>", tuple(slopes))])


def within_time(distance, rate, exponent, interaction):
    """‖x − y‖ / ψ^(interaction/2) of points with time as last coordinate, ψ = 1 + (rate |u|)^exponent."""
    return DeviceFunction("WithinTime", (rate, exponent, interaction)).of(distance)


def powers_of_time(values, dim, rate, exponent, power, dtype):
    """A covariance of dim coordinates times ψ^(−power), ψ = 1 + (rate |u|)^exponent; None where it is."""
    own = DeviceFunction(f"PowersOfTime<{dim}>", (rate, exponent, power))
    return composed("Product", [values, own if _normal(own.parameters, dtype) else None])


def constant(variance, space):
    """variance, everywhere."""
    return DeviceFunction("Constant<" + space.type + ">", (variance,))


def expression(name, definition, numbers, space, dtype):
    """A caller's C++ text, defined as a struct of this name, which takes at least one number."""
    if any(abs(number) > float(np.finfo(dtype).max) for number in numbers):
        return None
    own = DeviceFunction("Expression", tuple(numbers) or (0.0,), definitions=(definition,))
    return own.of(DeviceFunction(name), space)


def in_units(function, units):
    """The function of coordinates times units; None where it is."""
    return function and DeviceFunction("InUnits", tuple(units)).of(function)


def composed(name, functions):
    """Sum or Product of any number of functions; None where one of them is."""
    first, *others = functions
    for other in others:
        if first is None or other is None:
            return None
        first = DeviceFunction(name).of(first, other)
    return first


def _largest_square(compute, dtype):
    """The r² beyond which the value is taken as it is there, so that nothing overflows."""
    most = float(np.finfo(dtype).max)
    try:
        return min(compute(), most)
    except (OverflowError, ZeroDivisionError):
        return most


def _representable(numbers, dtype):
    """Whether all numbers are normal in this precision, and r² at the least normal number has decayed by nothing."""
    limits = np.finfo(dtype)
    least = (LONGEST_DECAY[dtype.name] / float(limits.eps)) ** 2 * float(limits.tiny)
    return numbers[1] >= least and _normal(numbers, dtype)


def _normal(numbers, dtype):
    """Whether all numbers are positive and normal in this precision."""
    limits = np.finfo(dtype)
    return all(float(limits.tiny) <= number <= float(limits.max) for number in numbers)
