"""A launch whose arguments were laid out once: an array for the result, the addresses, and the driver is asked.

Through CuPy, which turns every argument into C's anew, host and driver take 3 µs more, of 9 for a small product.
"""

import threading
from functools import partial

import cupy
import numpy as np

from h2gpu.batched.device import launch
from h2gpu.batched.device.driver import thread

ARGUMENT = 2  # words of 8 bytes: none is larger than a complex number


class Direct:
    """A `Ready` launch on arrays and a new one, the result: f(head…, result, after…, numbers…, behind…).

    head            None for each of the arrays, in their order, and numbers between them
    after, behind   numbers     shape, dtype   of the result     holds   arrays whose addresses are among the numbers

    For the device that is current when it is made. The first launch of a kernel in a thread is CuPy's, which makes the
    context current; and so are those that are recorded, and all where kernels are not the driver's.
    """

    __slots__ = "address", "after", "ask", "behind", "device", "dtype", "function", "head", "holds"
    __slots__ += "lock", "places", "ready", "result", "shape", "starts", "words"

    def __init__(self, ready, shape, dtype, head, after=(), behind=(), holds=()):
        self.ready, self.shape, self.dtype, self.lock = ready, shape, dtype, threading.Lock()
        self.head, self.after, self.behind, self.holds = head, after, behind, holds
        self.device = cupy.cuda.runtime.getDevice()
        numbers = [np.int32(a) if type(a) is int else a for a in (*after, *ready.numbers, *behind)]
        arguments = [*head, None, *numbers]
        known = [(place, number) for place, number in enumerate(arguments) if number is not None]
        compiled = getattr(ready.function, "kernel", None)
        plain = all(isinstance(number, np.generic) and number.nbytes <= 8 * ARGUMENT for _, number in known)
        self.function = ready.function if plain and compiled is not None and ready.blocks else None
        if self.function is not None:
            grid = ready.blocks, 1, 1, ready.threads, 1, 1, ready.shared_bytes
            self.ask = partial(cupy.cuda.driver.launchKernel, compiled.ptr, *grid)
        memory = np.zeros((len(arguments), ARGUMENT), np.int64)
        for place, number in known if plain else ():
            memory[place].view(np.uint8)[: number.nbytes] = np.frombuffer(number.tobytes(), np.uint8)
        *self.starts, self.result = [ARGUMENT * place for place, number in enumerate(arguments) if number is None]
        lines = memory.ctypes.data + ARGUMENT * memory.itemsize * np.arange(len(arguments))
        self.words, self.places = memoryview(memory.reshape(-1)), lines.astype(np.int64)
        self.address = self.places.ctypes.data

    def __call__(self, *arrays):
        out = cupy.ndarray(self.shape, self.dtype)
        self.launch(out, *arrays)
        return out

    def launch(self, out, *arrays):
        """The launch alone, into `out`."""
        if self.function not in thread.layouts or launch._record is not None:
            self._by_cupy(iter(arrays), out)
            return
        words, stream = self.words, cupy.cuda.get_current_stream(self.device).ptr
        with self.lock:  # the driver reads the words before it returns
            for start, array in zip(self.starts, arrays):
                words[start] = array.data.ptr
            words[self.result] = out.data.ptr
            self.ask(stream, self.address, 0)

    def _by_cupy(self, arrays, out):
        head = [next(arrays) if number is None else number for number in self.head]
        self.ready(*head, out, *self.after, behind=self.behind)
