"""The run-time compiler by itself: CUDA C++ to machine code with no GPU and no driver, through the NVRTC wheel."""

import ctypes
import glob
import os
import site
import sysconfig
from functools import cache
from typing import NamedTuple

CUPYS_OWN = "-ftz=true"  # option that CuPy adds to ours


class Compiled(NamedTuple):
    """What became of a program: machine code, PTX, the log with ptxas's report, {name expression: function's name}."""

    code: bytes
    ptx: str
    log: str
    names: dict


@cache
def library():
    """libnvrtc of the wheel nvidia-cuda-nvrtc, or of the system; None where there is none."""
    folders = {*site.getsitepackages(), sysconfig.get_paths()["purelib"]}
    found = [path for folder in folders for path in glob.glob(f"{folder}/nvidia/*/lib/libnvrtc.so.*")]
    for name in (*sorted(found, reverse=True), "libnvrtc.so"):
        if "builtins" in name or ".alt." in name:
            continue
        try:
            for builtins in glob.glob(f"{os.path.dirname(name)}/libnvrtc-builtins.so.*") if "/" in name else ():
                ctypes.CDLL(builtins)  # which 13.0 does not find by itself
            return _declared(ctypes.CDLL(name))
        except OSError:
            continue
    return None


def _declared(nvrtc):
    """The library with the types that ctypes cannot guess."""
    nvrtc.nvrtcGetLoweredName.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)]
    return nvrtc


def compiled(source, options, names):
    """A program compiled for the name expressions of its kernels. Several threads may compile at once.

    Raises RuntimeError with the compiler's log where it fails.
    """
    nvrtc, program = library(), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"instances.cu", 0, None, None)
    try:
        for name in names:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        encoded = [option.encode() for option in options]
        status = nvrtc.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
        log = _bytes(nvrtc, "ProgramLog", program)[:-1].decode()
        if status:
            raise RuntimeError(log)
        code, ptx = _bytes(nvrtc, "CUBIN", program), _bytes(nvrtc, "PTX", program)[:-1].decode()
        return Compiled(code, ptx, log, {name: _lowered(nvrtc, program, name) for name in names})
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _bytes(nvrtc, what, program):
    """A result of a compiled program."""
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, found)
    return found.raw


def _lowered(nvrtc, program, name):
    """The mangled name of a kernel."""
    found = ctypes.c_char_p()
    nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(found))
    return found.value.decode()
