"""What does a call of each batched routine cost as users meet it, beside CuPy (on the CPU NumPy) and PyTorch?

    python -m h2gpu.apps.benchmarks.as_called [ROUTINE …] [--device cpu|cuda] [--sizes 4,8,…] [--batches 1,500,…]
                                              [--dtypes float64,float32] [--seconds S] [-o FILE] [--plot FILE]

A loop of up to 200 calls with default arguments on the same arrays, and one wait at the end: `µs`, a call. `device µs`
is the device's share (timing.py), `of peer` the quotient by the fastest of the others. Others that take long are timed
with fewer matrices, scaled to the batch, and named in `scaled`. Routines and their peers: routines/calls.py.
"""

import os
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import called, tables
from h2gpu.apps.benchmarks.routines.calls import ROUTINES, arguments, entries
from h2gpu.apps.command.command import FailureError, InputError, Parser, run
from h2gpu.apps.command.devices import CudaDevice, Device

SIZES, BATCHES, DTYPES = (4, 8, 16, 32, 33, 64, 128, 256, 512), (1, 500, 100_000), ("float64", "float32")
LARGEST = 1 << 30  # bytes of an argument
CALLS, LEAST = 200, 3  # of a loop
PATIENCE = 0.3  # seconds of a loop, about
FEW = 4  # matrices that others are tried with first


@dataclass(frozen=True)
class Case:
    """A routine on `batch` problems of order n."""

    routine: str
    dtype: str
    batch: int
    n: int

    @property
    def label(self):
        """In words, for progress."""
        return f"{self.routine} {self.dtype} {self.batch} × {self.n}²"


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.as_called", _work, argv)


def parser():
    p = Parser(prog="benchmarks.as_called", description=__doc__.splitlines()[0], allow_abbrev=False)
    p.add_argument("routines", nargs="*", metavar="ROUTINE", help=f"default: all of {'; '.join(ROUTINES)}")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--sizes", type=_numbers, default=SIZES, metavar="N[,N]", help="orders of the matrices")
    p.add_argument("--batches", type=_numbers, default=BATCHES, metavar="N[,N]", help="matrices of a call")
    p.add_argument("--dtypes", default=",".join(DTYPES), metavar="NAME[,NAME]")
    p.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so long, and tell")
    p.add_argument("--compilers", type=int, default=os.cpu_count(), metavar="N", help="processes that compile first")
    p.add_argument("-o", "--output", type=Path, metavar="FILE", help="CSV file to write")
    p.add_argument("--plot", type=Path, metavar="FILE", help="picture of the table (needs matplotlib)")
    return p


def _numbers(text):
    return tuple(int(word) for word in text.split(","))


def _work(argv):
    options = parser().parse_args(argv)
    routines, dtypes = options.routines or list(ROUTINES), options.dtypes.split(",")
    for what, names, known in (("ROUTINE", routines, ROUTINES), ("--dtypes", dtypes, DTYPES)):
        if not set(names) <= set(known):
            raise InputError(f"{what}: expected some of {'; '.join(known)}, got {'; '.join(names)}")
    for what, numbers in (("--sizes", options.sizes), ("--batches", options.batches)):
        if min(numbers) < 1:
            raise InputError(f"{what}: expected numbers > 0, got {','.join(map(str, numbers))}")
    device = CudaDevice() if options.device == "cuda" else Device()
    cases = list(chosen(routines, dtypes, options.batches, options.sizes))
    begin = time.perf_counter()
    if device.kind == "cuda":
        timing.side_by_side(compile_for, cases, options.compilers)
        print(f"compiled in {time.perf_counter() - begin:.0f} s", flush=True)
    rows = []
    try:
        for i, case in enumerate(cases):
            if time.perf_counter() - begin > options.seconds:
                raise FailureError(f"{len(cases) - i} of {len(cases)} cases left out after {options.seconds:g} s")
            rows.append(measured(case, device))
            print(f"{case.label}: {rows[-1]['µs']:.5g} µs", flush=True)
    finally:
        if options.output and rows:
            tables.write(options.output, rows, tables.device_name(options.device))
        if options.plot and rows:
            called.draw(rows, options.plot)
    print(tables.text(rows))


def chosen(routines, dtypes, batches, sizes):
    """The cases whose arguments are not too large."""
    for routine, dtype, batch, n in product(routines, dtypes, batches, sizes):
        if batch * entries(ROUTINES[routine].letters, n) * np.dtype(dtype).itemsize <= LARGEST:
            yield Case(routine, dtype, batch, n)


def compile_for(case):
    """One call of ours on the GPU: what it compiles is then on disk."""
    routine = ROUTINES[case.routine]
    device = CudaDevice()
    routine.ours(*arguments(routine.letters, case.batch, case.n, case.dtype, device.arrays))
    device.synchronize()


def measured(case, device):
    """The row of a case."""
    routine = ROUTINES[case.routine]
    ours = arguments(routine.letters, case.batch, case.n, case.dtype, device.arrays)
    wait = device.synchronize or (lambda: None)
    row = {"routine": case.routine, "dtype": case.dtype, "batch": case.batch, "n": case.n}
    row["µs"] = 1e6 * seconds_a_call(routine.ours, ours, wait)
    if device.kind == "cuda":
        row["device µs"] = 1e3 * timing.device_ms(lambda arrays: routine.ours(*arrays), [ours])
    others, scaled = {}, []
    for name, work, theirs in peers(routine, device.arrays, ours):
        seconds, count = grown(work, theirs, wait)
        others[f"{name} µs"] = 1e6 * seconds
        scaled += [name] if count < case.batch else []
    row |= others
    return row | {"of peer": row["µs"] / min(others.values()) if others else None, "scaled": ", ".join(scaled)}


def peers(routine, xp, arrays):
    """(name, function, arguments) of CuPy or NumPy, and of PyTorch where it is installed."""
    if routine.array:
        name = {"numpy": "NumPy", "cupy": "CuPy"}[xp.__name__]
        yield name, lambda *arrays: routine.array(xp, *arrays), arrays
    try:
        import torch
    except ImportError:
        return
    if routine.torch:
        yield "torch", lambda *tensors: routine.torch(torch, *tensors), tuple(map(torch.from_dlpack, arrays))


def grown(work, arrays, wait):
    """Seconds a call for all matrices, and with how many it was timed: more and more, as far as patience allows."""
    batch = len(arrays[0])
    count = min(batch, FEW)
    while True:
        some = tuple(array[:count] for array in arrays)
        work(*some)  # makes handles
        once = _loop(work, some, wait, 1)
        if count == batch:
            return seconds_a_call(work, arrays, wait), count
        if once > PATIENCE:
            return once * batch / count, count
        count = min(batch, 16 * count)


def seconds_a_call(work, arrays, wait):
    """Of a loop of calls with one wait at its end."""
    work(*arrays)
    once = _loop(work, arrays, wait, 1)
    return _loop(work, arrays, wait, int(min(CALLS, max(LEAST, PATIENCE / max(once, 1e-6)))))


def _loop(work, arrays, wait, calls):
    wait()
    begin = time.perf_counter()
    for _ in range(calls):
        work(*arrays)
    wait()
    return (time.perf_counter() - begin) / calls


if __name__ == "__main__":
    raise SystemExit(main())
