"""Types of the public interface, in the words of its docstrings: what goes in, what comes out.

An `Array` is NumPy's or CuPy's; checkers see NumPy's, whose interface CuPy shares. Arrays of other libraries, which
`h2gpu.arrays.any_array` takes, are an `ArrayLike` to a checker where they convert to NumPy's.
Reference: https://typing.python.org/en/latest/spec/protocol.html
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # of numbers, of any precision
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
Truths: TypeAlias = npt.NDArray[np.bool_]
ArrayLike: TypeAlias = npt.ArrayLike
DTypeLike: TypeAlias = npt.DTypeLike
DType: TypeAlias = np.dtype[Any]
FileName: TypeAlias = str | os.PathLike[str]
Seed: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
Split: TypeAlias = Literal["median", "mean"]
Storage: TypeAlias = Literal["auto", "full"]
Device: TypeAlias = Literal["cpu", "cuda"]
Solver: TypeAlias = Literal["auto", "direct", "iterative"]
TrendLike: TypeAlias = str | Sequence[str | int] | Callable[[Any], Any] | None  # as for `h2gpu.statistics.Kriging`
Frame: TypeAlias = Sequence[Sequence[float]]  # rows: axes


class HasDtype(Protocol):
    """What arrays and `MatrixBatch` have in common."""

    @property
    def dtype(self) -> Any:
        """The type of the entries, such as numpy.dtype("float64")."""
        ...


Matrices = TypeVar("Matrices", bound=HasDtype)  # a (batch, m, n) array or a MatrixBatch: the same kind out


class Operator(Protocol):
    """What solvers take as a matrix or a preconditioner: `H2Matrix`, `InverseFactor`, SciPy's operators, …"""

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        ...

    def __matmul__(self, x: Any, /) -> Any:
        """The product with a vector (columns,) or a block of vectors (columns, count)."""
        ...
