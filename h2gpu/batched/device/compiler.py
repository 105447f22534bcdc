"""Find, hash, compile and remember the CUDA sources.

    kernel("products/gemm.cuh", "gemm", np.float64, 64, 64)   →   the function gemm<double, 64, 64>, ready to launch

One NVRTC program per template argument list: it holds one `#include` and nothing else but a caller's definitions. What
was compiled ahead is taken from there (machine_code.py). CuPy keeps the other results on disk under a key that ignores
included files, so the hash of those travels in the options.
"""

import hashlib
import importlib.util
import os
import re
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from h2gpu.batched.device import machine_code

NAMES = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex64): "Complex<float>",
    np.dtype(np.complex128): "Complex<double>",
}
STANDARD = "-std=c++17"
ALL_DEVICE = "-default-device"  # without it NVRTC 13.0 takes generic lambdas for functions of the host
IN_MEMORY = "CUPY_CACHE_IN_MEMORY"
_functions = {}  # by device, header, full name, definitions


@cache
def source_folder():
    """The folder of the CUDA sources: the installed package h2gpu.kernels, else kernels/ beside the package."""
    spec = importlib.util.find_spec("h2gpu.kernels")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    folders.append(Path(__file__).resolve().parents[3] / "kernels")
    for folder in map(Path, folders):
        if (folder / "common").is_dir():
            return folder
    raise FileNotFoundError(f"h2gpu: no CUDA sources in {', '.join(map(str, folders))}; reinstall the package")


@cache
def sources(header):
    """{name: text} of a header and all of ours that it includes, itself first."""
    found, left = {}, [header]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = (source_folder() / name).read_text(encoding="utf-8")
            left += re.findall(r'^#include "(.+)"', found[name], re.MULTILINE)
    return found


@cache
def source_hash(header):
    """A hash over the names and contents of a header and of all that it includes."""
    return hashlib.sha256(repr(sorted(sources(header).items())).encode()).hexdigest()[:16]


def qualified(header, instance):
    """An instance by its full name: the folders of kernels/ are namespaces."""
    return f"{_room(header)}::{instance}"


def _room(header):
    return header.partition("/")[0]


def expression(name, *arguments):
    """The C++ name of a template instance in its room: types by their dtype, numbers and truth values as they are."""
    words = [_word(argument) for argument in arguments]
    return f"{name}<{', '.join(words)}>" if words else name


def _word(argument):
    if isinstance(argument, (bool, np.bool_)):
        return "true" if argument else "false"
    if isinstance(argument, (int, np.integer)):
        return str(int(argument))
    return NAMES[np.dtype(argument)]


def options(header):
    """The compiler's options, the same for every instance of a header."""
    return STANDARD, ALL_DEVICE, f"-I{source_folder()}", f"-DH2GPU_SOURCES=0x{source_hash(header)}"


def kernel(header, name, *arguments, shared_bytes=0, definitions=()):
    """The compiled instance name<arguments…> of kernels/<header> for the current device.

    shared_bytes   dynamic shared memory that launches will ask for; above 48 KiB it must be announced
    definitions    C++ texts to stand behind the header in its namespace, that the arguments may name

    Raises ValueError, with the first error and its place, where the compiler refuses a program with definitions.
    """
    import cupy

    return _announced(cupy.cuda.runtime.getDevice(), header, name, arguments, shared_bytes, definitions)


@lru_cache(maxsize=4096)
def _announced(device, header, name, arguments, shared_bytes, definitions):
    """The function, and its shared memory announced, once for each size asked for."""
    function = _function(device, header, qualified(header, expression(name, *arguments)), definitions)
    if shared_bytes > function.max_dynamic_shared_size_bytes:
        function.max_dynamic_shared_size_bytes = shared_bytes
    return function


def _function(device, header, instance, definitions):
    """Compiled ahead, or once a process and device; `device` is the current one."""
    key = device, header, instance, definitions
    if key not in _functions:
        ready = None if definitions else machine_code.function(device, source_folder(), member(header, instance))
        _functions[key] = ready or _compiled(header, instance, definitions)
    return _functions[key]


def _compiled(header, instance, definitions):
    """An instance compiled for the current device, or from CuPy's memory on disk where that can be read and written."""
    import cupy

    def function():
        module = cupy.RawModule(code=source, options=options(header), name_expressions=(instance,))
        return module.get_function(instance)

    source = program(header, definitions)
    try:
        try:
            return function()
        except OSError:  # a full disk, a folder that is not ours
            with _without_disk():
                return function()
    except cupy.cuda.compiler.CompileException as error:
        if not definitions:
            raise
        raise ValueError(first_error(error.get_message())) from None


@contextmanager
def _without_disk():
    """CuPy compiles and remembers nothing; it reads its environment at each compilation."""
    before = os.environ.get(IN_MEMORY)
    os.environ[IN_MEMORY] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[IN_MEMORY]
        else:
            os.environ[IN_MEMORY] = before


def loaded():
    """The (header, name expression) of every instance that this process has loaded, but those with definitions."""
    return sorted({(header, name.partition("::")[2]) for _, header, name, definitions in _functions if not definitions})


def member(header, instance):
    """What an instance, by its full name, is called among those that were compiled ahead."""
    return machine_code.member((STANDARD, ALL_DEVICE), header, instance, source_hash(header))


def program(header, definitions=()):
    """The text that is compiled: definitions belong to the room, arguments of an instance are looked up in it."""
    room = _room(header)
    inside = [f"namespace {room} {{", *definitions, "}"] if definitions else []
    return "\n".join([f'#include "{header}"', *inside, f"using namespace {room};", ""])


def first_error(log):
    """The line of a compiler's log that says what is wrong, after the name that a #line directive gave to its text."""
    found = [line.strip() for line in log.splitlines() if ": error: " in line]
    return found[0].replace(": error: ", ": ") if found else log.strip().partition("\n")[0]
