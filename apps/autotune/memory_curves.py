"""How long does a read wait, over stride and footprint, and how many multiprocessors does the memory's rate take?

Figure 1 of Anderson, Sheffield & Keutzer (2012), and their measurement of bandwidth by multiprocessor.

    latency     one thread follows addresses, each read's result the next address, a stride apart, around a footprint of
                memory that was just written; 65,536 steps, or all, come before the clock runs; through the
                multiprocessor's own cache, and past it
    bandwidth   copies by so many multiprocessors, a block of 1,024 threads each: of memory, and of what the common
                cache holds

    python -m h2gpu.apps.autotune.memory_curves [-o FOLDER] [--repeats 5] [--draw]

Writes study_latency.csv, study_bandwidth.csv and study_latency.png (with matplotlib).
"""

import statistics
import sys
from itertools import product
from pathlib import Path

import numpy as np

from h2gpu.apps.autotune.microbench import CACHED_BYTES, CACHED_TIMES, STEPS, Bench
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import at_least

KIB, MIB = 1 << 10, 1 << 20
STRIDES = 16, 32, 64, 128, 512, 4 * KIB, 64 * KIB, 2 * MIB  # bytes
FOOTPRINTS = [size * KIB for size in (16, 64, 128, 192, 256, 512)]
FOOTPRINTS += [size * MIB for size in (1, 4, 16, 24, 32, 48, 64, 128, 512, 2048)]  # bytes
FEWEST, MOST_WARM, OFTEN = 8, 1 << 16, 1 << 14  # places of a cycle; steps before the clock runs; places met again
COPIED_BYTES, THREADS = 1 << 28, 1024  # of each array, beyond any cache; threads of a block
ALONE_BYTES = 120 * KIB  # of shared memory, with which a multiprocessor holds one block
SHARES = 1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128  # multiprocessors, and all
WAYS = {"own cache, ns": True, "past it, ns": False}
RATES = {"memory": (COPIED_BYTES, 1), "common cache": (CACHED_BYTES, CACHED_TIMES)}


def main(argv=None):
    """The command; returns the exit status."""
    return run("memory_curves", _work, argv)


def _work(argv):
    p = Parser(prog="memory_curves", description=__doc__.splitlines()[0], allow_abbrev=False)
    p.add_argument("-o", "--output", type=Path, default="benchmarks/batched", metavar="FOLDER", help="of the tables")
    p.add_argument("--repeats", type=at_least(1), default=timing.REPEATS, metavar="N", help="for a median")
    p.add_argument("--draw", action="store_true", help="draw the folder's tables, measure nothing")
    options = p.parse_args(argv)
    if not options.draw:
        _measure(options)
    draw(options.output)


def _measure(options):
    device, bench = timing.gpu_name(), Curves(options.repeats)
    for name, rows in (("latency", latencies(bench)), ("bandwidth", bandwidths(bench))):
        found = list(rows)
        print(tables.text(found), flush=True)
        tables.write(options.output / f"study_{name}.csv", found, device)


def latencies(bench):
    """A row each stride and footprint that has FEWEST places or more."""
    for stride, footprint in product(STRIDES, FOOTPRINTS):
        if footprint >= FEWEST * stride:
            row = {"figure": "1", "stride": stride, "footprint": footprint}
            yield row | {name: 1e9 * bench.chase(stride, footprint, near) for name, near in WAYS.items()}


def bandwidths(bench):
    """A row a number of multiprocessors: GB read and written a second, and of each."""
    for count in [n for n in SHARES if n < bench.multiprocessors] + [bench.multiprocessors]:
        row = {"multiprocessors": count}
        for name, (size, times) in RATES.items():
            rate = 1e-9 * bench.share(count, size, times)
            row |= {f"{name}, GB/s": rate, f"{name}, GB/s each": rate / count}
        yield row


def cycle(count, step, xp):
    """Where each of `count` places `step` words apart points to: the next one, the last to the first; uint32."""
    return ((xp.arange(1, count + 1, dtype=np.int64) % count) * step).astype(np.uint32)


class Curves(Bench):
    """Launches for the curves."""

    chain = None

    def chase(self, stride, footprint, near):
        """Seconds a read; of cycles that a cache may not hold, by one launch: the next would find what it left."""
        if self.chain is None:
            self.chain = self.sink(FOOTPRINTS[-1] // 4, np.uint32)
        step, count = stride // 4, footprint // stride
        self.chain[: count * step : step] = cycle(count, step, self.arrays)
        arguments = self.chain, min(count, MOST_WARM), STEPS, self._cycles, self.sink(1, np.uint32)
        found = []
        for _ in range(self.repeats if count <= OFTEN else 1):
            self.launch("chase_latency", (near,), 1, 1, arguments)
            found.append(int(self._cycles[0]))
        return statistics.median(found) / STEPS / self.clock

    def share(self, count, size, times):
        """Bytes read and written a second by `count` multiprocessors, of `size` bytes copied so many times."""
        source = self.sink(size // 4, np.float32)
        arguments = source, self.arrays.empty_like(source), np.int64(size // 16), times
        return 2 * size * times / self.timed("copy_rate", (), count, THREADS, arguments, ALONE_BYTES)


def draw(folder):
    """study_latency.png of the two tables, where matplotlib is installed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from h2gpu.apps.studies.baselines.plots import curves, grid

    latency, bandwidth = (tables.read(folder / f"study_{name}.csv")[1] for name in ("latency", "bandwidth"))
    figure, ((*reads, rates),) = grid(1, 3)
    for axes, way in zip(reads, WAYS):
        curves(axes, latency, lambda r: f"{int(r['stride']):,} bytes", way, "footprint", log=False)
        axes.set(title=f"a read, by stride: {way.partition(',')[0]}", xlabel="footprint", ylabel="ns")
        axes.set_xticks([16 * KIB, 128 * KIB, MIB, 8 * MIB, 64 * MIB, 512 * MIB])
        axes.xaxis.set_major_formatter(lambda x, _: f"{x / MIB:g} MiB" if x >= MIB else f"{x / KIB:g} KiB")
    lines = [r | {"method": name, "GB/s": r[f"{name}, GB/s"]} for name in RATES for r in bandwidth]
    curves(rates, lines, lambda r: r["method"], "GB/s", "multiprocessors")
    rates.set(title="copies", xlabel="multiprocessors", ylabel="GB/s")
    figure.savefig(folder / "study_latency.png", dpi=150)
    matplotlib.pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
