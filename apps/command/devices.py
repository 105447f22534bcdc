"""Where a command computes: the CPU, or the GPU that CuPy finds."""

import atexit
import logging
import os
import platform
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from h2gpu.apps.command.command import FailureError
from h2gpu.memory import StreamOrderedPool, free_memory, readable

logger = logging.getLogger("h2gpu")


class Device:
    """The CPU."""

    kind, arrays, synchronize = "cpu", np, None

    @property
    def name(self):
        """What it calls itself."""
        return platform.processor() or platform.machine()

    def free_memory(self):
        """Bytes that may still be allocated on it."""
        return free_memory(self.arrays)

    def take(self, array):
        """A NumPy array as an array of this device."""
        return array

    def peak_memory(self):
        """Bytes of its own memory that were held at most; None where that is main memory."""
        return None


class CudaDevice(Device):
    """The current CUDA device, through CuPy. Raises FailureError where there is none that works."""

    kind = "cuda"

    def __init__(self):
        _usable_cache()
        try:
            import cupy

            self.arrays, self._runtime = cupy, cupy.cuda.runtime
            self.synchronize = cupy.cuda.Device().synchronize
            if int(cupy.arange(3).sum()) != 3:
                raise RuntimeError("a sum came out wrong")
        except Exception as error:  # no CuPy, no driver, no device, no memory: CuPy has its own errors for each
            reason = " ".join(str(error).split())
            raise FailureError(
                f"--device cuda: expected CuPy and a CUDA device, got {type(error).__name__}: {reason:.120}; install "
                "with pip install 'h2gpu[cuda13]', or use --device cpu"
            ) from None
        try:
            self._pool = StreamOrderedPool(cupy)
        except RuntimeError:  # an older device: CuPy's own pool, which does not know its peak
            self._pool = None

    @property
    def name(self):
        return self._runtime.getDeviceProperties(self.arrays.cuda.Device().id)["name"].decode()

    def take(self, array):
        return self.arrays.asarray(array)

    def peak_memory(self):
        return self._pool and self._pool.peak_reserved


def _usable_cache():
    """Where CuPy could not remember kernels on disk, it remembers them until this process ends.

    CuPy makes the folder when it is imported, and refuses to be imported where it cannot.
    """
    if find_spec("cupy") is None:
        return
    folder = Path(os.environ.get("CUPY_CACHE_DIR", Path.home() / ".cupy" / "kernel_cache"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            return
    except OSError as error:
        logger.warning("compiled kernels cannot be kept: %s: %s; set CUPY_CACHE_DIR", folder, error.strerror)
    temporary = tempfile.mkdtemp(prefix="h2gpu-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    os.environ["CUPY_CACHE_DIR"] = temporary


def device(name):
    """The device of that name; "auto" is CUDA where it works, else the CPU."""
    if name == "cpu":
        return Device()
    try:
        return CudaDevice()
    except FailureError:
        if name == "cuda":
            raise
        return Device()


def admitted(estimate, limit, device, advice=""):
    """One line on the estimated peak of a job, in bytes, and what it may take: the limit, or what the device has free.

    Raises FailureError when it is more; `advice` names further options that help.
    """
    free = device.free_memory()
    allowed = f"--max-memory {readable(limit)}" if limit else f"{readable(free)} free"
    if estimate > (limit or free):
        raise FailureError(
            f"expected a job within {allowed}, got one of about {readable(estimate)}; thin out the points, raise "
            f"--rtol or --max-memory{advice}"
        )
    return f"estimated peak memory {readable(estimate)} ({allowed})"
