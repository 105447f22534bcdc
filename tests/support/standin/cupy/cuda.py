"""CuPy's device, streams and events: one H200 on which everything is done at once."""

import ctypes
import types

import numpy as np

NAME = "NVIDIA H200"  # whose tables are read
ATTRIBUTES = {
    "ClockRate": 1_980_000,
    "MaxSharedMemoryPerBlockOptin": 227 << 10,
    "MaxSharedMemoryPerMultiprocessor": 228 << 10,
    "MultiProcessorCount": 132,
}
PROPERTIES = {"name": NAME.encode(), "totalGlobalMem": 140 << 30, "major": 9, "minor": 0}


class Thing:
    """A device, a stream or an event: whatever else is asked of it or called is one again."""

    id = ptr = 0
    attributes, compute_capability, mem_info = ATTRIBUTES, "90", (139 << 30, 140 << 30)

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_, **__):
        return self

    def __enter__(self):
        return self

    def is_capturing(self):
        return False

    def __exit__(self, *_):
        pass


class MemoryAsyncPool(Thing):
    """The driver's pool, which nothing allocates from."""


class MemoryPool(Thing):
    """Another pool, likewise."""


class PinnedMemory(bytearray):
    """Memory of the host that kernels can write to."""

    @property
    def ptr(self):
        return ctypes.addressof((ctypes.c_char * len(self)).from_buffer(self))


class UnownedMemory:
    """Memory at an address that the owner keeps alive."""

    def __init__(self, ptr, size, owner, device_id=-1):
        self.ptr, self.size, self.owner = ptr, size, owner


class MemoryPointer:
    """An address within a memory."""

    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset

    def entries(self, shape, dtype):
        """NumPy's array of what lies there."""
        self.__array_interface__ = {
            "data": (self.ptr, False),
            "shape": tuple(shape),
            "typestr": np.dtype(dtype).str,
            "version": 3,
        }
        return np.asarray(self)


Device = Stream = Event = Thing
get_current_stream = Thing()
alloc_pinned_memory = PinnedMemory


def get_allocator():
    return bytearray  # no pool's method


def set_allocator(allocator):
    """Memory is the host's, whoever is asked."""


def using_allocator(allocator):
    """No other memory: nothing is recorded here, since what a graph does again is not known."""
    raise memory.OutOfMemoryError(0, 0)


def get_elapsed_time(start, stop):
    return 1.0


class Runtime(Thing):
    """The functions of the CUDA runtime that have an answer."""

    CUDARuntimeError = type("CUDARuntimeError", (RuntimeError,), {})

    def getDevice(self):
        return 0

    def getDeviceCount(self):
        return 1

    def getDeviceProperties(self, device):
        return PROPERTIES

    def memGetInfo(self):
        return self.mem_info

    def memcpyAsync(self, target, source, size, kind, stream):
        ctypes.memmove(target, source, size)


runtime = Runtime()
compiler = types.SimpleNamespace(CompileException=type("CompileException", (Exception,), {}))
memory = types.SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {}))
