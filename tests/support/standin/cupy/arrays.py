"""Arrays of the stand-in: NumPy's entries behind CuPy's manners."""

import operator
import sys
from types import SimpleNamespace

import numpy as np


def refused(a):
    raise TypeError(f"Unsupported type {type(a)}")


def device_array(result):
    """What NumPy gave, its arrays and numbers as arrays of the stand-in."""
    if isinstance(result, (np.ndarray, np.generic)):
        a = ndarray.__new__(ndarray)
        a._entries = np.asarray(result)
        return a
    if isinstance(result, tuple):
        parts = map(device_array, result)
        return tuple(parts) if type(result) is tuple else type(result)(*parts)
    return [device_array(part) for part in result] if isinstance(result, list) else result


def entries_of(a):
    """An argument for NumPy: the entries of arrays of the stand-in; those of the host are refused."""
    if isinstance(a, ndarray):
        return a._entries
    if isinstance(a, np.ndarray):
        return refused(a)
    return type(a)(map(entries_of, a)) if type(a) in (list, tuple) else a


def uploaded(a):
    """The same where arrays of the host are welcome."""
    return a if isinstance(a, np.ndarray) else entries_of(a)


def index_of(i):
    """An index for NumPy: here CuPy takes arrays of either side."""
    if isinstance(i, ndarray):
        return i._entries if i.ndim or i.dtype == bool else i._entries[()]
    if isinstance(i, slice):
        return slice(*map(index_of, (i.start, i.stop, i.step)))
    return tuple(map(index_of, i)) if isinstance(i, tuple) else i


class Flags:
    def __init__(self, flags):
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, flags.owndata

    def __getitem__(self, name):
        return getattr(self, name.lower())


class ndarray:  # noqa: N801  CuPy's name
    """An array that says what CuPy's says, and refuses what it refuses."""

    __hash__ = None
    __array_priority__ = 100

    def __init__(self, shape, dtype=np.float64, memptr=None):
        self._entries = np.zeros(shape, dtype) if memptr is None else memptr.entries(shape, dtype)

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if out is not None:
            kwargs["out"] = tuple(map(entries_of, out))
        result = getattr(ufunc, method)(*map(entries_of, inputs), **kwargs)
        return device_array(result) if out is None else out[0]

    def __array_function__(self, function, types, args, kwargs):
        module = sys.modules["cupy"]
        for part in function.__module__.split(".")[1:]:
            module = getattr(module, part)
        return getattr(module, function.__name__)(*args, **kwargs)

    def get(self, stream=None, order="C", out=None, blocking=True):
        if out is None:
            return self._entries.copy()
        out[...] = self._entries
        return out

    def set(self, a):
        self._entries[...] = a

    @property
    def flags(self):
        return Flags(self._entries.flags)

    def argsort(self, axis=-1, kind="stable"):
        return device_array(self._entries.argsort(axis, kind="stable"))  # as CuPy's always is

    @property
    def device(self):
        return sys.modules["cupy"].cuda.Device()

    @property
    def data(self):
        return SimpleNamespace(ptr=self._entries.ctypes.data)

    @property
    def mT(self):
        return device_array(self._entries.swapaxes(-1, -2))

    @property
    def shape(self):
        return self._entries.shape

    @shape.setter
    def shape(self, shape):
        self._entries = self._entries.reshape(shape)

    def __getitem__(self, index):
        found = self._entries[index_of(index)]
        if found.ndim > 1 and not np.may_share_memory(
            found, self._entries
        ):  # CuPy's copies are row by row, NumPy's may not
            found = found.copy(order="C")
        return device_array(found)

    def __setitem__(self, index, a):
        if isinstance(a, np.ndarray) and a.ndim and index is not Ellipsis and index != slice(None):
            refused(a)
        self._entries[index_of(index)] = uploaded(a)

    def __iter__(self):
        return map(device_array, self._entries)

    def __format__(self, how):
        return format(self._entries if self.ndim else self._entries[()], how)

    def __repr__(self):
        return f"device {self._entries!r}"

    def astype(self, dtype, copy=True):
        return self if self.dtype == dtype and not copy else device_array(self._entries.astype(dtype))


def attribute(name):
    return property(lambda self: device_array(getattr(self._entries, name)))


def method(name):
    def call(self, *args, out=None, **kwargs):
        if "initial" in kwargs:
            raise TypeError(f"{name}: CuPy has no initial")
        if out is not None:
            kwargs["out"] = entries_of(out)
        arguments = {key: entries_of(value) for key, value in kwargs.items()}
        return device_array(getattr(self._entries, name)(*map(entries_of, args), **arguments))

    return call


def operation(function):
    """An operation with the array on its left, and on its right; other things may know what to do with an array."""

    def forward(self, *other):
        if not all(isinstance(a, OPERANDS) for a in other):
            return NotImplemented
        return device_array(function(self._entries, *map(entries_of, other)))

    def backward(self, other):
        return device_array(function(entries_of(other), self._entries))

    return forward, backward


def in_place(function):
    def call(self, other):
        self._entries[...] = function(self._entries, entries_of(other))
        return self

    return call


OPERANDS = (ndarray, np.ndarray, np.generic, bool, int, float, complex)
ATTRIBUTES = "dtype size ndim strides nbytes itemsize T real imag base"
METHODS = """
    __len__ all any argmax argmin clip conj conjugate copy cumprod cumsum diagonal dot fill flatten item max
    mean min nonzero partition prod ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take tobytes
    tolist trace transpose var view
"""
UNARY_AND_COMPARISONS = "neg pos abs invert lt le eq ne gt ge"
BINARY = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul"
for _name in ATTRIBUTES.split():
    setattr(ndarray, _name, attribute(_name))
for _name in METHODS.split():
    setattr(ndarray, _name, method(_name))
for _name in BINARY.split():
    _function = getattr(operator, f"__{_name}__")
    _forward, _backward = operation(_function)
    setattr(ndarray, f"__{_name}__", _forward)
    setattr(ndarray, f"__r{_name}__", _backward)
    setattr(ndarray, f"__i{_name}__", in_place(getattr(operator, f"__i{_name}__")))
for _name in UNARY_AND_COMPARISONS.split():
    setattr(ndarray, f"__{_name}__", operation(getattr(operator, f"__{_name}__"))[0])
for _function in (bool, int, float, complex, operator.index, str):
    _name = f"__{_function.__name__}__"
    setattr(ndarray, _name, lambda self, function=_function: function(self._entries[()]))
