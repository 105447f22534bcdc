"""What does a call of each batched routine cost as users meet it, beside CuPy (on the CPU NumPy) and PyTorch?

    python -m h2gpu.apps.benchmarks.as_called [ROUTINE …] [--device cpu|cuda] [--sizes 4,8,…] [--batches 1,500,…]
                                              [--dtypes float64,float32] [--seconds S] [-o FILE [--resume]]
                                              [--plot FILE]

A loop of up to 200 calls with default arguments on the same arrays, and one wait at the end: `µs`, a call. `device µs`
is the device's share (timing.py), `of peer` the quotient by the fastest of the others. What is foretold to take longer
than half a second is timed with fewer matrices, scaled to the batch, and named in `scaled`: others everywhere, h2gpu on
the CPU. Memory is of CuPy's own pool, as users have it. Cases come in the order of their weight: 500 matrices, small
ones, float64 first. Where --seconds end them, or an interrupt, --resume goes on from the table. Routines and their
peers: routines/calls.py.
"""

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
from h2gpu.batched.device.threads import thread_count

SIZES, BATCHES, DTYPES = (4, 8, 16, 32, 33, 64, 128, 256, 512), (1, 500, 100_000), ("float64", "float32")
LARGEST = 1 << 30  # bytes of an argument
CALLS = 200  # of a loop, at most
PATIENCE = 0.05  # seconds of a loop, about; a call that takes longer is one
LONGEST = 0.5  # seconds: calls that would take longer are scaled from fewer matrices
FEW, GROWTH = 4, 16  # matrices of the first attempt, and how many times as many the next has
FIRST, SMALL = 500, 64  # the batch and the orders that come first
SAVED = 15  # seconds between two writings of the table
OURS = "h2gpu"


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

    @property
    def weight(self):
        """What comes first has the least."""
        return self.batch != FIRST, self.batch, max(self.n, SMALL), DTYPES.index(self.dtype)


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
    p.add_argument("--resume", action="store_true", help="measure what --output lacks; the same machine and commit")
    p.add_argument("--compilers", type=int, default=thread_count(), metavar="N", help="processes that compile first")
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
    device = _device(options.device)
    cases = list(chosen(routines, dtypes, options.batches, options.sizes))
    table = Table(options.output, tables.device_name(options.device), options.resume, cases)
    begin = time.perf_counter()
    if device.kind == "cuda":
        timing.side_by_side(compile_for, table.missing, options.compilers)
        print(f"compiled in {time.perf_counter() - begin:.0f} s", flush=True)
    try:
        _measure(table, device, begin, begin + options.seconds)
    finally:
        table.write()
        if options.plot and table.rows:
            called.draw(table.in_order(), options.plot)
    print(tables.text(table.in_order()))
    if table.missing:
        raise FailureError(f"{len(table.missing)} of {len(cases)} cases left out; --resume goes on with them")


def _device(kind):
    """The CPU, or the GPU with the pool that CuPy allocates from where nobody chooses another."""
    if kind == "cpu":
        return Device()
    device = CudaDevice()
    device.arrays.cuda.set_allocator(device.arrays.get_default_memory_pool().malloc)
    return device


def _measure(table, device, begin, end):
    """Rows of the missing cases until the time is over; those that fail are told, and left out."""
    for case in list(table.missing):
        if time.perf_counter() > end:
            return
        if device.kind == "cuda":
            device.arrays.get_default_memory_pool().free_all_blocks()
        try:
            row = measured(case, device)
        except Exception as error:  # the others are worth their time on the device
            print(f"{case.label}: {type(error).__name__}: {' '.join(str(error).split()):.150}", flush=True)
            continue
        table.add(case, row)
        print(f"{case.label}: {row['µs']:.5g} µs, at {time.perf_counter() - begin:.0f} s", flush=True)


def chosen(routines, dtypes, batches, sizes):
    """The cases whose arguments are not too large, in the order of the table."""
    for routine, dtype, batch, n in product(routines, dtypes, batches, sizes):
        if batch * entries(ROUTINES[routine].letters, n) * np.dtype(dtype).itemsize <= LARGEST:
            yield Case(routine, dtype, batch, n)


class Table:
    """Rows by case, on disk every few seconds; `resume`: with those of the file, where it tells of the same machine
    and commit. Raises InputError where it does not.
    """

    def __init__(self, path, device, resume, cases):
        self.path, self.device, self.cases, self.rows = path, device, cases, {}
        if resume:
            if path is None or not path.is_file():
                raise InputError(f"--resume: expected the table of --output to go on from, got {path}")
            self.rows = {case: row for case, row in _read(path, device) if case in set(cases)}
        self._saved = time.perf_counter()

    @property
    def missing(self):
        """Cases without a row, the weightiest first."""
        return sorted((case for case in self.cases if case not in self.rows), key=lambda case: case.weight)

    def add(self, case, row):
        self.rows[case] = row
        if time.perf_counter() - self._saved > SAVED:
            self.write()

    def in_order(self):
        """The rows, in the order of the cases."""
        return [self.rows[case] for case in self.cases if case in self.rows]

    def write(self):
        if self.path and self.rows:
            tables.write(self.path, self.in_order(), self.device)
        self._saved = time.perf_counter()


def _read(path, device):
    """(case, row) of a table's rows; InputError where they were measured elsewhere, or with other versions."""
    before, rows = tables.read(path)
    for line in tables.circumstances(device):
        if not line.startswith(("date:", "command:")) and line not in before:
            raise InputError(f"--resume: expected a table of the same circumstances, got {path} without “{line}”")
    for row in rows:
        words = {key: row[key] for key in ("routine", "dtype", "scaled") if key in row}
        numbers = {key: float(text) for key, text in row.items() if key not in words and text}
        sizes = {key: int(row[key]) for key in ("batch", "n")}
        yield Case(row["routine"], row["dtype"], **sizes), row | words | numbers | sizes


def compile_for(case):
    """One call of ours on the GPU: what it compiles is then on disk."""
    routine = ROUTINES[case.routine]
    device = CudaDevice()
    routine.ours(*arguments(routine.letters, case.batch, case.n, case.dtype, device.arrays))
    device.synchronize()


def measured(case, device):
    """The row of a case."""
    routine = ROUTINES[case.routine]
    wait = device.synchronize or (lambda: None)
    row = {"routine": case.routine, "dtype": case.dtype, "batch": case.batch, "n": case.n}

    def first(count):
        return arguments(routine.letters, count, case.n, case.dtype, device.arrays)

    if device.kind == "cuda":
        ours, scaled = first(case.batch), []
        row["µs"] = 1e6 * seconds_a_call(routine.ours, ours, wait)
        row["device µs"] = 1e3 * timing.device_ms(lambda arrays: routine.ours(*arrays), [ours])
    else:
        seconds, count = grown(routine.ours, first, case.batch, wait)
        row["µs"], scaled = 1e6 * seconds, [OURS] if count < case.batch else []
    others = {}
    for name, work, theirs in peers(routine, device.arrays):
        seconds, count = grown(work, lambda count, theirs=theirs: theirs(first(count)), case.batch, wait)
        others[f"{name} µs"] = 1e6 * seconds
        scaled += [name] if count < case.batch else []
    row |= others
    return row | {"of peer": row["µs"] / min(others.values()) if others else None, "scaled": ", ".join(scaled)}


def peers(routine, xp):
    """(name, function, what it takes our arrays as) of CuPy or NumPy, and of PyTorch where it is installed."""
    if routine.array:
        name = {"numpy": "NumPy", "cupy": "CuPy"}[xp.__name__]
        yield name, lambda *arrays: routine.array(xp, *arrays), tuple
    try:
        import torch
    except ImportError:
        return
    if routine.torch:
        yield (
            "torch",
            lambda *tensors: routine.torch(torch, *tensors),
            lambda arrays: tuple(map(torch.from_dlpack, arrays)),
        )


def grown(work, arguments_of, batch, wait):
    """Seconds a call for all matrices, and with how many it was timed: more and more, unless all would take too long.

    arguments_of   function of a number of matrices
    """
    count = min(batch, FEW)
    while count < batch:
        some = arguments_of(count)
        work(*some)  # makes handles
        once = _loop(work, some, wait, 1)
        if once > PATIENCE and once * batch > LONGEST * count:
            return once * batch / count, count
        count = min(batch, GROWTH * count)
    return seconds_a_call(work, arguments_of(batch), wait), batch


def seconds_a_call(work, arrays, wait):
    """Of a loop of calls with one wait at its end."""
    work(*arrays)
    once = _loop(work, arrays, wait, 1)
    return once if once > PATIENCE else _loop(work, arrays, wait, int(min(CALLS, max(1, PATIENCE / max(once, 1e-6)))))


def _loop(work, arrays, wait, calls):
    wait()
    begin = time.perf_counter()
    for _ in range(calls):
        work(*arrays)
    wait()
    return (time.perf_counter() - begin) / calls


if __name__ == "__main__":
    raise SystemExit(main())
