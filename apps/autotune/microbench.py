"""The constants of the GPU at hand that predictions are made from, written to kernels/tuning/<device>/model.csv.

    python -m h2gpu.apps.autotune.microbench [-o FOLDER] [--repeats 5]

Bandwidth and latency of device and shared memory, bandwidth of the common cache, barriers against threads,
multiply-adds, roots and divisions, shuffles, tensor cores, matrix products, an empty launch:
kernels/studies/microbench.cuh. Latencies are cycles of a chain divided by its length and by the clock, rates medians of
events. h2gpu/batched/model/__init__.py says what they are for.
"""

import csv
import io
import statistics
from datetime import date
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.command.command import Parser, run
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import source_folder
from h2gpu.storage.whole_file import whole_file

HEADER = "studies/microbench.cuh"
WARP = 32
STEPS, LONG_STEPS = 1024, 16384  # of chains by the clock, of rates by events
UNROLLED, THREADS, BLOCKS = 8, 256, 8  # independent operations, threads of a block, blocks a multiprocessor
BARRIERS = (32, 64, 128, 256, 512, 1024)  # threads
CLOCK_NS = 20_000_000
COPY_BYTES, CHASE_BYTES, LINE = 1 << 30, 1 << 29, 128  # arrays beyond any cache; a step of the chase: another line
CACHED_BYTES, CACHED_TIMES = 1 << 23, 64  # of an array that the common cache holds twice; copies in one launch
PRODUCT = 8192  # rows and columns
DTYPES = ("float32", "float64")


def main(argv=None):
    """The command; returns the exit status."""
    return run("microbench", _work, argv)


def parser():
    p = Parser(prog="microbench", description=__doc__.splitlines()[0], allow_abbrev=False)
    p.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="of model.csv; default: the installed tables'")
    p.add_argument("--repeats", type=int, default=timing.REPEATS, metavar="N", help="measurements for a median")
    return p


def _work(argv):
    options = parser().parse_args(argv)
    device = timing.gpu_name()
    folder = options.output or source_folder() / "tuning" / tuning.folder_name(device)
    folder.mkdir(parents=True, exist_ok=True)
    text = table(measured(Bench(options.repeats)), device, date.today().isoformat())
    with whole_file(folder / "model.csv") as temporary:
        temporary.write_text(text, encoding="utf-8")
    print(text, end="")


def table(rows, device, day):
    """The text of model.csv from (constant, dtype, value, unit)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("constant", "dtype", "value", "unit", "device", "date"))
    for constant, dtype, value, unit in rows:
        writer.writerow((constant, dtype, f"{value:.4g}", unit, device, day))
    return out.getvalue()


def measured(bench):
    """(constant, dtype, value, unit) of everything that the model knows."""
    yield "multiprocessors", "", bench.multiprocessors, "1"
    yield "clock", "", bench.clock, "Hz"
    yield "launch", "", bench.timed("nothing", (), 1, 1, ()), "s"
    yield "copy_rate", "", bench.copy_rate(COPY_BYTES, 1), "B/s"
    yield "cache_rate", "", bench.copy_rate(CACHED_BYTES, CACHED_TIMES), "B/s"
    yield "cache_bytes", "", bench.cache_bytes, "B"
    yield "global_latency", "", bench.global_latency(), "s"
    yield "shared_latency", "", bench.latency("shared_latency", (), WARP, (), bench.sink(WARP, np.uint32)), "s"
    threads, words = 4 * THREADS, 4
    seconds, blocks = bench.rate("shared_rate", (threads, UNROLLED), threads, (), np.float32, 2)
    yield "shared_rate", "", blocks * threads * words * LONG_STEPS * UNROLLED / seconds, "B/s"
    for threads in BARRIERS:
        yield f"barrier_{threads}", "", bench.latency("barrier_latency", (), threads, ()), "s"
    yield "shuffle_latency", "", bench.latency("shuffles", (1,), WARP, (), bench.sink(WARP, np.uint32)), "s"
    seconds, blocks = bench.rate("shuffles", (UNROLLED,), THREADS, (), np.uint32, BLOCKS, True)
    yield "shuffle_rate", "", blocks * THREADS / WARP * LONG_STEPS * UNROLLED / seconds, "shuffles/s"
    for name in DTYPES:
        yield from of_precision(bench, np.dtype(name))


def of_precision(bench, dtype):
    """What depends on the precision."""
    name, sink, number = dtype.name, bench.sink(WARP, dtype), dtype.type(0.5)
    yield "fma_latency", name, bench.latency("multiply_adds", (dtype, 1), WARP, (number,), sink), "s"
    seconds, blocks = bench.rate("multiply_adds", (dtype, UNROLLED), THREADS, (number,), dtype, BLOCKS, True)
    yield "fma_rate", name, 2 * blocks * THREADS * LONG_STEPS * UNROLLED / seconds, "flop/s"
    for constant, root in (("root_latency", True), ("division_latency", False)):
        yield constant, name, bench.latency("slow_latency", (dtype, root), WARP, (number,), sink), "s"
    seconds, blocks = bench.rate("tensor_core_products", (dtype, UNROLLED), THREADS, (number,), dtype, BLOCKS)
    yield "mma_rate", name, 2 * 16 * 8 * 8 * blocks * THREADS / WARP * LONG_STEPS * UNROLLED / seconds, "flop/s"
    yield "product_rate", name, bench.product_rate(dtype), "flop/s"


class Bench:
    """Launches of kernels/studies/microbench.cuh on the current device."""

    def __init__(self, repeats):
        import cupy

        self.arrays, self.repeats = cupy, repeats
        attributes = cupy.cuda.Device().attributes
        self.multiprocessors, self.cache_bytes = attributes["MultiProcessorCount"], attributes["L2CacheSize"]
        self._cycles = cupy.zeros(2, np.int64)
        self.clock = self._clock()

    def sink(self, count, dtype):
        """Memory for what nobody reads."""
        return self.arrays.zeros(count, dtype)

    def launch(self, name, instance, blocks, threads, arguments, shared=0):
        from h2gpu.batched.device.compiler import kernel
        from h2gpu.batched.device.launch import launch

        launch(kernel(HEADER, name, *instance, shared_bytes=shared), blocks, threads, arguments, shared)

    def timed(self, name, instance, blocks, threads, arguments, shared=0):
        """Seconds of a launch, by events."""
        work = lambda _: self.launch(name, instance, blocks, threads, arguments, shared)  # noqa: E731
        return 1e-3 * timing.device_ms(work, [None], self.repeats)

    def latency(self, name, instance, threads, numbers, *sink):
        """Seconds a step of a chain of STEPS, by the clock of the multiprocessor: one block."""
        arguments = (STEPS, *numbers, self._cycles, *sink)
        found = []
        for _ in range(self.repeats + 1):
            self.launch(name, instance, 1, threads, arguments)
            found.append(int(self._cycles[0]))
        return statistics.median(found[1:]) / STEPS / self.clock

    def rate(self, name, instance, threads, numbers, dtype, each, clocked=False):
        """Seconds of LONG_STEPS on all multiprocessors, `each` blocks on every one, and blocks."""
        blocks = each * self.multiprocessors
        cycles = (self._cycles,) if clocked else ()
        arguments = (LONG_STEPS, *numbers, *cycles, self.sink(blocks * threads, dtype))
        return self.timed(name, instance, blocks, threads, arguments), blocks

    def copy_rate(self, size, times):
        """Bytes read and written a second, of an array of `size` bytes copied so many times."""
        source = self.sink(size // 4, np.float32)
        target, blocks = self.arrays.empty_like(source), BLOCKS * self.multiprocessors
        arguments = (source, target, np.int64(size // 16), times)
        return 2 * size * times / self.timed("copy_rate", (), blocks, THREADS, arguments)

    def global_latency(self):
        """Seconds of a read that no cache answers: a random cycle through all lines, a line a step."""
        lines, step = CHASE_BYTES // LINE, LINE // 4
        order = np.random.default_rng(0).permutation(lines).astype(np.uint32)
        following = np.empty(lines, np.uint32)
        following[order] = np.roll(order, -1)
        chase = self.sink(CHASE_BYTES // 4, np.uint32)
        chase[::step] = self.arrays.asarray(following * np.uint32(step))
        found = []
        for _ in range(self.repeats + 1):
            self.launch("global_latency", (), 1, 1, (chase, STEPS, self._cycles, self.sink(1, np.uint32)))
            found.append(int(self._cycles[0]))
        return found[0] / STEPS / self.clock  # the first: later ones find their lines in the cache

    def product_rate(self, dtype):
        """flop/s of a large matrix product by the vendor."""
        A = self.arrays.random.default_rng(0).random((PRODUCT, PRODUCT), dtype)
        return 2e3 * PRODUCT**3 / timing.device_ms(lambda _: A @ A, [None], self.repeats)

    def _clock(self):
        """Cycles a second."""
        self.launch("clock_ticks", (), 1, 1, (self._cycles, np.int64(CLOCK_NS)))
        nanoseconds, cycles = self._cycles.get()
        return 1e9 * cycles / nanoseconds


if __name__ == "__main__":
    raise SystemExit(main())
