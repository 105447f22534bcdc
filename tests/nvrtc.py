"""The run-time compiler by itself: CUDA C++ to machine code with no GPU and no driver, through the NVRTC wheel."""

import ctypes
import glob
import site
import sysconfig
from functools import cache


@cache
def library():
    """libnvrtc of the wheel nvidia-cuda-nvrtc, or of the system; None where there is none."""
    folders = {*site.getsitepackages(), sysconfig.get_paths()["purelib"]}
    found = [path for folder in folders for path in glob.glob(f"{folder}/nvidia/*/lib/libnvrtc.so.*")]
    for name in (*sorted(found, reverse=True), "libnvrtc.so"):
        if "builtins" in name or ".alt." in name:
            continue
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compile_cubin(source, options, names):
    """(size of the machine code, compiler's log with ptxas's report); RuntimeError with the log where it fails."""
    nvrtc, program = library(), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"instances.cu", 0, None, None)
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    encoded = [option.encode() for option in options]
    status = nvrtc.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    text = log.value.decode()
    if status:
        raise RuntimeError(text)
    return size.value, text
