"""CuPy's memory of compiled kernels on disk under faults: damaged, shared by processes of which some are killed.

Needs CuPy and NVRTC, no GPU: what CuPy asks a device is answered here (sm_90), and what a module is given to load is
the result. It must be the machine code that comes without any memory, whatever lies in the folder.
"""

import errno
import os
import re
import signal
import tempfile
import time
from functools import cache
from importlib.util import find_spec

from battery import battery, ended, expect, in_child

from h2gpu.batched.device import compiler

KERNELS = tuple(("products/axpy.cuh", f"products::axpy<{kind}>") for kind in ("float", "double"))
PROCESSES = 16


class Module:
    """What CuPy loads machine code into."""

    mapping = code = None

    def load(self, code):
        self.code = bytes(code)

    def _set_mapping(self, mapping):
        self.mapping = mapping


@cache
def cupys():
    """CuPy's compiler, which takes this machine for one with an sm_90."""
    from types import SimpleNamespace

    from cupy.cuda import compiler as theirs

    theirs.function = SimpleNamespace(Module=Module)
    theirs._preprocess = lambda *_: ""
    theirs._get_arch_for_options_for_nvrtc = lambda arch=None: ("-arch=sm_90", "cubin")
    return theirs


def code(folder, kernel):
    """What would be loaded, without the numbers of the compilation in its names; OSError: the folder cannot be used."""
    from cupy.cuda._compiler_cache import DiskKernelCacheBackend

    header, instance = kernel
    theirs, given = cupys(), {"arch": "90", "name_expressions": (instance,)}
    theirs._set_kernel_cache_backend(DiskKernelCacheBackend(str(folder)))
    module = theirs._compile_module_with_cache(compiler.program(header), compiler.options(header), **given)
    return re.sub(rb"_cu_[0-9a-f]{8}_\d+", b"", module.code)


@cache
def right(kernel):
    """The same from a folder that nobody touches."""
    with tempfile.TemporaryDirectory() as folder:
        return code(folder, kernel)


def same(folder, number):
    kernel = KERNELS[number % len(KERNELS)]
    try:
        found = code(folder, kernel)
    except OSError as error:  # then the kernel is compiled in memory
        expect(error.errno in (errno.EISDIR, errno.EACCES, errno.ENOTDIR), f"{error}")
        return True
    return found == right(kernel)


if find_spec("cupy") is not None:

    @battery("faults: kept kernels damaged")
    def damaged(rng, folder):
        for number in range(len(KERNELS)):
            expect(same(folder, number), "a new memory has other code")
        how = ("bytes", "short", "empty", "long", "folder")[rng.integers(5)]
        for path in sorted(folder.iterdir()):
            data = bytearray(path.read_bytes())
            if how == "bytes":
                for place in rng.integers(len(data), size=rng.integers(1, 9)):
                    data[place] ^= int(rng.integers(1, 256))
            elif how in ("short", "empty"):
                del data[int(rng.integers(len(data))) if how == "short" else 0 :]
            elif how == "long":
                data += rng.bytes(100)
            path.unlink()
            path.mkdir() if how == "folder" else path.write_bytes(data)
        for number in range(len(KERNELS)):
            expect(same(folder, number), f"{how}: other code is loaded")
        return how

    @battery("faults: kept kernels shared")
    def shared(rng, folder):
        for kernel in KERNELS:
            right(kernel)
        children = [in_child(lambda k=k: int(not same(folder, k))) for k in range(PROCESSES)]
        killed = set(rng.choice(children, rng.integers(5), replace=False).tolist())
        time.sleep(rng.uniform(0, 0.3))
        for child in killed:
            os.kill(child, signal.SIGKILL)
        statuses = [(child, ended(child)) for child in children]
        expect(all(s == 0 or (c in killed and s == -signal.SIGKILL) for c, s in statuses), f"{statuses}")
        expect(all(same(folder, k) for k in range(len(KERNELS))), "other code afterwards")
        return f"{sum(s != 0 for _, s in statuses)} of {PROCESSES} killed"
