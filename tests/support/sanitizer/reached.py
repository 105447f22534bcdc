"""Which kernels does a test launch? A plugin that writes it down, and the tests that reach all of them in least time.

    REACHED=FOLDER pytest -m gpu -p reached        with this folder in PYTHONPATH

Each process adds a line of JSON a test to a file of its own in FOLDER: the test, its seconds, and the instances that it
launched, each a header and a name expression. Processes that a test starts are not followed.
"""

import heapq
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

# Under a tool a test costs seconds of its own, and the work on the device a hundred times its time: whole matrices
# reach many kernels, but racecheck had not ended one of 3,000 sites after three minutes (H200)
TOOL, SLOWER = 2.0, 200.0


class Reached(NamedTuple):
    """What a test took and launched: (header, instance) of each kernel."""

    seconds: float
    instances: frozenset


class Launched:
    """A compiled kernel that notes its name when it is launched."""

    def __init__(self, function, name, noted):
        self.__dict__.update(_function=function, _name=name, _noted=noted)

    def __call__(self, *arguments, **options):
        self._noted.add(self._name)
        return self._function(*arguments, **options)

    def __getattr__(self, name):
        if name == "kernel":  # asked for by launches that go past CuPy (batched/device/direct.py)
            self._noted.add(self._name)
        return getattr(self._function, name)

    def __setattr__(self, name, value):
        setattr(self._function, name, value)


def pytest_configure(config):
    from h2gpu.batched.device import compiler

    found, noted = compiler._function, set()

    def function(device, header, instance, definitions):
        return Launched(found(device, header, instance, definitions), (header, instance), noted)

    compiler._function, config.launched = function, noted
    folder = Path(os.environ["REACHED"])
    folder.mkdir(parents=True, exist_ok=True)
    config.reached = folder / f"{os.getpid()}.jsonl"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Tests that share remembered launches each note them: a launch is noted where it happens."""
    item.config.launched.clear()
    start = time.perf_counter()
    result = yield
    line = item.nodeid, round(time.perf_counter() - start, 3), sorted(item.config.launched)
    with item.config.reached.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return result


def read(folder):
    """{test, under tests/: Reached} of all files in the folder; a line that was cut off is left out."""
    found = {}
    for file in sorted(Path(folder).glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                test, seconds, instances = json.loads(line)
            except ValueError:
                continue
            found[test.removeprefix("tests/")] = Reached(seconds, frozenset(map(tuple, instances)))
    return found


def kernel(instance):
    """(header, name) of an instance, without its arguments."""
    header, name = instance
    return header, name.partition("<")[0]


def in_order(tests, reached):
    """The tests by what they add for their seconds: kernels first, then instances; what adds nothing is left out.

    Chvatal (1979), A greedy heuristic for the set-covering problem: the cost is at most ln n + 1 times the least.
    """
    by_kernel = {test: frozenset(map(kernel, reached[test].instances)) for test in tests if test in reached}
    by_instance = {test: reached[test].instances for test in by_kernel}
    first = _cover(by_kernel, reached, set())
    have = {instance for test in first for instance in reached[test].instances}
    return [*first, *_cover(by_instance, reached, have)]


def _cover(sets, reached, have):
    def price(test):
        added = len(sets[test] - have)
        return (TOOL + SLOWER * reached[test].seconds) / added if added else None

    queue = [(p, test) for test in sets if (p := price(test)) is not None]
    heapq.heapify(queue)
    chosen = []
    while queue:
        _, test = heapq.heappop(queue)
        now = price(test)
        if now is None:
            continue
        if queue and now > queue[0][0]:  # what it adds has become less: others may come first
            heapq.heappush(queue, (now, test))
            continue
        chosen.append(test)
        have |= sets[test]
    return chosen
