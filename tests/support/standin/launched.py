"""What a kernel of the stand-in looks at in its arguments: what the device could not read is refused."""

import cupy
import numpy as np

from h2gpu.batched.device import compiler

PITCHED = ("block_sums", "panel_products", "pick_columns", "pick_rows")  # told how far apart rows or matrices are


class Kernel:
    """A kernel; `run(grid, block, arguments, shared_bytes)` is what those do that derive from it."""

    max_dynamic_shared_size_bytes = local_size_bytes = 0

    def __init__(self, header, name, *arguments, shared_bytes=0, definitions=()):
        compiler.sources(header)
        self.header, self.name, self.definitions = header, name, definitions
        self.expression = compiler.expression(name, *arguments)
        if shared_bytes > cupy.cuda.ATTRIBUTES["MaxSharedMemoryPerBlockOptin"]:
            raise ValueError(f"{name}: {shared_bytes} bytes of shared memory")

    def __call__(self, grid, block, arguments, shared_mem=0):
        for a in arguments:
            if isinstance(a, np.ndarray) and a.ndim and a.dtype.names is None:  # structs travel by value
                raise TypeError(f"{self.name}: an array of the host")
            if isinstance(a, cupy.ndarray) and not is_readable(a, self.name in PITCHED):
                raise TypeError(f"{self.name}: an array with gaps")
        self.run(grid, block, arguments, shared_mem)


def is_readable(a, pitched):
    """Whether entries follow one another, of each row or matrix alone if the kernel is told how far apart these are."""
    return a.flags.c_contiguous or (pitched and (a[0].flags.c_contiguous or a.strides[1:] == (0,)))
