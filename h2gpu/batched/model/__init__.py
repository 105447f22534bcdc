"""How long a batched routine will take, before it runs: counts of its kernel, constants of the device.

    t = launch + waves · α + max(moved, computed) + min(moved, computed) / waves
    moved    = bytes / β + spilled bytes / β of the cache
    computed = max( instructions / issue rate,  flops / rate,  tensor flops / rate,  shared bytes / rate,
                    shuffles / rate,  waves · instructions of a warp · cycle )
    α = Σ over one problem's chain: multiply-adds that wait · latency + barriers + roots + divisions
        + exchanges by shared memory and shuffles + reads of device memory + decisions

A wave is what a device holds at a time, by registers; the problems of the first one go through their phases together,
so that nothing of one phase hides behind another. The busiest multiprocessor decides. Constants are measured by
`python -m h2gpu.apps.autotune.microbench` and lie in kernels/tuning/<device>/model.csv.
Source: Anderson, Sheffield & Keutzer (2012), sections II, V.D, and what benchmarks/batched says of measurements.
"""

import csv
from functools import cache
from math import ceil

import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import source_folder
from h2gpu.batched.model import counts, pivoted, products, stepwise
from h2gpu.batched.model import registers as register_counts
from h2gpu.batched.qr.register_columns import LARGEST
from h2gpu.batched.registers.layouts import layout
from h2gpu.texts import brief
from h2gpu.typing import DTypeLike

SMALL = ("lu", "cholesky", "solve", "gauss-jordan", "lstsq")
ROUTINES = ("qr", "svd", "pivoted_qr", "gemm", *SMALL, *stepwise.ROUTINES)
DTYPES = ("float32", "float64", "complex64")
REGISTERS, THREAD_REGISTERS, THREADS, BLOCKS = 1 << 16, 255, 2048, 32  # of a multiprocessor; of a thread: 255
SCHEDULERS, WARP, GRAIN = 4, 32, 8  # GRAIN: registers come in so many
GROUP = 128  # threads of a block whose threads have problems of their own
REGISTER_SVD = 32  # the largest rank whose kernel is counted
ENDLESS = 1 << 30  # problems of a batch that fills the device
MEASURE, FIT = (f"python -m h2gpu.apps.autotune.{name}" for name in ("microbench", "fit_model"))
REGISTER_CHOLESKY = 16  # the largest order that a thread's is counted for


class Constants:
    """The measured constants of a device, by name: seconds, bytes/s, flop/s, shuffles/s."""

    def __init__(self, device, values):
        self.device, self._values = device, values

    def __call__(self, name, dtype=""):
        """One constant; LookupError where it has not been measured."""
        try:
            return self._values[name, dtype]
        except KeyError:
            of, fitted = f" of {dtype}" if dtype else "", name.endswith(("_step", "_flop"))
            raise LookupError(
                f"model: {name}{of} has not been measured on {self.device}; run {FIT if fitted else MEASURE} there"
            ) from None

    def barrier(self, threads):
        """Seconds of a __syncthreads of so many threads, between those that were measured."""
        barriers = [(name, s) for (name, _), s in self._values.items() if name.startswith("barrier_")]
        found = sorted((int(name.removeprefix("barrier_")), s) for name, s in barriers)
        if not found:
            self("barrier_32")
        return float(np.interp(threads, *zip(*found)))

    @classmethod
    def of(cls, device):
        """From kernels/tuning/<device>/model.csv; ValueError where there is none."""
        return cls(device, _table(tuning.folder_name(device)))


def predict_time(
    routine: str,
    batch: int,
    m: int,
    n: int,
    dtype: DTypeLike,
    device: str = tuning.FALLBACK,
    *,
    columns: int = 1,
    inner: int | None = None,
    layout: str = "auto",
) -> float:
    """Seconds that `batch` problems m × n of a routine take on a device, from the model.

    routine   "qr" (Q and R), "svd" (left vectors; beyond min(m, n) = 32 of square ones), "pivoted_qr" (m, n ≤ 128,
              full rank), "gemm", "gemv", "symv", "syrk" (A Aᵀ of m × n), "trsm" (from the left),
              "lu_factor" (pivoted), "cholesky" (of h2gpu.batched.registers up to 16 × 16, else that of batched);
              of h2gpu.batched.registers, that fit into registers: "lu", "solve", "gauss-jordan", "lstsq"
    columns   right-hand sides of solve, gauss-jordan, lstsq and trsm
    inner     inner dimension of gemm; default n
    layout    of h2gpu.batched.registers
    device    a name whose constants have been measured, such as "nvidia-h200" or "NVIDIA H200"

    Raises ValueError for bad arguments, sizes that no counted kernel takes, or a device without table; LookupError
    naming what has not been measured yet. Source: Anderson, Sheffield & Keutzer (2012), sections II and V.D.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> 0 < batched.predict_time("qr", 1000, 16, 16, np.float32, "nvidia-h200") < 1e-3
    True
    """
    precision = _name_of(dtype)
    if routine not in ROUTINES or precision not in DTYPES:
        raise ValueError(
            f"predict_time: expected a routine of {', '.join(ROUTINES)} and a precision of {', '.join(DTYPES)}, got "
            f"{routine!r} and {precision}"
        )
    inner = n if inner is None else inner
    for name, value in (("batch", batch), ("m", m), ("n", n), ("columns", columns), ("inner", inner)):
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"predict_time: expected an integer {name} ≥ 0, got {brief(value)}")
    constants = Constants.of(device)
    if not batch * m * n:
        return 0.0
    if routine == "gemm":
        work = products.gemm(dtype, batch, m, n, inner, _folder(device, "gemm"))
        return seconds(work, batch, dtype, constants)
    if np.dtype(dtype).kind == "c" and (routine not in SMALL or _in_steps(routine, m, n)):
        raise ValueError(f"predict_time: expected float32 or float64 for {routine}, got {np.dtype(dtype).name}")
    if _in_steps(routine, m, n):
        work = stepwise.counted(routine, batch, m, n, columns, dtype, device, constants("multiprocessors"))
        if work is None:
            raise ValueError(f"predict_time: no kernel of {routine} for {batch} of {m} × {n} of {precision} is counted")
        return stepwise.seconds(work, dtype, constants)
    k = columns if routine in ("solve", "gauss-jordan", "lstsq") else 0
    launches = _counted(routine, batch, m, n, dtype, device, k, layout)
    return sum(seconds(work, batch, dtype, constants) for work in launches)


def _in_steps(routine, m, n):
    """Whether a routine of a size is one of those of `stepwise`."""
    large = (routine == "cholesky" and n > REGISTER_CHOLESKY) or (routine == "svd" and m == n > REGISTER_SVD)
    return large or routine in stepwise.ROUTINES


def _name_of(dtype):
    """The name of a precision, or what was given in its place."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        return repr(dtype)


def seconds(work, batch, dtype, constants):
    """The time of a batch of problems of given counts."""
    real = "float64" if np.dtype(dtype) == np.float64 else "float32"
    moved = batch * (work.nbytes + work.passed) / constants("copy_rate")
    wait = chain(work, real, constants)
    if not work.words:  # what waves it comes in was not counted: a roofline behind the first read
        return constants("launch") + wait + max(moved, batch * work.product_flops / constants("product_rate", real))
    if work.spilled:
        moved += batch * work.spilled / constants("cache_rate")
    each, multiprocessors = GROUP // work.threads if work.threads < WARP else 1, constants("multiprocessors")
    busiest = ceil(ceil(batch / each) / multiprocessors)  # thread blocks of one multiprocessor
    waves = ceil(busiest / resident(work))
    alone = work.issued * WARP / work.threads  # instructions of a warp
    computed = max(
        busiest * each * multiprocessors * throughput(work, real, constants),
        alone * waves / constants("clock"),
    )
    first, second = max(moved, computed), min(moved, computed)
    return constants("launch") + waves * wait + first + second / waves


def wave(parts, dtype, constants, batch=ENDLESS, apart=False):
    """Seconds of each part of a kernel, Counts that follow one another, of an average block of a batch.

    What each waits for, its bytes, and the busiest of what computes: blocks of a wave go through their parts together.
    Bytes of passes come meanwhile, and those that the common cache still holds from the pass before at its rate.
    apart: of many waves that compute for longer than bytes take only the first begins together (`_bytes_apart`).
    """
    real, clock = "float64" if np.dtype(dtype) == np.float64 else "float32", constants("clock")
    held, multiprocessors = resident(counts.added(*parts)), constants("multiprocessors")
    busiest = min(held, ceil(batch / multiprocessors)) * multiprocessors
    waves = ceil(batch / (held * multiprocessors))
    at_once, first, moved, computed = batch / waves, min(batch, held * multiprocessors), [], []  # at_once: on average
    for part in parts:
        works = max(busiest * throughput(part, real, constants), part.issued * WARP / part.threads / clock)
        passes = _passed(at_once * part.passed, constants) if part.passed else 0.0
        moved.append(at_once * part.nbytes / constants("copy_rate"))
        computed.append(max(passes, chain(part, real, constants) + works))
    if apart and sum(moved) < sum(computed):
        moved = [_bytes_apart(part, batch, first, constants) for part in parts]
    return [of_memory + of_units for of_memory, of_units in zip(moved, computed)]


def _bytes_apart(part, batch, first, constants):
    """Seconds that bytes take an average block, `first` of the batch being resident at a time.

    Blocks of the first wave ask together, and wait for the bytes of all. Later ones read while others compute, and all
    write so, for nobody waits for a write: one block of each multiprocessor at a time, which has its share of the rate.
    """
    alone = part.nbytes / constants("copy_rate")
    turn, together = alone * min(batch, constants("multiprocessors")), first / batch if part.global_trips else 0
    return together * first * alone + (1 - together) * turn


def _passed(nbytes, constants):
    """Seconds of a pass over so many bytes, against the direction of the one before: the last are in the cache."""
    cached = min(nbytes, constants("cache_bytes"))
    return (nbytes - cached) / constants("copy_rate") + cached / constants("cache_rate")


def throughput(work, real, constants):
    """Seconds a problem where all that can overlap does."""
    issue_rate = SCHEDULERS * constants("multiprocessors") * constants("clock")
    times = [work.issued / issue_rate]
    for amount, name, of in (
        (work.flops, "fma_rate", real),
        (work.tensor_flops, "mma_rate", real),
        (work.shared_bytes, "shared_rate", ""),
        (work.shuffles, "shuffle_rate", ""),
    ):
        if amount:
            times.append(amount / constants(name, of))
    return max(times)


def chain(work, real, constants):
    """α: seconds that a problem waits from its begin to its end."""
    return (
        work.dependent * constants("fma_latency", real)
        + (work.barriers * constants.barrier(work.threads) if work.barriers else 0)
        + work.roots * constants("root_latency", real)
        + work.divisions * constants("division_latency", real)
        + work.shared_trips * constants("shared_latency")
        + work.shuffle_trips * constants("shuffle_latency")
        + work.global_trips * constants("global_latency")
        + work.stalls / constants("clock")
    )


def resident(work):
    """Thread blocks that a multiprocessor holds at a time, by registers and threads."""
    registers, threads = (
        min(THREAD_REGISTERS + 1, ceil(work.words / GRAIN) * GRAIN),
        max(work.threads, GROUP * (work.threads < WARP)),
    )
    return max(1, min(REGISTERS // (registers * threads), THREADS // threads, BLOCKS))


def _counted(routine, batch, m, n, dtype, device, k, name):
    """Counts of each launch that a problem goes through; ValueError where one is not counted."""
    if routine in SMALL:
        grid = layout(dtype, m, n + k, "thread" if routine == "cholesky" else name)
        if grid is not None and m >= n and (m == n or routine == "lstsq"):
            return [register_counts.small(routine, dtype, m, n, k, grid)]
    elif routine == "qr":
        return [_qr(batch, m, n, dtype, device)]
    elif routine == "svd" and min(m, n) <= REGISTER_SVD:
        return [counts.register_svd(dtype, m, n)]
    elif routine == "pivoted_qr" and max(m, n) <= LARGEST:
        return pivoted.pivoted_qr(dtype, m, n)
    raise ValueError(f"predict_time: no kernel of {routine} for {m} × {n} of {np.dtype(dtype).name} is counted")


def _qr(batch, m, n, dtype, device):
    """QR with Q goes where the tables send it."""
    rows = {}
    for table in ("qr_blocked", "qr"):
        try:
            rows[table] = tuning.first_row(_folder(device, table), table, dtype, columns=n, rows=m, matrices=batch)
        except LookupError:
            continue
        if table == "qr_blocked" and rows[table]["warps"]:
            return counts.blocked_qr(dtype, m, n, rows[table])
    if "qr" in rows:
        return counts.column_qr(dtype, m, n, rows["qr"])
    raise ValueError(f"predict_time: no kernel of qr for {m} × {n} of {np.dtype(dtype).name}")


def _folder(device, table):
    """Whose tuning table a device uses: its own, or that of the fallback."""
    own = tuning.folder_name(device)
    return own if (source_folder() / "tuning" / own / f"{table}.csv").is_file() else tuning.FALLBACK


@cache
def _table(folder):
    """{(constant, dtype): value} of a device's folder, measured ones and fitted ones."""
    path = source_folder() / "tuning" / folder / "model.csv"
    if not path.is_file():
        known = sorted(p.parent.name for p in path.parents[1].glob("*/model.csv"))
        raise ValueError(
            f"predict_time: expected a device of {', '.join(known)}, got {brief(folder)}; run {MEASURE} on it"
        )
    found = {}
    for name in ("model.csv", "model_fitted.csv"):
        if (path.parent / name).is_file():
            with (path.parent / name).open(newline="", encoding="utf-8") as file:
                found |= {(row["constant"], row["dtype"]): float(row["value"]) for row in csv.DictReader(file)}
    return found
