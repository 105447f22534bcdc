"""The exchange of a product: how long it takes by itself, and how much of that goes on behind the diagonal blocks.

    hidden = 1 − (A x − A x without its exchange) / exchange

On GPUs all of these are CUDA graphs, as the product is, and of exchanges there are a dozen in one: the host's launches
are in none of them.
"""

from dataclasses import replace
from time import perf_counter

import numpy as np

from h2gpu.distributed import Alone
from h2gpu.distributed.ghosts import travel
from h2gpu.distributed.matrix import NAME
from h2gpu.distributed.recording import recorded

PRODUCTS, FIRST = 20, 3  # timed ones, and those before: plans are made, then a graph is recorded
RUNS = 5  # measurements, of which the median counts
TOGETHER = 12  # exchanges of a graph, one after the other
LARGE = {"numpy": 1 << 14, "cupy": 1 << 22}  # numbers that a rank sends to each other one, for the bandwidth


def seconds(comm, work, times=PRODUCTS):
    """(result of the last work(), seconds of one on the slowest rank)."""
    comm.sum(np.zeros(1), "start of a measurement")
    begun = perf_counter()
    for _ in range(times):
        result = work()
    if comm.xp is not np:
        comm.xp.cuda.Device().synchronize()
    return result, max(comm.gather((perf_counter() - begun) / times))


def median_seconds(comm, work, times=PRODUCTS):
    """The same, the median of several measurements; a result goes before the next is made."""
    taken = []
    for _ in range(RUNS):
        result = None
        result, one = seconds(comm, work, times)
        taken.append(one)
    return result, float(np.median(taken))


def exchange_of(B, x, product):
    """{column: value} of a matrix's exchange; x: a local vector, product: seconds of B @ x. Calls of all ranks."""
    comm = B.comm
    if comm.size == 1:
        return {}
    with np.errstate(all="ignore"):
        mute = silent(B)
        seconds(comm, lambda: mute @ x, FIRST)
        without = median_seconds(comm, lambda: mute @ x)[1]
    halos, vectors = (B.far.halo, B.near.halo), (B.col_basis.forward(x[:, None]), x[:, None])
    exchange = _each(B, "exchange", lambda: travel(comm, halos, vectors, NAME)())
    hidden = 100 * min(1.0, max(0.0, 1 - (product - without) / exchange))
    names = "without exchange ms", "exchange ms", "hidden %"
    return dict(zip(names, (1e3 * without, 1e3 * exchange, hidden))) | links(B)


def links(B):
    """{column: value}: microseconds of an exchange of one number with each other rank, and GB/s received of large ones.

    B   a DistributedH2Matrix, whose graphs these are
    """
    comm, xp, found = B.comm, B.xp, []
    others = [q for q in range(comm.size) if q != comm.rank]
    for count in (1, LARGE[xp.__name__]):
        sent, arriving = xp.zeros(count), {q: xp.empty(count) for q in others}

        def work(sent=sent, arriving=arriving):
            comm.start(dict.fromkeys(others, sent), arriving, "links")()

        found.append(_each(B, f"links, {count}", work))
    return {"latency us": 1e6 * found[0], "GB/s": 8e-9 * len(others) * LARGE[xp.__name__] / found[1]}


def silent(B):
    """The same matrix, whose exchanges bring nothing: ghosts are what was in memory."""
    comm = Alone(B.xp)
    comm.rank, comm.size = B.comm.rank, B.comm.size
    return replace(B, comm=comm)


def _each(B, key, work):
    """Seconds of work(), recorded where the ranks of a matrix record."""
    x = B.xp.zeros((1, 1))  # a graph has an argument

    def several(x):
        for _ in range(TOGETHER):
            work()
        return x

    def once():
        return recorded(B.comm, B, key, several, x)

    seconds(B.comm, once, FIRST)
    return seconds(B.comm, once)[1] / TOGETHER
