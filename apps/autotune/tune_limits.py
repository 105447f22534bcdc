"""What a device admits, and how many registers a kernel may take of it; see apps/autotune/tune_space.py."""

from dataclasses import dataclass

import numpy as np

from h2gpu.batched.device import tuning

RESIDENT = (4, 8, 10, 12, 16, 20, 24, 32)  # warps of a multiprocessor
TRIED_RESIDENT = 3  # the largest that registers admit
OTHER_WORDS = 48  # registers of a lane beside those that hold parts of matrices
SLACK = 1.1  # the estimate of registers may be so much too large
WARP = 32
UNLIMITED = 10**9
SIZE = "size"


@dataclass(frozen=True)
class Hardware:
    """Limits of a device; the numbers are an H200's."""

    lane_registers: int = 255
    registers: int = 1 << 16  # of a multiprocessor
    threads: int = 1024  # of a block
    shared_bytes: int = 227 << 10  # of a block

    @classmethod
    def here(cls):
        """The current device's."""
        import cupy

        found = cupy.cuda.Device().attributes
        return cls(
            registers=found["MaxRegistersPerMultiprocessor"],
            threads=found["MaxThreadsPerBlock"],
            shared_bytes=found["MaxSharedMemoryPerBlockOptin"],
        )


def resident_warps(words, block_warps, hardware):
    """Warps of a multiprocessor that registers admit, the largest few, whole blocks of them."""
    need = min(hardware.lane_registers, words + OTHER_WORDS)
    if words + OTHER_WORDS > SLACK * hardware.lane_registers:
        return []
    admitted = [r for r in RESIDENT if r * WARP * need <= SLACK * hardware.registers and r >= block_warps]
    return admitted[-TRIED_RESIDENT:] or [block_warps] * (block_warps * WARP * need <= SLACK * hardware.registers)


def limits(row):
    """The row's limits as numbers, by name without `max_`, and the `size` that it is for."""
    return {k.removeprefix(tuning.LIMIT): int(v) for k, v in row.items() if k.startswith((tuning.LIMIT, SIZE))}


def itemsize(row):
    """Bytes of a number of the row's precision."""
    return np.dtype(row["dtype"]).itemsize
