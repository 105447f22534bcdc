"""out_b = α op(A_b) op(B_b) + β C_b of one shape that the compiler knows: products/{fixed,streamed}_gemm.cuh."""

from functools import cache

import cupy
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, launch
from h2gpu.batched.device.limits import multiprocessors
from h2gpu.batched.products import fixed_plans


def suits(A, B, transa, transb):
    """Whether the kernels are for products of these sizes."""
    (m, k), n = A.shape[:0:-1] if transa else A.shape[1:], B.shape[1 if transb else 2]
    return plan(A.dtype, m, n, k, bool(transa), bool(transb)) is not None


def plan(dtype, m, n, k, transa, transb):
    """The Plan measured fastest on this device, else that of the model; None where the kernels are not for it."""
    return _plan(cupy.cuda.Device().id, dtype, m, n, k, transa, transb)


@cache
def _plan(device, dtype, m, n, k, transa, transb):
    row = tuning.measured("fixed_gemm", dtype, n) if m == n == k and not (transa or transb) else None
    return fixed_plans.Plan.of(row, dtype, n) if row else fixed_plans.plan(dtype, m, n, k, transa, transb)


def fixed_gemm(A, B, C, alpha, beta, transa, transb, out):
    """The product of contiguous stacks that `suits`; out: where to, or None."""
    (m, k), n = A.shape[:0:-1] if transa else A.shape[1:], B.shape[1 if transb else 2]
    out = cupy.empty((len(A), m, n), A.dtype) if out is None else out
    chosen = plan(A.dtype, m, n, k, bool(transa), bool(transb))
    instance = A.dtype, m, n, k, bool(transa), bool(transb), *chosen.arguments
    function = kernel(f"products/{chosen.kernel}.cuh", chosen.kernel, *instance, shared_bytes=chosen.shared)
    C = NULL if C is None else cupy.ascontiguousarray(C)
    arguments = A, B, C, out, np.int64(len(A)), A.dtype.type(alpha), A.dtype.type(beta)
    blocks = chosen.blocks(len(A), m, multiprocessors(cupy.cuda.Device().id))
    launch(function, blocks, chosen.threads(m), arguments, chosen.shared)
    return out
