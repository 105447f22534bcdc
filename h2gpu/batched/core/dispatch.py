"""How a room's doors find its two implementations: `cpu` for NumPy arrays, `cuda` for CuPy arrays.

Doors that are `repeated` remember, for CuPy arrays, what passed their checks and what was launched for it.
"""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

import numpy as np

from h2gpu.arrays import array_module, known_module
from h2gpu.batched.core.matrix_batch import MatrixBatch

PLAIN = frozenset((int, float, bool, str, type(None)))  # types of arguments that are remembered by value
PIECE = 16  # bytes: kernels differ by whether arrays begin at multiples of it
CALLS = 4096  # of a door that are remembered
P = ParamSpec("P")
R = TypeVar("R")


def twins_of(room, cpu="cpu", cuda="cuda"):
    """The function that gives for a batch the room's module that works on it, imported on first need.

    room        the package, `__name__` in its __init__
    cpu, cuda   names of the two modules in it
    """

    @cache  # an import statement would ask again each time
    def module(name):
        return import_module(f"{room}.{name}")

    def twin(A):
        xp = A.xp if isinstance(A, MatrixBatch) else array_module(A)
        return module(cpu if xp is np else cuda)

    return twin


FACTORS = "alpha", "beta"  # arrays of them have values that are no part of a key


def repeated(door: Callable[P, R]) -> Callable[P, R]:
    """The door of a room; a call on CuPy arrays like an earlier one goes without its checks.

    Alike are calls on the same device whose arrays have the same shapes, strides, precisions and places within PIECE
    bytes, and whose other arguments are of the same types and values. What is to be done then says the function of the
    door's name in the room's module `repeats`, for contiguous arrays, or None: then all is as the first time, as it is
    for other arguments, and for arrays given by name.
    """
    room, again, parameters = door.__module__, {}, inspect.signature(door)

    def remember(key, arrays, arguments, named):
        bound = parameters.bind(*arguments, **named)
        bound.apply_defaults()
        if len(again) >= CALLS:
            again.clear()
        factors = [bound.arguments[name] for name in FACTORS if name in bound.arguments]
        suited = all(type(factor) in PLAIN for factor in factors) and all(A.flags.c_contiguous for A in arrays)
        plan = getattr(import_module(f"{room}.repeats"), door.__name__)
        again[key] = plan(**bound.arguments) if suited else None

    @wraps(door)
    def call(*args, **kwargs):
        kind = type(args[0]) if args else None
        xp = known_module(kind)
        if xp is None or xp is np:
            return door(*args, **kwargs)
        key, arrays = [xp.cuda.runtime.getDevice()], []
        for value in args:
            if type(value) is kind:
                arrays.append(value)
                key += (kind, value.shape, value.strides, value.dtype, value.data.ptr % PIECE)
            elif type(value) in PLAIN:
                key += (type(value), value or repr(value))  # -0.0 is not 0.0
            else:
                return door(*args, **kwargs)
        for name, value in kwargs.items():
            if type(value) not in PLAIN:
                return door(*args, **kwargs)
            key += (name, type(value), value or repr(value))
        key = tuple(key)
        work = again.get(key)
        if work is not None:
            return work(*arrays)
        result = door(*args, **kwargs)
        if key not in again:
            remember(key, arrays, args, kwargs)
        return result

    call.cache_clear = again.clear  # tuning.trial forgets
    return call
