"""A launch whose arguments were laid out once: an array for the result, the addresses, and the driver is asked.

Through CuPy, which turns every argument into C's anew, host and driver take 3 µs more, of 9 for a small product.
"""

import threading

import cupy
import numpy as np

from h2gpu.batched.device import launch

NOTHING = np.int64(0)  # where an address will stand
ARGUMENT = 2  # words of 8 bytes: none is larger than a complex number


class _Devices(threading.local):
    """Those on which CuPy launched something in this thread: their contexts are current there."""

    def __init__(self):
        self.used = set()


_devices = _Devices()


class Direct:
    """A `Ready` launch on arrays and a new one, the result: f(arrays…, before…, result, after…, numbers…, behind…).

    before, after, behind   numbers     shape, dtype   of the result

    For the device that is current when it is made. The first launch of a thread is CuPy's, which makes the context
    current; and so are those that are recorded, and all where kernels are not the driver's.
    """

    __slots__ = "address", "arguments", "device", "dtype", "first", "function", "lock"
    __slots__ += "places", "ready", "shape", "size", "words"

    def __init__(self, ready, shape, dtype, arrays, before=(), after=(), behind=()):
        self.ready, self.shape, self.dtype, self.lock = ready, shape, dtype, threading.Lock()
        self.arguments, self.device = (before, after, behind), cupy.cuda.runtime.getDevice()
        self.first = arrays + len(before)  # place of the result
        numbers = [NOTHING] * arrays + [*before, NOTHING, *after, *ready.numbers, *behind]
        memory = np.zeros((len(numbers), ARGUMENT), np.int64)
        compiled = getattr(ready.function, "kernel", None)
        plain = all(isinstance(number, np.generic) and number.nbytes <= 8 * ARGUMENT for number in numbers)
        self.function = compiled.ptr if plain and compiled is not None and ready.grid[0] else None
        for line, number in zip(memory, numbers if plain else ()):
            line.view(np.uint8)[: number.nbytes] = np.frombuffer(number.tobytes(), np.uint8)
        places = memory.ctypes.data + ARGUMENT * memory.itemsize * np.arange(len(numbers))
        self.words, self.places = memoryview(memory.reshape(-1)), places.astype(np.int64)
        self.address = self.places.ctypes.data
        self.size = (*ready.grid, 1, 1, *ready.block, 1, 1, ready.shared_bytes)

    def __call__(self, *arrays):
        out = cupy.ndarray(self.shape, self.dtype)
        if self.function is None or launch.recording() or self.device not in _devices.used:
            before, after, behind = self.arguments
            self.ready(*arrays, *before, out, *after, behind=behind)
            _devices.used.add(self.device)
            return out
        words, place, stream = self.words, 0, cupy.cuda.get_current_stream().ptr
        with self.lock:  # the driver reads the words before it returns
            for array in arrays:
                words[place] = array.data.ptr
                place += ARGUMENT
            words[ARGUMENT * self.first] = out.data.ptr
            cupy.cuda.driver.launchKernel(self.function, *self.size, stream, self.address, 0)
        return out
