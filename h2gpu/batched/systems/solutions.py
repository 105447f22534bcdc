"""x_b = A_b⁻¹ b_b and A_b⁻¹ on the GPU, nothing read back.

Up to 32 unknowns and a few right-hand sides: one launch, kernels/systems/solve_register.cuh. Others: LU, then its
triangles.
"""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.systems.lu import lu_factor
from h2gpu.batched.systems.lu_registers import lanes_of
from h2gpu.batched.systems.triangles import inverse_of, lu_solve

UNKNOWNS, SIDES = 4, (1, 2, 4, 8, 16)  # of an instance: unknowns in multiples; right-hand sides
SOLVE_WARPS = 2  # of a block
HELD_BYTES = 960  # of a lane, a row of A and of the right-hand sides: more do not fit in its registers
MANY = 4096  # inverses of WARP float64 unknowns from which LU and its triangles are faster: so long rows are slow
REASON = "a zero pivot"
SPILL_BYTES = {4: 0, 8: 16, 16: 0}  # by bytes of a number, at most


def solve(A, b):
    """X and info of stacks (batch, n, n) and (batch, n, k)."""
    (batch, n, _), k = A.shape, b.shape[-1]
    ready = plan(A.dtype, batch, n, k, False) if b.size else None
    if ready is None:
        LU, piv, info = lu_factor(A, "auto")
        return lu_solve(LU, piv, b), info
    X, info = cupy.empty(b.shape, b.dtype), cupy.empty(batch, np.int32)
    ready(A, b, X, info, NULL)
    return X, info


def inv(A):
    """A⁻¹ and info of a stack (batch, n, n)."""
    batch, n, _ = A.shape
    ready = plan(A.dtype, batch, n, n, True) if A.size else None
    if ready is None:
        LU, piv, info = lu_factor(A, "auto")
        return inverse_of(LU, piv), info
    X, info = cupy.empty(A.shape, A.dtype), cupy.empty(batch, np.int32)
    ready(A, A, X, info, NULL)
    return X, info


@remembered
def plan(dtype, batch, n, k, inverse):
    """The one launch; None where registers do not hold the problem."""
    if n > WARP or (not inverse and k > SIDES[-1]):
        return None
    unknowns = -(-n // UNKNOWNS) * UNKNOWNS
    sides = unknowns if inverse else next(size for size in SIDES if k <= size)
    if inverse and dtype == np.float64 and unknowns == WARP and batch >= MANY:
        return None
    if (unknowns + sides) * dtype.itemsize > HELD_BYTES:
        return None
    lanes, shared = int(lanes_of(np.array([n]))[0]), shared_bytes(dtype, unknowns, sides)
    instance = dtype, unknowns, sides, lanes, SOLVE_WARPS, inverse
    function = kernel("systems/solve_register.cuh", "solve_register", *instance, shared_bytes=shared)
    blocks = -(-batch // (SOLVE_WARPS * WARP // lanes))
    return Ready(function, blocks, SOLVE_WARPS * WARP, shared, (n, k, np.int64(batch)))


def shared_bytes(dtype, unknowns, sides):
    """Shared memory of a block of solve_register: rows of A or of B, whichever are longer, one a lane."""
    return SOLVE_WARPS * WARP * (max(unknowns, sides) | 1) * dtype.itemsize
