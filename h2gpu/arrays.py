"""The array decides where to compute: NumPy arrays on the CPU, CuPy arrays on the GPU."""

import sys

import numpy as np

_modules = {np.ndarray: np}  # of types of arrays; asked for many times a call


def array_module(*arrays):
    """`cupy` when any of the arrays lives on the GPU, else `numpy`; CuPy is never imported for NumPy arrays.

    Raises ValueError for a masked array of which some is masked: what lies under a mask is no number to compute with.
    """
    for array in arrays:
        kind = type(array)
        module = _modules[kind] if kind in _modules else _module(array)
        if module is not np:
            return module
    return np


def _module(array):
    """The module of an array whose type was not met before, or may be masked."""
    cupy = sys.modules.get("cupy")
    module = cupy if cupy is not None and isinstance(array, cupy.ndarray) else np
    if not isinstance(array, np.ma.MaskedArray):
        _modules[type(array)] = module
    elif np.ma.is_masked(array):
        raise ValueError(
            f"expected arrays without masked entries, got {np.ma.count_masked(array)} masked of {array.size}; "
            "drop them, or give them values with filled()"
        )
    return module


def module_of_device(device):
    """numpy for "cpu", cupy for "cuda"; ValueError for others, ImportError where CuPy is missing."""
    if device == "cpu":
        return np
    if device == "cuda":
        import cupy

        return cupy
    raise ValueError(f'device: expected "cpu" or "cuda", got {device!r}')


def as_array(x):
    """The array where it is; what is none, such as a list, as NumPy's."""
    return x if array_module(x) is not np else np.asarray(x)


def native(array):
    """The array in the machine's order of bytes: some files have the other."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def moved(array, xp):
    """The array as one of the module xp, copied only from one device to another."""
    return to_host(array) if xp is np else xp.asarray(array)


def to_host(array):
    """The array as a NumPy array: one copy from the device, none on the CPU.

    Raises nothing for arrays of either kind.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> batched.to_host(np.ones(2)).tolist()
    [1.0, 1.0]
    """
    return array if isinstance(array, np.ndarray) else array_module(array).asnumpy(array)
