"""One block of a kernel that a test has written itself, on the emulator."""

import cupy

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import launch


def run_block(name, source, threads, which):
    """out, (threads,) float64, zeros before: of name(double* out, int which), with a double of shared memory a thread.

    source   CUDA C++ of that kernel
    """
    out = cupy.zeros(threads)
    function = kernel("products/fixed_gemm.cuh", name, definitions=(source,))  # a header that has all it needs
    launch(function, 1, threads, (out, which), threads * out.itemsize)
    return out.get()
