"""Where do the cycles of one problem a block go, panel by panel, and does the model say so beforehand?

Figure 8 and table V of Anderson, Sheffield & Keutzer (2012), 8,000 of 56 × 56 in float32 in place of theirs on a Quadro
6000: instances of the kernels that read the clock at the borders of their parts (kernels/common/thread/stopwatch.cuh),
averaged over all blocks; loads also over those that begin together and over later ones. Predictions:
h2gpu.batched.model, for the same blocks on average.

    python -m h2gpu.apps.studies.small --figures 8
"""

from collections import defaultdict

import numpy as np

from h2gpu.apps.benchmarks import timing
from h2gpu.batched import model, registers
from h2gpu.batched.model import registers as register_counts
from h2gpu.batched.model.counts import added
from h2gpu.batched.registers.layouts import layout

PARTS = "publish", "products", "reflection", "update", "clock"  # as in kernels/registers/block/cyclic_factor.cuh
LOAD, STORE, COMPUTE = register_counts.LOAD, register_counts.STORE, "compute"
FIRST, LATER = "load, first wave", "load, later waves"
HEADER = "studies/small_block_cycles.cuh"
PAPER = {  # table V
    "lu": {LOAD: 8800, COMPUTE: 68250, STORE: 8740},
    "qr": {LOAD: 9120, COMPUTE: 150203, STORE: 9762},
}
ROUTINES = {"lu": registers.lu, "qr": registers.qr}


def rows(routine, A, device):
    """Lines of the table for (batch, n, n) matrices on the device: parts of panels, table V, the kernel as a whole."""
    measured, whole, loads = cycles(routine, A)
    predicted = foretold(routine, A.dtype.name, A.shape[-1], len(A), device)
    common = {"routine": routine, "dtype": A.dtype.name, "batch": len(A), "shape": f"{A.shape[1]}×{A.shape[2]}"}
    found = []
    for panel, part in measured:
        if panel not in (LOAD, STORE):
            found.append(
                common | {"figure": "8", "panel": panel + 1, "part": part} | pair(measured, predicted, panel, part)
            )
    for part in (LOAD, COMPUTE, STORE):
        sums = [{part: summed(numbers)[part]} if numbers else {} for numbers in (measured, predicted)]
        found.append(common | {"figure": "V", "part": part} | pair(*sums, part) | {"paper": PAPER[routine][part]})
    for part, ours, theirs in by_wave(loads, routine, A.dtype.name, A.shape[-1], device):
        found.append(common | {"figure": "V", "part": part} | pair({part: ours}, {part: theirs}, part))
    inputs = timing.rotation(A)
    plain = timing.device_ms(lambda A: ROUTINES[routine](A, "2d", return_info=True), inputs)
    watched = timing.device_ms(lambda A: launched(routine, A), inputs)
    times = {"cycles": whole, "ms": plain, "ms with clocks": watched}
    return [*found, common | {"figure": "V", "part": "kernel, beginning to end"} | times]


def pair(measured, predicted, *key):
    """Cycles of one part by both; the model knows no clocks."""
    key = key if len(key) > 1 else key[0]
    ours, theirs = measured[key], predicted.get(key)
    return {"cycles": ours, "predicted cycles": theirs, "predicted / measured": theirs and theirs / ours}


def cycles(routine, A):
    """{(panel, part): cycles} of an average block, panels from 0 on, LOAD or STORE; of the kernel; of each load."""
    launched(routine, A)  # loads the code
    blocks = launched(routine, A).get()
    numbers = blocks.mean(axis=0)
    table, names = numbers[:-1].reshape(-1, len(PARTS)), [LOAD, *range(panels(A)), STORE]
    found = {(LOAD, ""): table[0, 0]} | {
        (panel, part): float(number)
        for panel, line in zip(names[1:-1], table[1:-1])
        for part, number in zip(PARTS, line)
        if number
    }
    return found | {(STORE, ""): table[-1, 0]}, float(numbers[-1]), blocks[:, 0]


def panels(A):
    """Of each matrix: as many columns each as a block has threads in a row."""
    return -(-A.shape[-1] // grid_of(A).columns)


def grid_of(A):
    return layout(A.dtype, *A.shape[1:], "2d")


def launched(routine, A):
    """(batch, numbers) that the blocks of the kernel with clocks wrote."""
    import cupy

    from h2gpu.batched.device.compiler import kernel
    from h2gpu.batched.device.launch import launch

    (batch, m, n), grid = A.shape, grid_of(A)
    out, info = cupy.empty_like(A), cupy.empty(batch, np.int32)
    found = cupy.empty((batch, (panels(A) + 2) * len(PARTS) + 1), np.int64)
    sizes, results = ((n,), (out,)) if routine == "lu" else ((m, n), (out, cupy.empty((batch, min(m, n)), A.dtype)))
    function = kernel(HEADER, f"block_{routine}_cycles", A.dtype, *sizes, *grid)
    launch(function, batch, grid.threads, (A, *results, info, found))
    return found


def foretold(routine, dtype, n, batch, device):
    """{(panel, part): cycles} by the model, empty where the device's constants are not known."""
    try:
        constants = model.Constants.of(device)
        *places, parts = zip(*counted(routine, dtype, n))
        seconds, clock = model.wave(parts, dtype, constants, batch, True), constants("clock")
    except (ValueError, LookupError):
        return {}
    found = defaultdict(float)
    for place, time in zip(zip(*places), seconds):
        found[place] += time * clock
    return dict(found)


def counted(routine, dtype, n):
    """(panel, part, Counts) of a block."""
    return list(register_counts.block_parts(routine, dtype, n, n, 0, layout(dtype, n, n, "2d")))


def by_wave(loads, routine, dtype, n, device):
    """(part, measured, predicted) of the loads of blocks that begin together and of later ones, where there are both.

    loads   (batch,) cycles, in the order in which blocks begin
    """
    predicted = foretold(routine, dtype, n, len(loads), device)
    if not predicted:
        return []
    resident = model.resident(added(*(work for *_, work in counted(routine, dtype, n))))
    first = int(resident * model.Constants.of(device)("multiprocessors"))
    later = len(loads) - first
    if later <= 0:
        return []
    of_all, of_first = predicted[LOAD, ""], foretold(routine, dtype, n, first, device)[LOAD, ""]
    of_later = (len(loads) * of_all - first * of_first) / later
    return [(FIRST, loads[:first].mean(), of_first), (LATER, loads[first:].mean(), of_later)]


def summed(numbers):
    """Table V: cycles of loading, of all panels, of storing."""
    found = dict.fromkeys((LOAD, COMPUTE, STORE), 0.0)
    for (panel, _), number in numbers.items():
        found[panel if panel in found else COMPUTE] += number
    return found
