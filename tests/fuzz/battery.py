"""Batteries of random cases: a generator and an oracle in one function, and the loop that runs it.

    case k of seed s:  random numbers from (s, k, name) → one word for what came of it, or an exception: a finding

Every case can be run again by its seed and number alone. A worker tells on its standard output what came of each case,
so that whoever started it knows the case of a crash or a hang. Reference: Miller, Fredriksen and So, An empirical study
of the reliability of UNIX utilities (1990).

Batteries of numerics compute where `run.py --device` says: their arrays go to the GPU and results come back. The
oracles stay on the host.
"""

import faulthandler
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, module_of_device, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.memory import peak_memory

BATTERIES = {}
VARIABLE = "H2GPU_FUZZ_DEVICE"  # of the environment: workers are processes of their own
SLOWEST = 120  # seconds of a case, beyond which it hangs
FRAME = re.compile(r'File "(?:.*/)?([^"/]+)", line (\d+) in (\S+)')  # as faulthandler writes them
FRAMES = 8
_hanging = {}  # files in which a child, by its process id, tells where it hangs


class FoundError(AssertionError):
    """What should not be."""


@dataclass(frozen=True)
class Battery:
    """A name, `case(rng, folder) → word`, and the bytes that a worker may hold beyond those of its start."""

    name: str
    case: Callable
    most_memory: int

    def run(self, seed, number, folder):
        """The word for what came of one case; raises whatever the case raises."""
        with tempfile.TemporaryDirectory(dir=folder) as own:
            return self.case(np.random.default_rng((seed, number, crc32(self.name.encode()))), Path(own))


def battery(name, most_memory=1 << 30):
    """Registers `case(rng, folder)` as a battery."""

    def register(case):
        BATTERIES[name] = Battery(name, case, most_memory)
        return case

    return register


def expect(holds, what):
    if not holds:
        raise FoundError(what)


def one_line(error):
    """What a refusal must be."""
    text = str(error)
    expect("\n" not in text and text.isprintable() and len(text) < 2200, f"not one short line: {text!r:.300}")


def in_child(work):
    """Run `work()` in a forked process → its process id; `ended` waits for it.

    `work` gets no arguments; an exception makes the status 99. Yields nothing of the child's but its status. A child
    that hangs ends before its parent would (no timer of faulthandler: those of the parent lock the child's).
    """
    where = tempfile.TemporaryFile()  # noqa: SIM115 until `ended`
    child = os.fork()
    if child:
        _hanging[child] = where
        return child
    status = 99
    faulthandler.register(signal.SIGALRM, file=where, chain=True)
    signal.alarm(SLOWEST // 2)
    try:
        status = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def ended(child):
    """Wait for a child: its exit status, or −signal; FoundError where it hangs."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with _hanging.pop(child) as where:
        where.seek(0)
        expect(status != -signal.SIGALRM, f"a child hangs: {frames(where.read().decode(errors='replace'))}")
    return status


def frames(text):
    """What faulthandler wrote of the thread that matters: "hdf5.py:9 in read < …", innermost first."""
    main = text.split("Current thread ")[-1].split("\n\n")[0] if "Current thread " in text else text
    return " < ".join(f"{name}:{line} in {function}" for name, line, function in FRAME.findall(main)[:FRAMES])


def work(name, seed, first, count, seconds):
    """The worker: cases first, first + 1, … until `count` are done or `seconds` are over, a line of JSON for each."""
    faulthandler.enable()
    chosen, begun, told = BATTERIES[name], time.monotonic(), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what cases print is no line of ours
    os.register_at_fork(after_in_child=lambda: os.close(told.fileno()))  # else a child that hangs keeps it open
    with tempfile.TemporaryDirectory(prefix="h2gpu-fuzz-") as folder:
        memory = None
        for number in range(first, first + count):
            if time.monotonic() - begun > seconds:
                break
            print(json.dumps({"begin": number}), file=told, flush=True)
            faulthandler.dump_traceback_later(SLOWEST, exit=True)
            line = _told(chosen, seed, number, folder)
            peak = peak_memory()
            memory = memory or peak
            if peak - memory > chosen.most_memory:
                line, memory = {"finding": f"memory: {(peak - memory) >> 20} MiB more than before"}, peak
            print(json.dumps({"end": number, **line}), file=told, flush=True)
    faulthandler.dump_traceback_later(SLOWEST, exit=True)  # threads that never end would keep the process


def _told(chosen, seed, number, folder):
    try:
        return {"word": chosen.run(seed, number, folder) or "right"}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return {"finding": f"{type(error).__name__} at {place}: {' '.join(str(error).split()):.300}"}


def device():
    """ "cpu" or "cuda"."""
    return os.environ.get(VARIABLE, "cpu")


def given(value):
    """Arrays and batches, also in tuples, where the battery computes; anything else as it is."""
    xp = module_of_device(device())
    if isinstance(value, np.ndarray):
        return value if xp is np else xp.asarray(value.astype(value.dtype.newbyteorder("=")))
    if isinstance(value, MatrixBatch):
        return value.to(xp)
    return tuple(map(given, value)) if type(value) is tuple else value


def back(value):
    """Results on the host."""
    if isinstance(value, tuple):
        return tuple(map(back, value))
    if isinstance(value, MatrixBatch):
        return value.to(np)
    return value if array_module(value) is np else to_host(value)


class Routines:
    """The routines of `batched` for arrays of the host, run on the device."""

    def __getattr__(self, name):
        routine = getattr(batched, name)
        return lambda *arguments, **named: back(
            routine(*map(given, arguments), **{key: given(value) for key, value in named.items()})
        )
