"""Whether instances compile, and what ptxas says of them, remembered from run to run: no GPU needed."""

import multiprocessing
import os
import re
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256

import ptx

from h2gpu.apps.packaging.nvrtc import CUPYS_OWN, compiled, library
from h2gpu.batched.device import compiler

UNOPTIMIZED = "-G"  # an eighth of the time: says whether instances compile, not what they spill
TOGETHER = 12  # instances in one such program: half the time again


def spilled(case):
    """The most bytes that ptxas spills in a function of (architecture, header, name expressions, options).

    Raises AssertionError where some ptxas is known to make wrong code of it.
    """
    architecture, header, names, more = case
    options = [*compiler.options(header), CUPYS_OWN, f"-arch={architecture}", "--ptxas-options=-v", *more]
    names = [compiler.qualified(header, name) for name in names]
    result = compiled(compiler.program(header), options, names)
    assert result.code
    lost = [] if UNOPTIMIZED in more else ptx.lost_signs(result.ptx)
    assert not lost, f"ptxas 13.0 loses a sign in {names}: {lost}; see ptx.py"
    return max(map(int, re.findall(r"(\d+) bytes spill stores", result.log)))


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
    """What the result of a case depends on, the compiler's build among it: an upgrade keeps the name of its file."""
    path = library()._name
    build = os.path.getsize(path) if os.path.exists(path) else 0  # by bytes: nvrtcVersion has no patch number
    depends = path, build, *case, *compiler.options(case[1])[:1], compiler.source_hash(case[1])
    return sha256(repr(depends).encode()).hexdigest()


def all_spilled(cases, config):
    """`spilled` of every case, on all cores, and remembered by pytest until a source changes."""
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
