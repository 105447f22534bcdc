"""What the worst rank receives for a product, counted from the trees alone; no rank is needed for that."""

import numpy as np

from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.processes.model import MEAN_RANK
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
from h2gpu.distributed.ghosts import Share
from h2gpu.distributed.partition import Partition

LEAF_SIZE, ETA = 64, 1.5
RANKS = 2, 4, 8, 16, 64, 256, 1024
SAMPLED = 8  # ranks that are counted where there are more


def counted(n, machine, ranks=RANKS):
    """One row a number of ranks: what the worst of them receives, and what the model of a Machine makes of it."""
    tree = ClusterTree.build(problems.perturbed_grid(n), LEAF_SIZE)
    blocks, rows = BlockTree.build(tree, tree, Admissibility(ETA)), []
    for p in (p for p in ranks if p <= len(tree.leaves) // 4):
        worst = of_worst(blocks, p)
        names = "messages", "far clusters", "near points", "off-diagonal far %", "off-diagonal near %", "summed"
        size = 8 * (MEAN_RANK * worst[1] + worst[2])
        row = {"n": n, "ranks": p} | dict(zip(names, worst.tolist()))
        rows.append(row | {"kB received": size / 1e3} | modelled(machine, n, p, worst[0], size, worst[5]))
    return rows


def modelled(machine, n, ranks, messages, size, summed=0):
    """{link: milliseconds of a product, speed-up} of the model."""
    row = {}
    for link in machine.links:
        alone, seconds = machine.product(n, 1, 0, 0, link), machine.product(n, ranks, messages, size, link, summed)
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
