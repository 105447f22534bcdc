"""Norms of CuPy arrays like those of an earlier call, by one launch: see `repeated` in core/dispatch.py."""

import math

import cupy
import numpy as np

from h2gpu.batched.copies import cuda
from h2gpu.batched.core.checks import alike
from h2gpu.batched.device.direct import Direct


def frobenius_norms(A):
    *lead, m, n = A.shape
    batch = math.prod(lead)
    if not alike(A) or not 0 < batch <= cuda.LISTED or cupy.cuda.get_current_stream().is_capturing():
        return None
    lists = cuda.kept_lists(batch, m * n)
    places = tuple(np.uint64(numbers.data.ptr) for numbers in lists)
    ready = cuda.norms_plan(A.dtype, batch, cuda.norm_warps(A.nbytes, batch), False)
    return Direct(ready, tuple(lead), np.dtype(np.float64), (None, *places), holds=lists)
