"""What a device has: multiprocessors, a compute capability, and shared memory for a thread block."""

from functools import cache

RESERVED_BYTES = 4 << 10  # of a block's shared memory, left to static variables and the compiler
FEW_RESERVED_BYTES = 2 << 10  # the same, for kernels with few static variables


@cache
def multiprocessors(device):
    """How many the device of this number has."""
    import cupy

    return cupy.cuda.Device(device).attributes["MultiProcessorCount"]


@cache
def compute_capability(device):
    """Its version as text, "90" for 9.0."""
    import cupy

    return cupy.cuda.Device(device).compute_capability


@cache
def most_shared(device):
    """Bytes of shared memory that a thread block can have there, the static included."""
    import cupy

    return cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]


def shared_limit(device, reserved=RESERVED_BYTES):
    """Bytes of dynamic shared memory that a thread block can have there, beside `reserved` for the static."""
    return most_shared(device) - reserved
