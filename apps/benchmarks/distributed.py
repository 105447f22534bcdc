"""How do building, compressing, products and solves scale over processes, and what do they send?

    mpiexec -n P python -m h2gpu.apps.benchmarks.distributed [--device cpu|cuda] [--log2 17,…] [--weak …] [-o …csv]

measures a row for each size: n = 2^log2 sites in all (strong scaling) or 2^weak of each process, 2-D exponential
covariance on a perturbed grid, leaf 64, eta 1.5, 8 × 8 points, rtol 1e-7; seconds are those of the slowest process, of
products the median of five times 20, of compressions on GPUs that of five after a first one, where they are short. A
file that is there gains each row as soon as it is measured; on GPUs the picture beside it is drawn at the end.

    mpiexec -n P python -m h2gpu.apps.benchmarks.distributed --memory [--log2 17] [--output …csv]

traces what the largest process takes for points, trees and lists of blocks, in bytes a site of all.

    python -m h2gpu.apps.benchmarks.distributed --count [--log2 20] [--measured …csv] [--output …csv]

counts what the worst rank receives for a product, from the trees alone, for any number of processes, and what a model
with the latency and bandwidth of a measured table makes of it (processes/model.py).
"""

import gc
import sys
import tracemalloc
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.processes import plots
from h2gpu.apps.benchmarks.processes.counting import ETA, LEAF_SIZE, counted
from h2gpu.apps.benchmarks.processes.model import Machine
from h2gpu.apps.benchmarks.processes.parts import FIRST, PRODUCTS, RUNS, exchange_of, median_seconds, seconds
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import at_least
from h2gpu.clustering import Admissibility
from h2gpu.covariance import Nugget
from h2gpu.covariance.sites import Sites
from h2gpu.distributed import communicator, solvers
from h2gpu.distributed.assembly import blocks_of, own_part, sites_of_shares, sorted_sides
from h2gpu.distributed.compression import built_and_compressed
from h2gpu.distributed.matrix import NAME as EXCHANGE
from h2gpu.distributed.planning import planned
from h2gpu.h2matrix.planning.planner import LEAF_SIZES
from h2gpu.memory import StreamOrderedPool

ORDER, RTOL = 8, 1e-7
WARM_UP = 1 << 14  # sites of a process
AGAIN = 6.0  # seconds of a first compression, without kernels and memory, that is not worth others
NEIGHBOURS, NUGGET = 20, 0.1


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.distributed", _work, argv)


def sizes(text):
    """Logarithms in a text, separated by commas."""
    return [at_least(8)(part) for part in text.split(",") if part]


def _work(argv):
    parser = Parser(prog="benchmarks.distributed", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--log2", type=sizes, default=None, help="log2 of numbers of sites in all")
    parser.add_argument("--weak", type=sizes, default=[], help="log2 of numbers of sites of each process")
    parser.add_argument("--solve", type=int, default=22, metavar="LOG2", help="solve with up to so many sites in all")
    parser.add_argument("--memory", action="store_true", help="memory of points, trees and lists of blocks alone")
    parser.add_argument("--count", action="store_true", help="count messages and bytes from the trees alone")
    parser.add_argument("--measured", help="table of GPUs, whose latency and bandwidth the model takes")
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    strong = ([] if options.weak else [17]) if options.log2 is None else options.log2
    if options.count:
        rows = [row for k in strong for row in counted(2**k, Machine.of(options.measured))]
        _tell(rows, options, anew=True)
        return
    comm = communicator(options.device)
    with comm.together("benchmark"):
        if comm.xp is not np:
            StreamOrderedPool(comm.xp)
        if comm.xp is not np and not options.memory:
            measured(comm, comm.size * WARM_UP, options.solve > 0)  # kernels, connections: once a process
        jobs = [("strong", 2**k) for k in strong] + [("weak", comm.size * 2**k) for k in options.weak]
        for scaling, n in jobs:
            row = remembered(comm, n) if options.memory else measured(comm, n, n <= 2**options.solve)
            if comm.rank == 0:
                _tell([{"scaling": scaling} | row], options)
    if comm.rank == 0 and options.output and options.device == "cuda" and find_spec("matplotlib"):
        plots.draw(tables.read(options.output)[1], Path(options.output).with_suffix(".png"))


def _tell(rows, options, anew=False):
    """Print rows, and add them to the table that is there, unless it is anew."""
    print(tables.text(rows), flush=True)
    if options.output:
        earlier = [] if anew or not Path(options.output).exists() else tables.read(options.output)[1]
        tables.write(options.output, [*earlier, *rows], tables.device_name(options.device))


def remembered(comm, n):
    """What the largest rank takes of the host before any matrix, beside the share of points that it was given.

    Traced by tracemalloc, in bytes a site of all: held when trees and blocks are there, the most until then, and the
    most of rank 0 while it plans.
    """
    points, cov = problems.perturbed_grid(n), problems.paper_covariance() + Nugget(NUGGET)
    sites = sites_of_shares(comm, own_part(comm, points).copy(), cov)
    del points
    ordered = sorted_sides(comm, sites, LEAF_SIZES[0])
    work = {
        "trees": lambda: blocks_of(comm, [sites.points], LEAF_SIZE, Admissibility(ETA), "median", LEAF_SIZES[0]),
        "plan": lambda: next(planned(comm, sites, ordered, RTOL, finest=LEAF_SIZES[0])),
    }
    told = np.max(comm.gather([figure for part in work.values() for figure in _traced(part)]), axis=0) / n
    names = "bytes a site", "at most", "plan keeps", "plan at most"
    return {"n": n, "ranks": comm.size} | {
        name: float(value) for name, value in zip(names, told) if name != "plan keeps"
    }


def _traced(work):
    """Bytes that are held with a result, and at most."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    gc.collect()
    figures = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return figures


def measured(comm, n, solves):
    """Seconds of the slowest rank, bytes of the largest, and what it received."""
    gc.collect()  # what the size before has left
    cov = problems.paper_covariance() + Nugget(NUGGET)
    share = Sites.of(problems.perturbed_grid(n, share=(comm.rank, comm.size)), cov).points
    (blocks, own), trees = seconds(comm, lambda: blocks_of(comm, [share], LEAF_SIZE, Admissibility(ETA)), 1)
    placed = Sites.of(share[:1], cov).cov

    def compress():
        return built_and_compressed(comm, blocks, own, placed, ORDER, RTOL)

    before = _traffic(comm)
    B, compressed = seconds(comm, compress, 1)
    sent = _traffic(comm) - before
    if comm.xp is not np and compressed < AGAIN:  # again: kernels of these sizes are there, and memory
        del B
        B, compressed = median_seconds(comm, compress, 1)
    x = comm.xp.asarray(np.random.default_rng(comm.rank).standard_normal(B.local_shape[1]))
    seconds(comm, lambda: B @ x, FIRST)
    before = list(comm.traffic.exchanges[EXCHANGE])
    _, product = median_seconds(comm, lambda: B @ x)
    received = [(now - then) // (RUNS * PRODUCTS) for now, then in zip(comm.traffic.exchanges[EXCHANGE], before)]
    worst = np.max(comm.gather([B.nbytes / 1e6, 100 * B.memory["off_diagonal"] / B.nbytes, *received, *sent]), axis=0)
    row = {
        "n": n,
        "ranks": comm.size,
        "trees s": trees,
        "compressed s": compressed,
        "A x ms": 1e3 * product,
        **exchange_of(B, x, product),
        "MB of the largest rank": worst[0],
        "off-diagonal %": worst[1],
        "messages a product": int(worst[2]),
        "kB received": worst[3] / 1e3,
        "messages to compress": int(worst[4]),
        "MB to compress": worst[5] / 1e6,
        "sums to compress": int(worst[6]),
    }
    return row | (_solved(comm, B, share, cov, x) if solves else dict.fromkeys(("Vecchia s", "CG s", "iterations")))


def _traffic(comm):
    """Messages, bytes and sums that a rank has received so far."""
    return np.array([*np.sum([[0, 0], *comm.traffic.exchanges.values()], axis=0), sum(comm.traffic.sums.values())])


def _solved(comm, B, share, cov, x):
    """Seconds of a factor and of a solution by it."""
    W, vecchia = seconds(comm, lambda: solvers.vecchia(B, share, cov, NEIGHBOURS), 1)
    solution, solve = seconds(comm, lambda: solvers.conjugate_gradients(B, x, W, rtol=1e-8), 1)
    return {"Vecchia s": vecchia, "CG s": solve, "iterations": int(solution.iterations[0])}


if __name__ == "__main__":
    sys.exit(main())
