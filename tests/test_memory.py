"""Sizes as people write them, what is free, and the refusal of what does not fit."""

import platform
import subprocess
import sys

import numpy as np
import pytest
from reference import points_of

import h2gpu
from h2gpu import memory
from h2gpu.covariance import Exponential

COV = Exponential(1.0, 0.1)


def test_sizes():
    assert [memory.parse_size(text) for text in ("8G", "500 MB", "1.5GiB", "12", ".5k")] == [
        8 * 10**9,
        500 * 10**6,
        3 * 2**29,
        12,
        500,
    ]
    for text in ("", "8X", "-1G", "G", "1e9", "inf", "0", "8Gi i"):
        with pytest.raises(ValueError, match="expected a size such as"):
            memory.parse_size(text)
    assert [memory.readable(size) for size in (0, 999, 1000, 2**30, 1.6e16)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "1.07 GB",
        "16,000 TB",
    ]
    assert memory.free_memory() > 0 and memory.peak_memory() > 10**6


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell the peak with that of what started the program")
def test_the_peak_is_of_this_program_not_of_what_started_it():
    held = np.ones(1 << 26)
    tell = "from h2gpu.memory import peak_memory; print(peak_memory())"
    child = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)
    assert int(child.stdout) < held.nbytes <= memory.peak_memory()


FAULTS = """
import resource, sys
import numpy as np
from h2gpu import memory
memory.keep_freed() if sys.argv[1] == "kept" else None
np.ones(1 << 23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    np.ones(1 << 23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's allocator")
def test_freed_memory_that_is_kept_serves_the_next_array():
    """Five more arrays of 64 MB touch no new page, but at least one of 2 MB each 32 times where it goes back."""
    taken = [
        int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "given back")
    ]
    assert taken[0] < 32 <= taken[1] / 5


def test_what_does_not_fit_is_refused_with_the_numbers(monkeypatch):
    monkeypatch.setattr(memory, "_system", lambda: 2_000_000)
    memory.require(2_000_000, np, "a matrix")
    with pytest.raises(MemoryError, match=r"a matrix: expected at most 2 MB, which is free, got 2\.5 MB; give less$"):
        memory.require(2_500_000, np, "a matrix", "; give less")


@pytest.mark.parametrize(("free", "what"), [(10_000, "bases"), (4_000_000, "nearfield")])
def test_matrices_that_do_not_fit_are_not_built(free, what, monkeypatch):
    """Not their bases, nor their nearfield."""
    points = points_of("uniform", 2000, 2)
    monkeypatch.setattr(memory, "_system", lambda: free)
    with pytest.raises(MemoryError, match=f"{what}: expected at most"):
        h2gpu.build(points, COV)
    with pytest.raises(MemoryError, match=r"covariance_matrix: expected at most .* got .*; give fewer points"):
        h2gpu.covariance_matrix(points, COV, 1e-6)


def test_couplings_that_do_not_fit_are_not_evaluated(monkeypatch):
    points = points_of("uniform", 2000, 2)
    A = h2gpu.build(points, COV, leaf_size=16, order=6)
    monkeypatch.setattr(memory, "_system", lambda: A.couplings.nbytes - 1)
    with pytest.raises(MemoryError, match="couplings: expected at most"):
        h2gpu.build(points, COV, leaf_size=16, order=6)


class FakeCuPy:
    """CuPy of a device with 100 bytes free and pools that hold 7 (CuPy's own) and 20 bytes unused."""

    __name__ = "cupy"

    class MemoryAsyncPool:
        free_bytes, malloc, get_limit = lambda self: 20, lambda self, size: None, None

        def free_all_blocks(self):
            self.freed = True

    class OwnPool:
        free_bytes, used_bytes, get_limit = lambda self: 7, lambda self: 5, lambda self: 0

        def malloc(self, size):
            """No memory."""

    def __init__(self, supported=1):
        self.own, self.attributes = self.OwnPool(), {6: 30, 8: 25}
        self.allocator = self.own.malloc
        self.cuda = self.runtime = self
        self.memGetInfo, self.get_allocator = lambda: (100, 200), lambda: self.allocator
        self.get_default_memory_pool, self.deviceGetAttribute = lambda: self.own, lambda *_: supported
        self.Device, self.id, self.deviceGetDefaultMemPool = lambda: self, 0, lambda device: "pool"
        self.memPoolSetAttribute = lambda pool, which, value: self.attributes.update({which: value})
        self.memPoolGetAttribute = lambda pool, which: self.attributes[which]

    def set_allocator(self, allocator):
        self.allocator = allocator


def test_the_pool_in_force_counts():
    """What it holds unused is free; peaks are the driver's."""
    cupy = FakeCuPy()
    assert memory.free_memory(cupy) == 107
    pool = memory.StreamOrderedPool(cupy)
    assert cupy.attributes[4] == 2**64 - 1 and memory.free_memory(cupy) == 120
    assert (pool.peak, pool.peak_reserved) == (25, 30)
    pool.restart()
    assert (pool.peak, pool.peak_reserved) == (0, 0)


def test_a_device_without_stream_ordered_memory_keeps_cupys_pool():
    cupy = FakeCuPy(supported=0)
    with pytest.raises(RuntimeError, match="device 0 has no pool"):
        memory.StreamOrderedPool(cupy)
    assert memory.free_memory(cupy) == 107


@pytest.mark.parametrize(
    ("total", "limit", "entries"), [(1 << 36, 0, 1 << 26), (1 << 36, 1 << 33, 1 << 23), (1 << 30, 0, 1 << 22)]
)
def test_pieces_are_a_small_part_of_what_a_device_has(total, limit, entries):
    """Of what its pool may have where that is less; on a CPU as many as serve its caches."""
    cupy = FakeCuPy()
    cupy.memGetInfo, cupy.getDevice, cupy.own.get_limit = lambda: (100, total), lambda: 0, lambda: limit
    assert memory.piece_entries(cupy, 7) == entries
    assert memory.piece_entries(np, 7) == 7


@pytest.mark.gpu
def test_the_limit_of_the_device_holds():
    """The pool's limit stands for a small device."""
    import cupy

    points, pool = cupy.asarray(points_of("uniform", 20000, 2)), cupy.get_default_memory_pool()
    B = h2gpu.covariance_matrix(points, COV, 1e-4)
    assert B.nbytes < memory.free_memory(cupy)
    limit = pool.get_limit()
    try:
        pool.set_limit(pool.used_bytes() + B.nbytes // 2)
        with pytest.raises(MemoryError, match=r"covariance_matrix: .* free on the device, got .*; give fewer points"):
            h2gpu.covariance_matrix(points, COV, 1e-4)
        with pytest.raises(MemoryError, match=r"bases: .* free on the device"):
            h2gpu.build(points, COV, leaf_size=64, order=8)
    finally:
        pool.set_limit(limit)
