"""out_b = α op(A_b) op(B_b) + β C_b of one shape that the compiler knows: products/{fixed,streamed}_gemm.cuh."""

import cupy
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import Ready
from h2gpu.batched.device.limits import multiprocessors
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.products import fixed_layout, fixed_plans


@remembered
def plan(dtype, m, n, k, transa, transb):
    """The Plan measured fastest on this device, else that of the model; None where the kernels are not for it."""
    row = tuning.measured("fixed_gemm", dtype, n) if m == n == k and not (transa or transb) else None
    return fixed_plans.Plan.of(row, dtype, n) if row else fixed_plans.plan(dtype, m, n, k, transa, transb)


def ready(dtype, batch, m, n, k, transa, transb, part=fixed_layout.WHOLE_PRODUCT):
    """The launch for contiguous stacks of sizes that have a `plan`; part: of A Aᵀ, zeros elsewhere."""
    chosen, parts = plan(dtype, m, n, k, transa, transb), ()
    if part:
        chosen, same = fixed_plans.of_one(chosen, dtype, m, k, transa)
        parts = (part, same) if same else (part,)
    instance = dtype, m, n, k, transa, transb, *chosen.arguments, *parts
    function = kernel(f"products/{chosen.kernel}.cuh", chosen.kernel, *instance, shared_bytes=chosen.shared)
    blocks = chosen.blocks(batch, m, multiprocessors(cupy.cuda.Device().id))
    return Ready(function, blocks, chosen.threads(m), chosen.shared, (np.int64(batch),))
