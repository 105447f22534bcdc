"""Launches that the driver itself is asked for: arguments are packed as it reads them, by a layout for each kernel.

CuPy makes objects of every argument anew, which is most of what a launch takes the host. Source: CUDA driver API,
cuLaunchKernel, which has read what kernelParams points to when it returns.
"""

import struct
import threading

import cupy
import numpy as np

WORD = 8  # bytes
CODES = {  # of struct, for numbers of these types, in words; other arguments are bytes
    int: "i4x",
    np.int32: "i4x",
    np.int64: "q",
    np.uint64: "Q",
    np.bool_: "?7x",
    np.float32: "f4x",
    np.float64: "d",
}


class _Thread(threading.local):
    """The layouts of a thread by kernel: of those that CuPy has launched in it, so that their contexts are current."""

    def __init__(self):
        self.layouts = {}


thread = _Thread()


class Layout:
    """Where the arguments of a kernel lie, which have the same types in C whatever the launch.

    pointer     of the kernel, for the driver
    arguments   of a launch, of which types and sizes count
    """

    __slots__ = "address", "held", "pack", "places", "pointer", "wholes"

    def __init__(self, pointer, arguments):
        codes = [_code(a) for a in arguments]
        ends = np.cumsum([struct.calcsize("=" + code) for code in codes])
        self.pointer, self.held = pointer, bytearray(int(ends[-1]))
        self.pack = struct.Struct("=" + "".join(codes)).pack_into
        begin = np.frombuffer(self.held, np.uint8).ctypes.data
        self.places = begin + np.append(0, ends[:-1])
        self.address = self.places.ctypes.data
        self.wholes = [i for i, code in enumerate(codes) if "s" in code]

    def launch(self, blocks, threads, arguments, shared_bytes):
        """Whether the driver was asked: not for arguments of other types, and ints that C's cannot hold.

        Raises CUDADriverError.
        """
        array, stream = cupy.ndarray, cupy.cuda.get_current_stream().ptr
        values = [a.data.ptr if isinstance(a, array) else a for a in arguments]
        for i in self.wholes:
            values[i] = values[i].tobytes()
        try:
            self.pack(self.held, 0, *values)
        except struct.error:
            return False
        cupy.cuda.driver.launchKernel(self.pointer, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, self.address, 0)
        return True


def _code(a):
    """How an argument is packed."""
    if isinstance(a, cupy.ndarray):
        return "q"
    return CODES.get(type(a)) or f"{a.nbytes}s{-a.nbytes % WORD}x"


def remember(function, arguments):
    """CuPy has launched a kernel in this thread, which the driver is asked for from now on; nothing for stand-ins."""
    compiled = getattr(function, "kernel", None)
    if compiled is not None and function not in thread.layouts and arguments and all(map(_is_plain, arguments)):
        thread.layouts[function] = Layout(compiled.ptr, arguments)


def _is_plain(a):
    """Whether an argument is an array of the device, a number or a struct."""
    return type(a) is int or isinstance(a, (np.generic, cupy.ndarray)) or (type(a) is np.ndarray and a.dtype.names)
