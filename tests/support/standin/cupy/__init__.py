"""A strict stand-in for CuPy on NumPy: host code of the GPU runs where there is no GPU.

As in CuPy, arrays of the host are refused among those of the device, and nothing comes to the host unasked. Whatever is
not defined here is NumPy's function of that name, on arrays of the stand-in.
"""

import numpy as np

from cupy import cuda
from cupy.arrays import device_array, entries_of, ndarray, refused, uploaded

__version__ = "14.2.0"
__all__ = ["cuda", "ndarray"]


def on_device(function):
    """A function of NumPy for arrays of the stand-in; types of numbers, and numbers, as they are."""
    if not callable(function) or (isinstance(function, type) and issubclass(function, np.generic)):
        return function

    def call(*args, **kwargs):
        kwargs = {name: entries_of(value) for name, value in kwargs.items()}
        return device_array(function(*map(entries_of, args), **kwargs))

    return call


class Functions:
    """The functions of a module or generator of NumPy."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        return on_device(getattr(self._module, name))


linalg, fft = Functions(np.linalg), Functions(np.fft)


class RandomState(Functions):
    """CuPy's has the type of its numbers as an argument."""

    def __init__(self, seed=None):
        super().__init__(np.random.RandomState(seed))

    def __getattr__(self, name):
        function = super().__getattr__(name)
        return lambda *args, dtype=np.float64, **kwargs: function(*args, **kwargs).astype(dtype)


random = RandomState()
random.RandomState = RandomState
random.default_rng = lambda seed=None: Functions(np.random.default_rng(seed))


def asnumpy(a):
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def asarray(a, dtype=None):
    return a if isinstance(a, ndarray) and (dtype is None or dtype == a.dtype) else array(a, dtype)


def array(a, dtype=None):
    return device_array(np.array(uploaded(a), dtype))


def argsort(a, axis=-1, kind=None):
    return a.argsort(axis)


def ascontiguousarray(a, dtype=None):
    return device_array(np.ascontiguousarray(entries_of(asarray(a, dtype))))


def empty(shape, dtype=np.float64):
    """Memory that nobody has written: NaN, or numbers that are no index."""
    a = np.empty(entries_of(shape), dtype)
    if a.dtype.kind in "fc":
        a[...] = np.nan
    elif a.dtype.kind in "iu":
        a[...] = np.iinfo(a.dtype).max // 3
    return device_array(a)


def empty_like(a, dtype=None):
    return empty(a.shape, dtype or a.dtype)


def from_dlpack(a):
    return a if isinstance(a, ndarray) else refused(a)


class MemoryPool:
    """A pool that gives and keeps nothing."""

    def used_bytes(self):
        return 0

    total_bytes = free_bytes = get_limit = used_bytes

    def malloc(self, size):
        return bytearray(size)

    def free_all_blocks(self):
        pass

    def set_limit(self, size=None, fraction=None):
        pass


_pool = MemoryPool()


def get_default_memory_pool():
    return _pool


get_default_pinned_memory_pool = get_default_memory_pool


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return on_device(getattr(np, name))
