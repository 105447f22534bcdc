"""Covariances as texts: one C++ expression for one pair of points, compiled into the kernel that evaluates pairs.

    C(x, y) = text(r, x, y, numbers),   r = ‖x − y‖

On the CPU the text is parsed (`formula`) and evaluated by array operations, nothing else of it is ever executed; or a
function of arrays stands beside it, and the text may be any C++. Reference: the NVRTC documentation, NVIDIA.
"""

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance import formula
from h2gpu.covariance.checks import is_finite
from h2gpu.covariance.device import DeviceFunction, expression
from h2gpu.covariance.functions import squared_distances
from h2gpu.covariance.user import Written, check_dimension, check_function, write
from h2gpu.texts import brief
from h2gpu.typing import Array, DTypeLike

NAME = re.compile(r"[A-Za-z_]\w*")
COORDINATE = re.compile(r"\b[xy]\b(?:\s*\[\s*(\d+)\s*\])?")
DEFINITION = """\
struct {name} {{
    static constexpr int parameters = {count};
    template <typename Real>
    static __device__ Real value(const Real r, const Real* x, const Real* y, const Real* p) {{
{numbers}#line 1 "{shown}"
        return static_cast<Real>({text});
    }}
}};"""


@dataclass(frozen=True, init=False, repr=False)
class Expression(Written):
    """C(x, y) = text: a symmetric, positive definite function of two points, as one C++ expression.

    text       of r = ‖x − y‖ or of the coordinates x[0], y[0], …, and of the numbers given by name. Without
               `function` it consists of numbers, + − * /, comparisons, && || !, a ? b : c, and exp exp2 expm1 log
               log2 log1p pow sqrt cbrt fabs fmin fmax sin cos tan sinh cosh tanh asin acos atan atan2, everything in
               the points' precision (1/2 is a half)
    function   optional: the same for arrays, function(r, **numbers), or function(x, y, **numbers) with x (..., d),
               y (..., d) where the text mentions x or y. Then the text may be any C++ expression of type `Real`
    dimension  coordinates of a point; by default as many as the text mentions, any number where it mentions none
    numbers    finite, by the names that the text uses

    The text must have its limit at equal points, such as r > 0 ? sin(r) / r : 1. Raises ValueError, one line, for a
    text that is not understood; where C++ beside a function does not compile, on first use on a GPU.
    Source: C++17, annex A.4, for the grammar; NVRTC compiles it.

    >>> cov = Expression("variance * exp(-pow(r / length, 1.5))", variance=2.0, length=0.5)
    >>> cov([[0.0], [0.5]]).round(4)
    array([[2.    , 0.7358],
           [0.7358, 2.    ]])
    """

    text: str
    function: Callable | None = None
    dimension: int | None = None
    numbers: tuple = ()

    def __init__(
        self, text: str, /, function: Callable[..., Any] | None = None, dimension: int | None = None, **numbers: float
    ) -> None:
        if not isinstance(text, str) or not text.strip() or not text.isascii():
            raise ValueError(f'expression: expected an ASCII text such as "exp(-r / length)", got {brief(text, 80)}')
        given = tuple((name, _number(name, value)) for name, value in sorted(numbers.items()))
        mentioned = [match[1] for match in COORDINATE.finditer(text)]
        check_dimension(dimension)
        if function is not None:
            check_function(function, "(x, y) and the numbers" if mentioned else "r and the numbers")
        if dimension is None and mentioned:
            dimension = max((int(k) + 1 for k in mentioned if k is not None), default=None)
            check_dimension(dimension)
        for name, value in (("text", text), ("function", function), ("dimension", dimension), ("numbers", given)):
            object.__setattr__(self, name, value)
        if function is None:
            self._check()

    def _check(self):
        """The text can be parsed, names every number, knows its coordinates and is positive at equal points."""
        names = self._formula.names
        for name, _ in self.numbers:
            if name not in names:
                raise ValueError(f"{name}: given, but not in the expression {self.text!r}")
        if self.dimension is not None and self._formula.coordinates > self.dimension:
            raise ValueError(
                f"expression {self.text!r}: expected coordinates below {self.dimension}, the dimension, got "
                f"{self._formula.coordinates - 1}"
            )
        value = self.variance_at_zero
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(
                f"expression {self.text!r}: expected a finite value ≥ 0 at equal points, got {value}; write the limit "
                "as r > 0 ? … : limit"
            )

    @property
    def _formula(self):
        return formula.parse(self.text, tuple(name for name, _ in self.numbers))

    def with_numbers(self, **numbers: float) -> "Expression":
        """The same text with some of its numbers replaced."""
        return Expression(self.text, self.function, self.dimension, **dict(self.numbers) | numbers)

    def role(self, name: str) -> str | None:
        """What a number is: "variance" where doubling it doubles C, "length_scale" where it does as halving all
        distances does, "number" otherwise. Found by trying."""
        x, y = np.random.default_rng(0).random((2, 9, self.dimension or 2)) * 10.0 ** np.arange(-4, 5)[:, None]
        doubled = self.with_numbers(**{name: 2 * dict(self.numbers)[name]})
        if np.allclose(doubled.values(x, y), 2 * self.values(x, y), rtol=1e-9, atol=0):
            return "variance"
        return "length_scale" if np.allclose(doubled.values(2 * x, 2 * y), self.values(x, y), rtol=1e-9) else "number"

    @property
    def isotropic(self) -> bool:
        return not COORDINATE.search(self.text)

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        if self.isotropic:
            squared_distances(x, y, out)
            array_module(out).sqrt(out, out=out)
            self.of_distances(out)
        elif self.function is not None:
            write(self.function(x, y, **dict(self.numbers)), out, f"x {x.shape} and y {y.shape}")
        else:
            names = {point: [p[..., k] for k in range(p.shape[-1])] for point, p in (("x", x), ("y", y))}
            if formula.DISTANCE in self._formula.names:
                squared_distances(x, y, out)
                names[formula.DISTANCE] = array_module(out).sqrt(out)
            self._by_formula(names, out)

    def of_distances(self, r: Array) -> None:
        if self.function is not None:
            write(self.function(r, **dict(self.numbers)), r, f"distances {r.shape}")
        else:
            self._by_formula({formula.DISTANCE: r}, r)

    def _by_formula(self, names, out):
        number = out.dtype.type
        with np.errstate(all="ignore"):  # the side that a choice does not take
            numbers = {name: number(value) for name, value in self.numbers}
            out[...] = self._formula.value(formula.Values(array_module(out), number, names | numbers))

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return expression(*self._definition, [value for _, value in self.numbers], space, dtype)

    @property
    def _definition(self):
        """Name and text of the C++ struct, the same in every process, so that compiled kernels are found again."""
        text, numbers = self.text, ""
        if self.function is None:
            text = self._formula.spelled
        else:
            for k, (name, _) in enumerate(self.numbers):
                numbers += f"        [[maybe_unused]] const Real {name} = p[{k}];\n"
        shown = " ".join(self.text.split()).replace("\\", "\\\\").replace('"', '\\"')
        digest = hashlib.sha256(f"{numbers}{text}".encode()).hexdigest()[:16]
        parts = {"name": f"Text_{digest}", "count": max(1, len(self.numbers)), "numbers": numbers}
        return parts["name"], DEFINITION.format(**parts, shown=f"expression {shown}", text=text)

    def parameters(self) -> dict[str, Any]:
        if self.function is not None:
            return super().parameters()
        return {"name": "Expression", "text": self.text, "dimension": self.dimension, "numbers": dict(self.numbers)}

    def __repr__(self):
        given = {"function": self.function, "dimension": self.dimension}
        words = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        words += [f"{name}={value!r}" for name, value in self.numbers]
        return f"Expression({', '.join([repr(self.text), *words])})"


def _number(name, value):
    """A finite number by a name that C++ and the text can use."""
    if not NAME.fullmatch(name) or name in formula.RESERVED or name == "p":
        raise ValueError(
            f"{formula.shown(name)}: expected a name of letters and digits other than {', '.join(formula.RESERVED)}, p"
        )
    if not (isinstance(value, Real) and not isinstance(value, bool) and is_finite(value)):
        raise ValueError(f"{name}: expected a finite number, got {brief(value, 80)}")
    return float(value)
