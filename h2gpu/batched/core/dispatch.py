"""How a room's doors find its two implementations: `cpu` for NumPy arrays, `cuda` for CuPy arrays."""

from functools import cache
from importlib import import_module

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.core.matrix_batch import MatrixBatch


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
