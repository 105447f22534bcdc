"""Launches one behind the other: a kernel's blocks begin while the one before ends (programmatic dependent launch).

For kernels that wait by themselves for what the one before writes: kernels/blocksparse/thread/chain.cuh. Source: CUDA
driver API, cuLaunchKernelEx and CUlaunchConfig.
"""

import ctypes
from functools import cache

import cupy
import numpy as np

from h2gpu.batched.device import launch as launches
from h2gpu.batched.device.launch import launch
from h2gpu.batched.device.limits import compute_capability

STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
VALUE_BYTES = 64  # of an attribute
FIRST_CAPABILITY = 90  # of devices that begin kernels so
KERNEL_NODE = 0  # CU_GRAPH_NODE_TYPE_KERNEL
WORD = 8  # bytes: no argument is larger
_address = ctypes.c_void_p


class Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_int * (VALUE_BYTES // 4))]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        *((name, ctypes.c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


def launch_behind(function, blocks, threads, arguments, shared_bytes=0):
    """`launch` of a kernel that waits by itself for what stands before it, as all kernels of a chain do.

    It may begin while the kernel before it ends, where that is the last node of a graph that is being recorded. Else,
    and where device or driver cannot, it is launched plainly. Raises CUDADriverError as `launch` does.
    """
    pointer = getattr(getattr(function, "kernel", None), "ptr", None)
    stream = cupy.cuda.get_current_stream()
    if not (pointer and blocks and stream.is_capturing()) or launches.recording() or not _follows_kernel(stream.ptr):
        launch(function, blocks, threads, arguments, shared_bytes)
        return
    words = np.zeros(len(arguments), np.uint64)
    for word, argument in zip(words.view(np.uint8).reshape(-1, WORD), arguments):
        content = bytes_of(argument)
        word[: len(content)] = np.frombuffer(content, np.uint8)
    places = words.ctypes.data + WORD * np.arange(len(words), dtype=np.uint64)
    attribute = Attribute(STREAM_SERIALIZATION)
    attribute.value[0] = 1
    grid = int(blocks), 1, 1, int(threads), 1, 1, int(shared_bytes)
    config = Config(*grid, stream.ptr, ctypes.pointer(attribute), 1)
    status = _driver().cuLaunchKernelEx(ctypes.byref(config), _address(pointer), _address(places.ctypes.data), None)
    if status:
        raise cupy.cuda.driver.CUDADriverError(status)


def bytes_of(argument):
    """An argument as a kernel takes it: the address of an array, a plain int as C's, a number by its bytes."""
    if isinstance(argument, cupy.ndarray):
        return np.uint64(argument.data.ptr).tobytes()
    return (np.int32(argument) if type(argument) is int else argument).tobytes()


def _follows_kernel(stream):
    """Whether what is recorded next on a stream follows one kernel and nothing else, and can begin early."""
    driver = _driver()
    if driver is None or int(compute_capability(cupy.cuda.runtime.getDevice())) < FIRST_CAPABILITY:
        return False
    status, nodes, count, kind = ctypes.c_int(), ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t(), ctypes.c_int()
    found = [None, None, ctypes.byref(nodes), None, ctypes.byref(count)]  # of identity, graph, nodes, edges, how many
    if driver.cuStreamGetCaptureInfo_v3(_address(stream), ctypes.byref(status), *found) or count.value != 1:
        return False
    return driver.cuGraphNodeGetType(_address(nodes[0]), ctypes.byref(kind)) == 0 and kind.value == KERNEL_NODE


@cache
def _driver():
    """The driver's library, or None where it does not record such launches: before CUDA 12.3."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return driver if hasattr(driver, "cuStreamGetCaptureInfo_v3") and hasattr(driver, "cuLaunchKernelEx") else None
