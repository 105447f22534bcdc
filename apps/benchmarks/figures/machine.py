"""What a command may have of the machine: a GPU of its own, and cores of its own."""

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from h2gpu.apps.command.command import FailureError
from h2gpu.batched.device import threads

PUBLISHED = 2  # cores of the published tables of CPUs
ASKED = """
import cupy
for i in range(cupy.cuda.runtime.getDeviceCount()):
    found = cupy.cuda.runtime.getDeviceProperties(i)
    print(found["totalGlobalMem"], found["name"].decode())
"""


class Slot(NamedTuple):
    """A place for one command: the number of its GPU, "" for none, and its cores."""

    gpu: str
    cores: tuple


def slots(gpus, count, each=None):
    """So many slots that share no GPU and no core; cores of one processor stay together.

    gpus   their numbers, () on the CPU
    each   cores of a slot; None: an equal share, on the CPU no more than the published tables have
    """
    mine, count = cores(), len(gpus) or count
    if count * (each or 1) > len(mine):
        wanted = f"{each} cores" if each else "a core"
        raise FailureError(f"expected {wanted} for each of {count} commands at once, got {len(mine)}; give fewer")
    each = each or (len(mine) if gpus else PUBLISHED)
    bounds = [i * len(mine) // count for i in range(count + 1)]
    shares = [_apart(mine[a:b])[:each] for a, b in pairwise(bounds)]
    return [Slot(gpu, tuple(share)) for gpu, share in zip(gpus or [""] * count, shares)]


def cores():
    """Those that this process may use, hyperthreads of a core one after the other."""
    return threads.by_core(threads.cores())


def gpus():
    """[(number, gigabytes, name)] of those that CUDA_VISIBLE_DEVICES leaves, asked for in a process of its own."""
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=False)
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    if done.returncode or not lines:
        reason = (done.stderr.strip().splitlines() or ["none"])[-1]
        raise FailureError(f"--device cuda: expected CuPy and a CUDA device, got {reason:.150}")
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = seen.split(",") if seen else map(str, range(len(lines)))
    return [(number.strip(), int(size) / 1e9, name) for number, (size, name) in zip(numbers, lines)]


def card(name):
    """A GPU's name as names of files have it: "h200" of "NVIDIA H200"."""
    found = re.search(r"\b[A-Z]+\d+", name)
    return (found[0] if found else re.sub(r"\W+", "-", name)).lower()


def _apart(share):
    """Cores with their first hyperthreads before the second: what takes few of them shares none."""
    seen = Counter()

    def turn(core):
        first = threads.first_sibling(core)
        seen[first] += 1
        return seen[first]

    return sorted(share, key=turn)
