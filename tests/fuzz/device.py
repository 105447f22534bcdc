"""Where the batteries of numerics compute: `run.py --device cuda` gives their arrays to the GPU and takes results back.

The oracles stay on the host. What is asked for here, on the CPU, is what the package itself would be asked for.
"""

import os

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, module_of_device, to_host
from h2gpu.batched import MatrixBatch

VARIABLE = "H2GPU_FUZZ_DEVICE"  # of the environment: workers are processes of their own


def device():
    """ "cpu" or "cuda"."""
    return os.environ.get(VARIABLE, "cpu")


def given(value):
    """Arrays and batches, also in tuples, where the battery computes; anything else as it is."""
    xp = module_of_device(device())
    if isinstance(value, np.ndarray):
        return value if xp is np else xp.asarray(value.astype(value.dtype.newbyteorder("=")))
    if isinstance(value, MatrixBatch):
        return value.to(xp)
    return tuple(map(given, value)) if type(value) is tuple else value


def back(value):
    """Results on the host."""
    if isinstance(value, tuple):
        return tuple(map(back, value))
    if isinstance(value, MatrixBatch):
        return value.to(np)
    return value if array_module(value) is np else to_host(value)


class Routines:
    """The routines of `batched` for arrays of the host, run on the device."""

    def __getattr__(self, name):
        routine = getattr(batched, name)
        return lambda *arguments, **named: back(
            routine(*map(given, arguments), **{key: given(value) for key, value in named.items()})
        )
