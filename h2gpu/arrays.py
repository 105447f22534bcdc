"""The array decides where to compute: NumPy arrays on the CPU, CuPy arrays on the GPU.

Arrays of other libraries (PyTorch's tensors, JAX's arrays, whatever has `__dlpack__`) come in through `any_array`,
which views them as NumPy's or CuPy's, without a copy, and hands out the results as the same kind.
Reference: the array API standard, https://data-apis.org/array-api/latest/design_topics/data_interchange.html
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

import numpy as np

from h2gpu.staging import to_device
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike

_modules = {np.ndarray: np}  # of types of arrays; asked for many times a call
_foreign = {
    np.ndarray: False,
    int: False,
    float: False,
    bool: False,
    str: False,
    type(None): False,
    tuple: True,
    list: True,
}
# whether arguments of a type are arrays of another library, or may hold some; likewise
_lost: dict[str, str] = {}  # why this process, which was forked, cannot compute: by the name of the module of arrays
DLPACK_CPU, DLPACK_CUDA = 1, 2  # kinds of devices, of dlpack.h
ALONE, APART = 1 << 20, 256  # bytes of an array that is copied alone; at whose multiples others begin, as CuPy's do
P = ParamSpec("P")
R = TypeVar("R")


def array_module(*arrays: object) -> ModuleType:
    """`cupy` when any of the arrays lives on the GPU, else `numpy`; CuPy is never imported for NumPy arrays.

    Raises ValueError for a masked array of which some is masked: what lies under a mask is no number to compute with;
    RuntimeError for arrays of the GPU in a process that was forked after its parent used it, and for all arrays in one
    that was forked while other threads held BLAS.
    """
    for array in arrays:
        kind = type(array)
        module = _modules[kind] if kind in _modules else _module(array)
        if module is not np:
            return module
    return np


def known_module(kind):
    """The module of arrays of a type, numpy or cupy, if such arrays were met before in this process; else None."""
    return _modules.get(kind)


def _module(array):
    """The module of an array whose type was not met before, or may be masked."""
    cupy = sys.modules.get("cupy")
    module = cupy if cupy is not None and isinstance(array, cupy.ndarray) else np
    _check_process(module.__name__)
    if module is not np:
        _read_headers_once(module)
    if not isinstance(array, np.ma.MaskedArray):
        _modules[type(array)] = module
    elif np.ma.is_masked(array):
        raise ValueError(
            f"expected arrays without masked entries, got {np.ma.count_masked(array)} masked of {array.size}; "
            "drop them, or give them values with filled()"
        )
    return module


def refuse(module, why):
    """From now on arrays of numpy or cupy are asked for their module again, and refused with this reason."""
    _lost[module.__name__] = why
    for kind in [kind for kind, known in _modules.items() if known is module]:
        del _modules[kind]


def _check_process(name):
    if name in _lost:
        raise RuntimeError(_lost[name])


def _forked():
    for module in {*_modules.values()} - {np}:
        refuse(
            module,
            "the GPU was in use before this process was forked, and CUDA does not survive a fork: start processes by "
            'multiprocessing.get_context("spawn")',
        )


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


def _read_headers_once(cupy):
    """CuPy's elementwise kernels, compiled at their first use, then take half as long: NVRTC keeps the headers.

    What CUPY_NVRTC_USE_PCH says goes first. Source: CuPy's page of environment variables.
    """
    compiler = getattr(cupy.cuda, "compiler", None)
    if "CUPY_NVRTC_USE_PCH" not in os.environ and hasattr(compiler, "_use_pch"):
        compiler._use_pch = True


def module_of_device(device):
    """numpy for "cpu", cupy for "cuda"; ValueError for others, ImportError where CuPy is missing.

    RuntimeError in a process that was forked after its parent used the GPU.
    """
    if device == "cpu":
        return np
    if device == "cuda":
        _check_process("cupy")
        import cupy

        return cupy
    raise ValueError(f'device: expected "cpu" or "cuda", got {brief(device)}')


def as_array(x):
    """The array where it is; what is none, such as a list, as NumPy's."""
    return x if array_module(x) is not np else np.asarray(x)


def native(array):
    """The array in the machine's order of bytes: some files have the other."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def moved(array, xp):
    """The array as one of the module xp, copied only from one device to another."""
    return to_host(array) if xp is np else to_device(array, xp)


def moved_together(xp, *arrays):
    """Arrays of the host as arrays of the module xp, small ones by one copy: a device takes as long for each of them.

    Those share memory, which is kept as long as one of them is.
    """
    if xp is np:
        return list(arrays)
    small, first = [i for i, array in enumerate(arrays) if 0 < array.nbytes < ALONE], [0]
    if len(small) < 2:
        return [to_device(array, xp) for array in arrays]
    for i in small:
        first.append(first[-1] + -(-arrays[i].nbytes // APART) * APART)
    packed = np.empty(first[-1], np.uint8)
    for i, begin in zip(small, first):
        packed[begin : begin + arrays[i].nbytes] = np.ascontiguousarray(arrays[i]).reshape(-1).view(np.uint8)
    there, places = to_device(packed, xp), dict(zip(small, first))
    return [
        there[places[i] : places[i] + array.nbytes].view(array.dtype).reshape(array.shape)
        if i in places
        else to_device(array, xp)
        for i, array in enumerate(arrays)
    ]


def to_host(array: ArrayLike) -> Array:
    """The array as a NumPy array: one copy from the device, none on the CPU.

    Raises nothing for arrays of either kind. Source: array API standard, and CuPy's `asnumpy`.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> batched.to_host(np.ones(2)).tolist()
    [1.0, 1.0]
    """
    if isinstance(array, np.ndarray):
        return array
    xp = array_module(array)
    return np.asarray(array) if xp is np else xp.asnumpy(array)


def any_array(function: Callable[P, R]) -> Callable[P, R]:
    """The function, taking arrays of other libraries too: the same numbers in, the same kind out.

    Arrays among the arguments, also in tuples and lists, are viewed as NumPy's or CuPy's by DLPack; arrays that it
    returns, also in tuples, become arrays of the library of the first of them. Without such arguments nothing changes.
    Raises ValueError for tensors that require gradients, and for devices other than CPUs and CUDA's.
    """

    @wraps(function)
    def door(*args, **kwargs):
        for value in args:
            if _foreign.get(type(value), True):
                break
        else:
            if not any(_foreign.get(type(value), True) for value in kwargs.values()):
                return function(*args, **kwargs)
        given = [*args, *kwargs.values()]
        first = next((array for value in given for array in _foreign_of(value)), None)
        if first is None:
            return function(*args, **kwargs)
        args, kwargs = [_taken(value) for value in args], {name: _taken(value) for name, value in kwargs.items()}
        return _given_back(function(*args, **kwargs), _library(first))

    return door


def _is_foreign(kind):
    """Whether a type is that of another library's arrays; remembered."""
    if kind in _foreign:
        return _foreign[kind]
    cupy = sys.modules.get("cupy")
    ours = (np.ndarray, np.generic) if cupy is None else (np.ndarray, np.generic, cupy.ndarray)
    _foreign[kind] = hasattr(kind, "__dlpack__") and not issubclass(kind, ours)
    return _foreign[kind]


def _foreign_of(value):
    """The arrays of other libraries that an argument holds: itself, or in a tuple or list."""
    if type(value) in (tuple, list):
        return [part for part in value if type(part) not in (tuple, list) and _is_foreign(type(part))]
    return [value] if _is_foreign(type(value)) else []


def _taken(value):
    """An argument with NumPy's or CuPy's arrays instead of others."""
    if type(value) in (tuple, list):
        return type(value)(_taken(part) for part in value)
    if not _is_foreign(type(value)):
        return value
    if getattr(value, "requires_grad", False):
        raise ValueError("expected arrays without gradients, got a tensor that requires them; pass tensor.detach()")
    device = int(value.__dlpack_device__()[0])
    if device not in (DLPACK_CPU, DLPACK_CUDA):
        raise ValueError(
            f"expected arrays on a CPU or a CUDA device, got DLPack's kind {device}; move them there first"
        )
    return (np if device == DLPACK_CPU else module_of_device("cuda")).from_dlpack(value)


def _library(array):
    """The module whose from_dlpack makes arrays of this kind."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return import_module(type(array).__module__.partition(".")[0])


def _given_back(value, library):
    """A result with arrays of a library instead of NumPy's and CuPy's."""
    if type(value) is tuple:
        return tuple(_given_back(part, library) for part in value)
    xp = array_module(value)
    if not isinstance(value, xp.ndarray):
        return value
    fit = value.flags.c_contiguous and getattr(value.flags, "writeable", True)
    return library.from_dlpack(value if fit else xp.array(value, order="C"))
