"""How much memory there is, how much was used, and how people write it: 8G, 500M, 1.5GiB.

What does not fit is refused before it is allocated, with the numbers: `require`.
"""

import ctypes
import os
import re
import sys
from functools import cache
from pathlib import Path

from h2gpu.texts import brief

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY_UNITS = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
PIECE_PART, LEAST_PIECE = 128, 1 << 25  # of a device's memory, one part in so many, and bytes at least: a piece
TRIM_THRESHOLD, MMAP_MAX = -1, -4  # of glibc's mallopt
SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)


def parse_size(text):
    """Bytes of a size such as "8G" (10⁹), "1.5GiB" (2³⁰) or "500000". Raises ValueError.

    >>> parse_size("1.5GiB") == 1.5 * 2**30
    True
    """
    match = SIZE.fullmatch(text)
    units = {**UNITS, **BINARY_UNITS}
    if match is None or match[2].lower() not in units or float(match[1]) == 0:
        raise ValueError(f"expected a size such as 8G, 500M or 1.5GiB, got {brief(text, 40)}")
    return int(float(match[1]) * units[match[2].lower()])


def readable(size):
    """Bytes in three digits and decimal units.

    >>> readable(1234567)
    '1.23 MB'
    """
    size = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB" if size < 999.5 else f"{size:,.0f} TB"


def free_memory(xp=None):
    """Bytes this process may still allocate: what the system has free, within the limits set for us.

    xp   array module: with CuPy the memory of the current device and what its pool holds unused; else main memory
    """
    return max(0, min(_system(), _control_group(), _address_space()) if _on_host(xp) else _device(xp))


def require(needed, xp, what, advice=""):
    """MemoryError with the numbers when `needed` bytes for arrays of the module xp are more than are free."""
    free = free_memory(xp)
    if needed > free:
        where = "" if _on_host(xp) else " on the device"
        raise MemoryError(
            f"{what}: expected at most {readable(free)}, which is free{where}, got {readable(needed)}{advice}"
        )


def piece_entries(xp, on_host):
    """How many float64 of a piece: matrices that are made together, used and given back, where all do not fit.

    xp        array module: with CuPy as many as piece_bytes hold
    on_host   so many on the CPU, whose caches tell how many serve
    """
    return on_host if _on_host(xp) else piece_bytes(xp) // 8


def piece_bytes(cupy):
    """Bytes of a piece on a GPU: a PIECE_PART of the memory of the current device, or of what its pool may have.

    1.2 GB of an H200, 67 MB of 8 GB. Pieces of 0.27 GB left an H200 waiting for its host, which takes some 0.7 ms for
    each.
    """
    return max(LEAST_PIECE, _whole_device(cupy) // PIECE_PART)


class StreamOrderedPool:
    """CuPy allocates from the driver's stream-ordered pool of the current device, from now on.

    Where free memory is in pieces it makes a large request of several, where CuPy's own pool takes new memory; and it
    knows its peaks. What is free stays with it, for the next request, until `restart`.
    Raises RuntimeError where the device has no such pool.
    """

    RELEASE_THRESHOLD, RESERVED_HIGH, USED_HIGH = 4, 6, 8  # of cudaMemPoolAttr
    SUPPORTED = 115  # cudaDevAttrMemoryPoolsSupported

    def __init__(self, cupy):
        self._runtime, device = cupy.cuda.runtime, cupy.cuda.Device().id
        if not self._runtime.deviceGetAttribute(self.SUPPORTED, device):
            raise RuntimeError(f"stream-ordered memory: device {device} has no pool for it")
        self._pool, self._handle = cupy.cuda.MemoryAsyncPool(), self._runtime.deviceGetDefaultMemPool(device)
        self._runtime.memPoolSetAttribute(self._handle, self.RELEASE_THRESHOLD, 2**64 - 1)
        cupy.cuda.set_allocator(self._pool.malloc)

    def restart(self):
        """Give back what is free, and let the peaks be those from now on."""
        self._pool.free_all_blocks()
        for peak in (self.RESERVED_HIGH, self.USED_HIGH):
            self._runtime.memPoolSetAttribute(self._handle, peak, 0)

    @property
    def peak(self):
        """Most bytes that were in use at once."""
        return self._runtime.memPoolGetAttribute(self._handle, self.USED_HIGH)

    @property
    def peak_reserved(self):
        """Most bytes that were taken from the device at once."""
        return self._runtime.memPoolGetAttribute(self._handle, self.RESERVED_HIGH)


def keep_freed():
    """Main memory that this process frees stays with it from now on, for its next arrays.

    glibc gives arrays of 32 MB or more back at once, and the next one takes new pages, which the system clears first:
    of 4.8 s of a compression of 2²⁵ sites on a GPU that was 1.0 s. With this it is 0.3 of 4.3 s, and the peak 5.8 for
    5.0 GB. Nothing happens with other C libraries. Source: mallopt(3), M_MMAP_MAX and M_TRIM_THRESHOLD.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # musl, macOS, Windows
        return
    mallopt(MMAP_MAX, 0)
    mallopt(TRIM_THRESHOLD, -1)


def peak_memory():
    """Most bytes of main memory this program ever held; None where the system does not say.

    Linux keeps the peak of a process through `exec`, so that a small program started by a large one would seem large:
    the peak of the address space (VmHWM) begins anew.
    """
    try:
        return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
    except (OSError, TypeError):  # not Linux
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _on_host(xp):
    return xp is None or xp.__name__ == "numpy"


def _device(cupy):
    """What the device has free and what the memory pool would give again, within the limit set for the pool."""
    pool = _pool(cupy)
    free = cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
    limit = _limit(cupy, pool)
    return min(free, limit - pool.used_bytes()) if limit else free


def _whole_device(cupy):
    """Bytes that the current device has, or that its pool may take of it."""
    total = _total(cupy, cupy.cuda.runtime.getDevice())
    return min(total, _limit(cupy, _pool(cupy)) or total)


@cache
def _total(cupy, device):
    """Bytes of the current device, whose number this is: asked for once, for the driver takes its time."""
    return cupy.cuda.runtime.memGetInfo()[1]


def _limit(cupy, pool):
    """The limit set for the pool, or 0; CuPy's own alone can have one."""
    return pool.get_limit() if pool is cupy.get_default_memory_pool() else 0


def _pool(cupy):
    """The stream-ordered pool where CuPy allocates from one, else CuPy's own."""
    owner = getattr(cupy.cuda.get_allocator(), "__self__", None)
    return owner if isinstance(owner, cupy.cuda.MemoryAsyncPool) else cupy.get_default_memory_pool()


def _system():
    """MemAvailable of Linux: free plus caches that give way; elsewhere half of the main memory."""
    try:
        return 1024 * int(re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())[1])
    except (OSError, TypeError):
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (AttributeError, OSError, ValueError):  # Windows
            return sys.maxsize


def _control_group():
    """What a container's limit leaves (control groups, version 2); its file cache gives way too."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        if limit == "max":
            return sys.maxsize
        used = int((group / "memory.current").read_text())
        cache = re.search(r"^inactive_file (\d+)", (group / "memory.stat").read_text(), re.MULTILINE)
        return int(limit) - used + int(cache[1] if cache else 0)
    except (OSError, ValueError):
        return sys.maxsize


def _address_space():
    """What `ulimit -v` leaves."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return sys.maxsize
        return limit - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError):
        return sys.maxsize
