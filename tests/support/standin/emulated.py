"""pytest -p emulated: the GPU routines on the stand-in, their kernels compiled for the CPU and run (support/emulator).

Slow, an instance some seconds to compile and a matrix some more, but the kernels are those of kernels/. Compiled ones
stay in EMULATED, a folder of the environment's choice, until a source changes. With RACES set, slower still, every race
in shared memory is an error (support/emulator/races.h).
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
from functools import cache
from hashlib import sha256
from pathlib import Path

import cupy
import numpy as np
from launched import Kernel as Checked

from h2gpu.batched.device import compiler

EMULATOR = Path(__file__).parents[1] / "emulator"
OPTIONS = "-std=c++20", "-O1", "-w", "-fPIC", "-fno-gnu-unique", "-fno-strict-aliasing", "-ffp-contract=off"
WATCHED = ("-fsanitize=thread", "-g", "-DRACES") if os.environ.get("RACES") else ()
ONE = threading.Lock()  # kernel at a time: the emulator has one memory for all
MULTIPROCESSORS = 4  # as few as tests of work that is dealt out admit

sys.path.insert(0, str(EMULATOR))
from translate import COMPILER, translated  # noqa: E402


class Kernel(Checked):
    """A kernel that runs."""

    def run(self, grid, block, arguments, shared_bytes):
        held = [bytes_of(a) for a in arguments]
        values = (ctypes.c_void_p * len(held))(*[h.ctypes.data for h in held])
        with ONE:
            launch = compiled(self.header, self.expression, self.definitions)
            failure = launch(values, *grid, *block, shared_bytes)
        if failure:
            raise RuntimeError(f"{self.expression}: {failure.decode()}")


def bytes_of(a):
    """An argument as it travels: the address of an array, a number by its bytes."""
    return np.array([a.data.ptr if isinstance(a, cupy.ndarray) else a])


@cache
def folder():
    """Where translated sources and compiled instances lie."""
    path = Path(os.environ.get("EMULATED") or tempfile.mkdtemp())
    path.mkdir(parents=True, exist_ok=True)
    return path


@cache
def emulator_hash():
    return sha256(b"".join(path.read_bytes() for path in sorted(EMULATOR.glob("*.[hp]*")))).hexdigest()[:16]


@cache
def sources(header):
    """The folder with a header and what it includes, translated."""
    place = folder() / f"{compiler.source_hash(header)}-{emulator_hash()}"
    for name, text in compiler.sources(header).items():
        path = place / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(translated(text), encoding="utf-8")
            partial.replace(path)
    return place


@cache
def compiled(header, expression, definitions):
    """launch(arguments, blocks, threads, shared bytes) → None, or what went wrong."""
    text = translated(compiler.program(header, definitions))
    text = f'#include "ptx.h"\n{text}extern "C" const char* launch(void** a, int blocks, int threads, int shared)\n'
    kept = "false" if "float" in expression else "true"
    text += f"{{ emulator::Denormals denormals({kept}); "
    text += f"return emulator::launch({compiler.qualified(header, expression)}, a, blocks, threads, shared); }}\n"
    place = sources(header)
    library = place / f"{sha256((text + repr(WATCHED)).encode()).hexdigest()[:24]}.so"
    if not library.is_file():
        source = library.with_suffix(f".{os.getpid()}.cpp")
        source.write_text(text, encoding="utf-8")
        unlinked, linked = source.with_suffix(".o"), source.with_suffix(".so")
        _run(expression, *WATCHED, f"-I{EMULATOR}", f"-I{place}", "-c", source, "-o", unlinked)
        _run(expression, "-shared", unlinked, "-o", linked)  # without the library that belongs to WATCHED
        unlinked.unlink()
        linked.replace(library)
    launch = ctypes.CDLL(str(library)).launch
    launch.restype = ctypes.c_char_p
    return launch


def _run(expression, *words):
    """The compiler. Raises RuntimeError with what it says against a kernel."""
    command = [COMPILER, *OPTIONS, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{expression}: {done.stderr[:3000]}")


compiler.kernel = Kernel  # before the modules that import it
cupy.cuda.ATTRIBUTES["MultiProcessorCount"] = MULTIPROCESSORS
