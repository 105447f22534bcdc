"""The run-time compiler by itself: CUDA C++ to machine code with no GPU and no driver, through the NVRTC wheel."""

import ctypes
import glob
import multiprocessing
import os
import re
import site
import sysconfig
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from hashlib import sha256

import ptx

from h2gpu.batched.device import compiler

CUPYS_OWN = "-ftz=true"  # option that CuPy adds to ours
UNOPTIMIZED = "-G"  # an eighth of the time: says whether instances compile, not what they spill
TOGETHER = 12  # instances in one such program: half the time again


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
    """(size of the machine code, compiler's log with ptxas's report, PTX); RuntimeError with the log where it fails."""
    nvrtc, program = library(), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"instances.cu", 0, None, None)
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    encoded = [option.encode() for option in options]
    status = nvrtc.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
    log, size = _text(nvrtc, "ProgramLog", program), ctypes.c_size_t()
    if status:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        raise RuntimeError(log)
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = _text(nvrtc, "PTX", program)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return size.value, log, code


def _text(nvrtc, what, program):
    """A text that the compiler has made of a program."""
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.value.decode()


def spilled(case):
    """The most bytes that ptxas spills in a function of (architecture, header, name expressions, options).

    Raises AssertionError where some ptxas is known to make wrong code of it.
    """
    architecture, header, names, more = case
    options = [*compiler.options(header), CUPYS_OWN, f"-arch={architecture}", "--ptxas-options=-v", *more]
    names = [compiler.qualified(header, name) for name in names]
    size, log, code = compile_cubin(compiler.program(header), options, names)
    assert size
    lost = [] if UNOPTIMIZED in more else ptx.lost_signs(code)
    assert not lost, f"ptxas 13.0 loses a sign in {names}: {lost}; see ptx.py"
    return max(map(int, re.findall(r"(\d+) bytes spill stores", log)))


def unoptimized(architecture, instances):
    """Cases that compile every one of (header, name expression), TOGETHER of one header in a program."""
    names_of = {}
    for header, name in instances:
        names_of.setdefault(header, []).append(name)
    return [
        (architecture, header, tuple(names[i : i + TOGETHER]), (UNOPTIMIZED,))
        for header, names in names_of.items()
        for i in range(0, len(names), TOGETHER)
    ]


def digest(case):
    """What the result of a case depends on."""
    return sha256(
        repr((library()._name, *case, *compiler.options(case[1])[:1], compiler.source_hash(case[1]))).encode()
    ).hexdigest()


def all_spilled(cases, config):
    """`spilled` of every case, on all cores, and remembered by pytest until a source changes.

    NVRTC compiles one program at a time in a process: processes, not threads.
    """
    memory = getattr(config, "cache", None)
    known = memory.get("nvrtc/spilled", {}) if memory else {}
    keys = [digest(case) for case in cases]
    new = [i for i, key in enumerate(keys) if key not in known]
    if new:
        with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn")) as pool:
            results = pool.map(spilled, [cases[i] for i in new])
            known |= {keys[i]: result for i, result in zip(new, results)}
    if new and memory:
        memory.set("nvrtc/spilled", known)
    return [known[key] for key in keys]
