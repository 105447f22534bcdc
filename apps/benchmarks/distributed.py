"""How do building, compressing, products and solves scale over processes, and what do they send?

    mpiexec -n P python -m h2gpu.apps.benchmarks.distributed [--device cpu|cuda] [--log2 17] [--weak] [--output …csv]

measures one row: n = 2^log2 sites in all (strong scaling) or of each process (weak), 2-D exponential covariance on a
perturbed grid, leaf 64, eta 1.5, 8 × 8 points, rtol 1e-7; seconds are those of the slowest process. A file that is
there gains a row.

    mpiexec -n P python -m h2gpu.apps.benchmarks.distributed --memory [--log2 17] [--output …csv]

traces what the largest process takes for points, trees and lists of blocks, in bytes a site of all.

    python -m h2gpu.apps.benchmarks.distributed --count [--log2 20] [--output …csv]

counts what the worst rank receives for a product, from the trees alone, for any number of processes; and a model,

    seconds = max(FLOOR + WAIT, n / P · SECONDS_A_SITE) + messages · LATENCY + bytes received / LINK

where a sum over the ranks of what lies above the cut is 2 log₂ P messages. Measured on one H200 are FLOOR and
SECONDS_A_SITE, on two H100 WAIT; LATENCY of more messages and LINK are assumed.
"""

import gc
import sys
import tracemalloc
from pathlib import Path
from time import perf_counter

import numpy as np

from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.options import at_least
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
from h2gpu.covariance import Nugget
from h2gpu.covariance.sites import Sites
from h2gpu.distributed import communicator, solvers
from h2gpu.distributed.assembly import blocks_of, own_part, sites_of_shares, sorted_sides
from h2gpu.distributed.compression import built_and_compressed
from h2gpu.distributed.ghosts import Share, travel
from h2gpu.distributed.matrix import NAME as EXCHANGE
from h2gpu.distributed.partition import Partition
from h2gpu.distributed.planning import planned
from h2gpu.h2matrix.planning.planner import LEAF_SIZES
from h2gpu.memory import StreamOrderedPool

LEAF_SIZE, ETA, ORDER, RTOL = 64, 1.5, 8, 1e-7
RANKS = 2, 4, 8, 16, 64, 256, 1024
WARM_UP = 1 << 14  # sites of a process
SAMPLED = 8  # ranks that are counted where there are more
PRODUCTS, NEIGHBOURS, NUGGET = 20, 20, 0.1
MEAN_RANK = 23  # after compression to 1e-7
SECONDS_A_SITE, FLOOR = (
    27e-3 / 2**25,
    0.49e-3,
)  # of a product on one H200: README
WAIT = 0.43e-3  # more than FLOOR for products of few sites on two H100: the host begins and ends an exchange
LATENCY, LINK = 20e-6, {"NVLink": 400e9, "InfiniBand": 45e9}  # assumed: seconds a message, bytes a second


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.distributed", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.distributed", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--log2", type=at_least(8), default=17, help="log2 of the number of sites")
    parser.add_argument("--no-solve", action="store_true", help="without Vecchia's factor and conjugate gradients")
    parser.add_argument("--weak", action="store_true", help="so many sites a process")
    parser.add_argument("--memory", action="store_true", help="memory of points, trees and lists of blocks alone")
    parser.add_argument("--count", action="store_true", help="count messages and bytes from the trees alone")
    parser.add_argument("-o", "--output", help="CSV file to write")
    options = parser.parse_args(argv)
    if options.count:
        rows, rank = counted(2**options.log2), 0
    else:
        comm = communicator(options.device)
        rank = comm.rank
        with comm.together("benchmark"):
            if comm.xp is not np:
                StreamOrderedPool(comm.xp)
            if comm.xp is not np and not options.memory:
                measured(comm, comm.size * WARM_UP, not options.no_solve)  # kernels, connections: once a process
            n = 2**options.log2 * (comm.size if options.weak else 1)
            row = remembered(comm, n) if options.memory else measured(comm, n, not options.no_solve)
        rows = [{"scaling": "weak" if options.weak else "strong"} | row]
    if rank == 0:
        print(tables.text(rows))
        if options.output:
            earlier = [] if options.count or not Path(options.output).exists() else tables.read(options.output)[1]
            tables.write(options.output, [*earlier, *rows], tables.device_name(options.device))


def counted(n):
    """One row a number of ranks: what the worst of them receives, and what the model makes of it."""
    tree = ClusterTree.build(problems.perturbed_grid(n), LEAF_SIZE)
    blocks, rows = BlockTree.build(tree, tree, Admissibility(ETA)), []
    for ranks in (p for p in RANKS if p <= len(tree.leaves) // 4):
        worst = of_worst(blocks, ranks)
        names = "messages", "far clusters", "near points", "off-diagonal far %", "off-diagonal near %", "summed"
        size = 8 * (MEAN_RANK * worst[1] + worst[2])
        row = {"n": n, "ranks": ranks} | dict(zip(names, worst.tolist()))
        rows.append(row | {"kB received": size / 1e3} | modelled(n, ranks, worst[0], size, worst[5]))
    return rows


def modelled(n, ranks, messages, size, summed=0):
    """{link: milliseconds of a product, speed-up} of the model."""
    if summed:
        messages, size = messages + 2 * np.ceil(np.log2(ranks)), size + 2 * 8 * MEAN_RANK * summed
    row, alone = {}, max(FLOOR, n * SECONDS_A_SITE)
    for link, bandwidth in LINK.items():
        seconds = max(FLOOR + WAIT * (ranks > 1), n / ranks * SECONDS_A_SITE) + messages * LATENCY + size / bandwidth
        row |= {f"{link} ms": 1e3 * seconds, f"{link} speed-up": alone / seconds}
    return row


def of_worst(blocks, ranks):
    """What `_of_rank` tells of the worst of some ranks."""
    partition = Partition.of(blocks.row_tree, ranks)
    some = np.unique(np.linspace(0, ranks - 1, min(ranks, SAMPLED)).round().astype(int))
    return np.max([_of_rank(blocks, partition, int(rank)) for rank in some], axis=0)


def _of_rank(blocks, partition, rank):
    """Messages, far clusters, near points received, off-diagonal blocks in per cent, clusters above that are summed."""
    far, near = (Share.of(pairs, True, partition, partition, rank) for pairs in (blocks.far, blocks.near))
    messages = len(set().union(*(receives for share in (far, near) for _, receives in [share.peers()])) - {rank})
    points = blocks.col_tree.sizes[near.ghosts].sum()
    parts = [100 * len(share.off) / max(1, len(share.off) + 2 * len(share.diagonal)) for share in (far, near)]
    below = len(np.setdiff1d(far.ghosts, far.above))
    return messages, below, points, *parts, len(far.above)


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
    points, cov = problems.perturbed_grid(n), problems.paper_covariance() + Nugget(NUGGET)
    share = own_part(comm, Sites.of(points, cov).points)
    (blocks, own), trees = _timed(comm, lambda: blocks_of(comm, [share], LEAF_SIZE, Admissibility(ETA)))
    placed = Sites.of(points[:1], cov).cov

    def compress():
        return built_and_compressed(comm, blocks, own, placed, ORDER, RTOL)

    B, compressed = _timed(comm, compress)
    if comm.xp is not np:  # once more: kernels of these sizes are there, and memory
        del B
        B, compressed = _timed(comm, compress)
    x = comm.xp.asarray(B.scatter(np.random.default_rng(0).standard_normal(n)))
    for _ in range(3):
        B @ x  # plans are made, then a graph is recorded
    before = list(comm.traffic.exchanges[EXCHANGE])
    _, product = _timed(comm, lambda: [B @ x for _ in range(PRODUCTS)])
    received = [(now - then) // PRODUCTS for now, then in zip(comm.traffic.exchanges[EXCHANGE], before)]
    worst = np.max(comm.gather([B.nbytes / 1e6, 100 * B.memory["off_diagonal"] / B.nbytes, *received]), axis=0)
    row = {
        "n": n,
        "ranks": comm.size,
        "trees s": trees,
        "compressed s": compressed,
        "A x ms": 1e3 * product / PRODUCTS,
        **_by_part(comm, B, x),
        "MB of the largest rank": worst[0],
        "off-diagonal %": worst[1],
        "messages a product": int(worst[2]),
        "kB received": worst[3] / 1e3,
    }
    return row | (_solved(comm, B, points, cov, x) if solves else dict.fromkeys(("Vecchia s", "CG s", "iterations")))


def _by_part(comm, B, x):
    """Milliseconds of a product's parts, each by itself: what it would take if nothing went on beside the exchange."""
    x, size = x[:, None], int(B.row_basis.starts[-1])
    x_hat, halos = B.col_basis.forward(x), (B.far.halo, B.near.halo)

    def arrive():
        return travel(comm, halos, (x_hat, x), EXCHANGE)()

    def own():
        y_hat = B.far.diagonal.multiply(B.col_basis.forward(x), size)
        return B.near.diagonal.multiply(x, B.rows.tree.n), B.row_basis.backward(y_hat)

    def others():
        return B.near.off.multiply(near, B.rows.tree.n), B.far.off.multiply(far, size)

    far, near = arrive()
    parts = {"exchange ms": arrive, "own blocks ms": own, "others' blocks ms": others}
    return {
        name: 1e3 * _timed(comm, lambda w=work: [w() for _ in range(PRODUCTS)])[1] / PRODUCTS
        for name, work in parts.items()
    }


def _solved(comm, B, points, cov, x):
    """Seconds of a factor and of a solution by it."""
    share = points if comm.rank == 0 else points[:0]
    W, vecchia = _timed(comm, lambda: solvers.vecchia(B, share, cov, NEIGHBOURS))
    solution, solve = _timed(comm, lambda: solvers.conjugate_gradients(B, x, W, rtol=1e-8))
    return {"Vecchia s": vecchia, "CG s": solve, "iterations": int(solution.iterations[0])}


def _timed(comm, work):
    """(result, seconds of the slowest rank)."""
    comm.sum(np.zeros(1), "start of a measurement")
    begun = perf_counter()
    result = work()
    if comm.xp is not np:
        comm.xp.cuda.Device().synchronize()
    return result, max(comm.gather(perf_counter() - begun))


if __name__ == "__main__":
    sys.exit(main())
