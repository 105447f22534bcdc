"""Kernels that were compiled ahead: machine code for an architecture, in one archive beside the sources.

    kernels/machine_code/sm_90.zip   a member for each instance, its machine code, with the function's name as comment

A member is named by the hash of everything that it was compiled from. Sources that were changed find nothing, and are
compiled where they are needed. `h2gpu.apps.packaging.compile_ahead` writes archives.
"""

import hashlib
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from h2gpu.batched.device.limits import compute_capability

_taken = []  # names of members in use


def member(options, header, instance, sources):
    """The name in an archive of an instance of a header; `sources` is the hash of the header and what it includes."""
    return hashlib.sha256("\n".join((*options, header, instance, sources)).encode()).hexdigest()[:32]


def archive(folder, architecture):
    """The file for an architecture, "sm_90"."""
    return Path(folder) / "machine_code" / f"{architecture}.zip"


def usable(capability, present):
    """Those of `present` whose machine code runs on a device of a compute capability "90", the best first.

    Machine code runs on later devices of the same major number (CUDA Programming Guide, binary compatibility).
    """
    major, minor = int(capability[:-1]), int(capability[-1])
    found = [(int(name[3:-1]), int(name[-1]), name) for name in present]
    return [name for m, n, name in sorted(found, reverse=True) if m == major and n <= minor]


@cache
def opened(folder, capability):
    """The archive for a device as an open ZipFile, or None where there is none that can be read."""
    present = [path.stem for path in Path(folder, "machine_code").glob("sm_*.zip")]
    for architecture in usable(capability, present):
        try:
            return zipfile.ZipFile(archive(folder, architecture))
        except (OSError, zipfile.BadZipFile):
            continue
    return None


def read(folder, capability, name):
    """(machine code, name of the function in it) of a member; None where it is absent or damaged."""
    code = opened(folder, capability)
    try:
        return (code.read(name), code.getinfo(name).comment.decode()) if code else None
    except Exception:  # absent, damaged, no LZMA in this Python: whatever it is, the kernel can be compiled
        return None


def function(device, folder, name):
    """A member as a function of the current device, whose number is given; None where it is absent or not accepted."""
    found = read(folder, compute_capability(device), name)
    if found is None:
        return None
    import cupy

    try:
        with tempfile.TemporaryDirectory(prefix="h2gpu-") as place:  # CuPy loads machine code from files alone
            path = Path(place) / "kernel.cubin"
            path.write_bytes(found[0])
            loaded = cupy.RawModule(path=str(path)).get_function(found[1])  # loads it at once
    except (OSError, cupy.cuda.driver.CUDADriverError):  # no room; made by a compiler that is too new for the driver
        return None
    _taken.append(name)
    return loaded


def taken():
    """How many functions came from archives in this process."""
    return len(_taken)
