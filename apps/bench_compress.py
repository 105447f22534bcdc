"""How long and how much memory from points to the compressed covariance matrix?

The problem of Boukaram et al., section 8.3: 2-D exponential covariance of length 0.1 on a perturbed grid, rtol 1e-7;
with the paper's parameters, with a coarser tree, and with the parameters that the one accuracy knob chooses. On the CPU
every row is a process of its own, so that its peak memory is its own; on a GPU the memory pool tells.

    python -m h2gpu.apps.bench_compress [--device cpu|cuda] [--largest 17] [--rtol 1e-7] [--output benchmarks/…csv]
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

import h2gpu
from h2gpu.apps import problems, tables
from h2gpu.h2matrix.assembly import assemble, plans
from h2gpu.h2matrix.construction import deferred
from h2gpu.progress import PhaseTimes, watched_by

PARAMETERS = {
    "paper": {"leaf_size": 64, "eta": 1.0, "order": 8},
    "coarser": {"leaf_size": 64, "eta": 1.5, "order": 9},
    "one knob": None,
}
SMALLEST = 14  # log2 of the first n
MEGABYTE = 1e6
TIMED_PRODUCTS = 5


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--largest", type=int, default=17, help="log2 of the largest n")
    parser.add_argument("--rtol", type=float, default=1e-7)
    parser.add_argument("--output", help="CSV file to write")
    parser.add_argument("--row", nargs=2, metavar=("LOG2N", "PARAMETERS"), help="measure one row, print it as JSON")
    options = parser.parse_args(arguments)
    if options.row:
        print(json.dumps(measure(2 ** int(options.row[0]), options.row[1], options.rtol, options.device)))
        return
    rows = []
    for log2n in range(SMALLEST, options.largest + 1):
        for name in PARAMETERS:
            work = _in_own_process if options.device == "cpu" else _in_this_process
            rows.append(work(log2n, name, options))
            print(tables.text(rows[-1:]), flush=True)
    print(tables.text(rows))
    if options.output:
        tables.write(options.output, rows, tables.device_name(options.device))


def measure(n, name, rtol, device):
    """One row of the table: seconds a phase, megabytes by part, errors."""
    xp, synchronize, pool = _device(device)
    points, cov = xp.asarray(problems.perturbed_grid(n)), problems.paper_covariance()
    if device == "cuda":  # context, libraries and kernels of these sizes are loaded once in a process
        _assemble(points, cov, name, rtol, None)
        pool.free_all_blocks()
    times = PhaseTimes(synchronize)
    begin = time.perf_counter()
    A, B, chosen = _assemble(points, cov, name, rtol, times)
    synchronize()
    total = time.perf_counter() - begin
    peak = pool.total_bytes() if device == "cuda" else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    x = xp.asarray(np.random.default_rng(0).standard_normal(n))
    row = {"n": n, "parameters": name, **chosen, "total s": total}
    row |= {f"{phase} s": seconds for phase, seconds in ({"plan": 0.0} | times.seconds).items()}
    row["A x ms"] = 1e3 * _median_seconds(lambda: B @ x, synchronize)
    for when, matrix in (("before", A), ("after", B)):
        row |= {f"{part} {when} MB": size / MEGABYTE for part, size in matrix.memory.items()}
    row["peak MB"] = peak / MEGABYTE
    row["error of compression"] = A.relative_error(B)
    row["error against exact"] = h2gpu.sampled_error(B, points, cov, random_state=0)
    return row


def _assemble(points, cov, name, rtol, times):
    """A (couplings not stored), B and the parameters, under the eyes of `times`."""
    with watched_by(times or (lambda *event: None)):
        parameters = PARAMETERS[name]
        if parameters is None:
            chosen = next(plans(points, cov, rtol))
            return *assemble(points, cov, chosen), {key: getattr(chosen, key) for key in PARAMETERS["paper"]}
        A = deferred(points, cov, **parameters)
        return A, h2gpu.compress(A, rtol), parameters


def _device(device):
    """Array module, its synchronization, and its memory pool, which keeps what it once has taken."""
    if device == "cpu":
        return np, lambda: None, None
    import cupy

    return cupy, cupy.cuda.Device().synchronize, cupy.get_default_memory_pool()


def _median_seconds(work, synchronize):
    work()
    seconds = []
    for _ in range(TIMED_PRODUCTS):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def _in_this_process(log2n, name, options):
    return measure(2**log2n, name, options.rtol, options.device)


def _in_own_process(log2n, name, options):
    command = [sys.executable, "-m", "h2gpu.apps.bench_compress", "--row", str(log2n), name]
    command += ["--device", options.device, "--rtol", str(options.rtol)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    main()
