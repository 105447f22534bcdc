"""cuBLAS where it is missing, as on the stand-in: the host's in its place."""

import ctypes
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from h2gpu import batched


class HostBlas:
    """cuBLAS's strided products of matrices by columns, on memory of the host: what the stand-in has."""

    CUBLAS_OP_N, CUBLAS_OP_T = 0, 1

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        setattr(self, f"{vendor_module().PREFIXES[self.dtype.name]}gemmStridedBatched", self.multiply)

    def multiply(
        self, handle, transa, transb, m, n, k, alpha, A, lda, steps_a, B, ldb, steps_b, beta, C, ldc, steps_c, batch
    ):
        first, second = (k, m) if transa else (m, k), (n, k) if transb else (k, n)
        a = self.at(A, first, lda, steps_a, batch)
        b = self.at(B, second, ldb, steps_b, batch)
        c = self.at(C, (m, n), ldc, steps_c, batch)
        alpha, beta = (self.at(place, (1, 1), 1, 1, 1)[0, 0, 0] for place in (alpha, beta))
        product = (a.swapaxes(1, 2) if transa else a) @ (b.swapaxes(1, 2) if transb else b)
        c[...] = alpha * product + (beta * c if beta else 0)

    def at(self, place, shape, pitch, step, batch):
        """(batch, rows, columns) of matrices by columns."""
        assert pitch >= shape[0]
        size, entries = self.dtype.itemsize, (batch - 1) * step + (shape[1] - 1) * pitch + shape[0]
        flat = np.frombuffer((ctypes.c_char * (entries * size)).from_address(place), self.dtype)
        strides = step * size, size, pitch * size
        return np.lib.stride_tricks.as_strided(flat, (batch, *shape), strides, writeable=True)


def vendor_module():
    from h2gpu.batched.products import vendor

    return vendor


@pytest.fixture
def blas(monkeypatch):
    """From a precision to the module that asks cuBLAS: the host's where it is missing, as on the stand-in."""
    import cupy

    trsm = import_module("h2gpu.batched.systems.trsm")

    def put(dtype):
        if vendor_module().cublas is None:
            for module in (vendor_module(), trsm):
                monkeypatch.setattr(module, "cublas", HostBlas(dtype))
            device = SimpleNamespace(get_cublas_handle=lambda: 0)
            monkeypatch.setattr(cupy.cuda, "device", device, raising=False)
        forget()
        return vendor_module()

    def forget():
        for plans in (batched.gemm, batched.gemv, batched.trsm, trsm.plan, trsm.blocks, vendor_module().suits_columns):
            plans.cache_clear()

    yield put
    forget()
