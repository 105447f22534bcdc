"""Small arrays of the host on their way to a GPU, through pinned memory that is kept.

CuPy takes pinned memory for every copy, makes an event and looks which earlier ones are over: several calls of CUDA's,
where one is needed. Source: CUDA runtime API, cudaMemcpyAsync, which reads pinned memory after it has returned.
"""

from threading import Lock

import numpy as np

LARGEST = 1 << 18  # bytes of an array
BLOCK, MOST, APART = 1 << 20, 32, 64  # bytes of a block, blocks of a device; at whose multiples arrays begin
KINDS = "biufc"  # of numbers
_rings, _making = {}, Lock()  # by device


def to_device(array, cupy):
    """An array of the host on the current device, as `cupy.asarray` gives it; waits for nothing.

    What is large, not contiguous or no array of plain numbers is CuPy's business, and so are streams other than the
    default one: they may be recorded, and what a graph reads must stay.
    """
    suited = type(array) is np.ndarray and 0 < array.nbytes <= LARGEST and array.ndim and array.flags.c_contiguous
    if not suited or array.dtype.kind not in KINDS or not array.dtype.isnative or cupy.cuda.get_current_stream().ptr:
        return cupy.asarray(array)
    device = cupy.cuda.runtime.getDevice()
    with _making:
        ring = _rings[device] = _rings.get(device) or _Ring(cupy)
    out = cupy.ndarray(array.shape, array.dtype)
    ring.copy(array, out)
    return out


class _Ring:
    """Blocks of pinned memory, used one after the other; one whose copies are not over is passed by another."""

    def __init__(self, cupy):
        self.cupy, self.lock, self.blocks, self.used = cupy, Lock(), [_Block(cupy)], 0

    def copy(self, array, out):
        runtime, size = self.cupy.cuda.runtime, array.nbytes
        with self.lock:
            if self.used + size > BLOCK:
                self._next()
            block, begin = self.blocks[0], self.used
            block.entries[begin : begin + size] = array.reshape(-1).view(np.uint8)
            self.used += -(-size // APART) * APART
            source = block.memory.ptr + begin
            runtime.memcpyAsync(out.data.ptr, source, size, runtime.memcpyHostToDevice, 0)

    def _next(self):
        """The block that was used longest ago to the front, or a new one."""
        self.blocks[0].end.record()
        if len(self.blocks) < MOST and not (len(self.blocks) > 1 and self.blocks[-1].end.done):
            self.blocks.insert(0, _Block(self.cupy))
        else:
            self.blocks.insert(0, self.blocks.pop())
            self.blocks[0].end.synchronize()
        self.used = 0


class _Block:
    """Pinned memory, and an event behind the last copy from it."""

    def __init__(self, cupy):
        self.memory = cupy.cuda.alloc_pinned_memory(BLOCK)
        self.entries = np.frombuffer(self.memory, np.uint8, BLOCK)
        self.end = cupy.cuda.Event(disable_timing=True)
