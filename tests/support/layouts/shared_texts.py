"""What the programs of this folder write of shared memory in C++, and sizes to try."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "standin"))
from h2gpu.batched.device import compiler

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)
DTYPES = F64, F32
FIELDS = *DTYPES, np.dtype(np.complex128), np.dtype(np.complex64)


def sizeof(name, *arguments):
    return f"sizeof({compiler.expression(name, *arguments)})"


def truth(value):
    return "true" if value else "false"


def asked(module, call):
    """The bytes that a module's function announces for its kernel."""
    sizes = []

    def kernel(*_, shared_bytes=0):
        sizes.append(shared_bytes)

    before, module.kernel = module.kernel, kernel
    call()
    module.kernel = before
    return sizes[0]
