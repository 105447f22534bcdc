"""One job from points to the compressed matrix: its seconds, bytes and errors, as the row of a table."""

import json
import os
import subprocess
import sys
import time
from functools import cache

import numpy as np

import h2gpu
from h2gpu.apps.command.command import FailureError
from h2gpu.apps.command.devices import device as device_named
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix import compress
from h2gpu.h2matrix.assembly import plans, uncompressed
from h2gpu.h2matrix.construction import deferred
from h2gpu.memory import StreamOrderedPool, peak_memory
from h2gpu.progress import PhaseTimes, watched_by

MEGABYTE = 1e6
TIMED_PRODUCTS = 5
MOST_ERRORS_OF = 1 << 22  # points up to which the compression's own error is computed
SAMPLED_ENTRIES = 1 << 28  # of the exact covariance, for the error against it
MOST_ROWS = 256


def measure(points, cov, parameters, rtol, device, warm_up):
    """Seconds a phase, megabytes by part, errors.

    points       (n, dim) on the host
    parameters   of leaf_size, eta and order those that are given; without order, rtol is that of the whole
    warm_up      points that are compressed before: context, libraries and kernels are loaded once in a process
    """
    xp, synchronize, pool = device_of(device)
    if device == "cuda":
        if warm_up is not None:
            _compressed(xp.asarray(warm_up), cov, parameters, rtol, None)
        pool.restart()
    points, times = xp.asarray(points), PhaseTimes(synchronize)
    (B, chosen, kept), total = timed(lambda: _compressed(points, cov, parameters, rtol, times), synchronize)
    if device == "cuda":
        peaks = {"peak MB": pool.peak, "peak reserved MB": pool.peak_reserved}
    else:
        peaks = {"peak MB": peak_memory()}
    row = {"n": len(points), **chosen, "total s": total}
    A = deferred(Sites.of(points, cov), nearfield="computed", **chosen | kept)
    row |= {f"{phase} s": seconds for phase, seconds in ({"plan": 0.0} | times.seconds).items()}
    x = xp.asarray(np.random.default_rng(0).standard_normal(len(points)))
    B @ x  # plans are made
    row["A x ms"] = 1e3 * float(np.median([timed(lambda: B @ x, synchronize)[1] for _ in range(TIMED_PRODUCTS)]))
    for when, matrix in (("before", A), ("after", B)):
        row |= {f"{part} {when} MB": size / MEGABYTE for part, size in matrix.memory.items()}
    row |= {name: peak / MEGABYTE for name, peak in peaks.items()}
    if len(points) <= MOST_ERRORS_OF:
        row["error of compression"] = A.relative_error(B)
    rows = int(np.clip(SAMPLED_ENTRIES // len(points), 1, MOST_ROWS))
    row["error against exact"] = h2gpu.sampled_error(B, points, cov, rows=rows, random_state=0)
    return row


def of_own_process(module, device, *words, environment=()):
    """What a benchmark's --row prints, in a process of its own: its peak memory is its own, and its environment."""
    command = [sys.executable, "-m", module, "--device", device, "--row", *map(str, words)]
    environment = os.environ | dict(environment)
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise FailureError(f"the process of a row: {done.stderr.strip().rpartition(': error: ')[2]}")
    return json.loads(done.stdout)


def _compressed(points, cov, parameters, rtol, times):
    """The matrix, its parameters, and of a plan its orders by level and its trees, under the eyes of `times`."""
    names = "leaf_size", "eta", "order"
    with watched_by(times or (lambda *event: None)):
        sites = Sites.of(points, cov)
        if "order" not in parameters:
            chosen = next(plans(sites, rtol, **parameters))
            B = compress(uncompressed(sites, chosen), chosen.rtol, nearfield="stored")
            return B, {key: getattr(chosen, key) for key in names}, {"order": chosen.orders, "trees": chosen.trees}
        B = compress(deferred(sites, nearfield="computed", **parameters), rtol, nearfield="stored")
        return B, parameters, {}


@cache
def device_of(device):
    """Array module, its synchronization, and on a GPU its memory pool, which knows its peaks."""
    xp = device_named(device).arrays
    if xp is np:
        return np, lambda: None, None
    return xp, xp.cuda.Device().synchronize, StreamOrderedPool(xp)


def timed(work, synchronize):
    """work() and the seconds that it took, the device's among them."""
    synchronize()
    begin = time.perf_counter()
    result = work()
    synchronize()
    return result, time.perf_counter() - begin
