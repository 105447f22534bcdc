"""How would products and compression scale to 1,024 GPUs? Counts from trees, and a model; nothing is measured here.

    seconds = work of one GPU on its sites + wait + messages · latency + bytes received / link

as in benchmarks.distributed --count, with the latency and bandwidth of a measured table.

What the worst rank receives is counted from trees of 2^largest sites and of a quarter of them, and is a + b √(sites a
rank) beyond: a rank meets others along its border. A column says how far that law from the two smaller trees is off at
the largest. Seconds of compression are those of 2^25 sites on one H200, scale-cuda.csv ("grid-large"). Nothing of it
overlaps. Memory is that of points, tree and lists of blocks of a process's own sites; what it knows of others adds a
quarter of that or less (memory-cpu.csv).

    python -m h2gpu.apps.studies.processes.scaling [--largest 22] [--measured TABLE] [--output FOLDER]

H2Opus, whose published figures stand beside: Zampini et al. (2021), arXiv:2109.05451, abstract.
"""

import sys
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.processes.counting import ETA, LEAF_SIZE, of_worst
from h2gpu.apps.benchmarks.processes.model import MEAN_RANK, Machine
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.inputs.words import at_least
from h2gpu.clustering import Admissibility, BlockTree, ClusterTree

RANKS = 4, 16, 64, 256, 1024
STRONG, WEAK = 28, (22, 25)  # log2 of all sites, and of the sites of a GPU
COMPRESSION = (11.62 - 0.7167) / 2**25  # seconds a site from points to matrix, without planning: one H200, 2^25 sites
BUILT_RANK = 64  # before compression
SUMS_A_LEVEL = 4  # over the ranks in a truncation, two of them of a gather
GATHERS = 6  # beside those, and one a level above the cut
ON_A_NODE = 8  # GPUs that NVLink connects
H2OPUS = "H2Opus, 1,024 V100: “near-ideal”, published"


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.processes.scaling", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.processes.scaling", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--largest", type=at_least(12), default=22, help="log2 of the sites of the largest tree")
    parser.add_argument(
        "-o", "--output", default="benchmarks/distributed", help="folder for study_scaling.csv and .png"
    )
    parser.add_argument("--measured", help="table of GPUs, whose latency and bandwidth the model takes")
    options = parser.parse_args(argv)
    machine, (counts, kept) = Machine.of(options.measured), counted(options.largest)
    kinds = "strong", *(f"weak, 2^{m}" for m in WEAK)
    rows = [row for kind in kinds for row in scaled(kind, machine, counts, kept)]
    print(tables.text(rows))
    tables.write(Path(options.output) / "study_scaling.csv", rows, tables.device_name("cpu"))
    plot(rows, Path(options.output) / "study_scaling.png")


def counted(largest):
    """{ranks: {log2 of sites a rank: (messages, far clusters, near points, summed clusters) of the worst}}, and bytes a
    site that its process keeps: points, tree and lists of blocks."""
    counts, kept = {}, 0.0
    for log2n in (largest - 4, largest - 2, largest):
        tree = ClusterTree.build(problems.perturbed_grid(2**log2n), LEAF_SIZE)
        blocks = BlockTree.build(tree, tree, Admissibility(ETA))
        arrays = [tree.permutation, tree.start, tree.stop, tree.parent, tree.first_child, *blocks.far, *blocks.near]
        kept = 16 + (sum(a.nbytes for a in arrays) + tree.boxes.lower.nbytes + tree.boxes.upper.nbytes) / tree.n
        for ranks in (p for p in RANKS if p <= len(tree.leaves) // 4):
            messages, far, near, _, _, summed = of_worst(blocks, ranks)
            counts.setdefault(ranks, {})[log2n - np.log2(ranks)] = messages, far, near, summed
    return counts, kept


def law(found, log2m):
    """(messages, far clusters, near points, summed) at 2^log2m sites a rank, by a + b √m through the two largest
    counts; and how far those of far clusters that lead to the largest count are off, NaN for want of a third."""
    sizes = sorted(found)[-3:]
    values = {m: np.array(found[m], float) for m in sizes}
    off = float("nan")
    if len(sizes) == 3:
        off = _through(sizes[:2], values, sizes[2])[1] / values[sizes[2]][1] - 1
    _, far, near, _ = _through(sizes[-2:], values, log2m)
    return float(values[sizes[-1]][0]), far, near, float(values[sizes[-1]][3]), off


def _through(sizes, values, log2m):
    root = [2 ** (m / 2) for m in sizes]
    slope = (values[sizes[1]] - values[sizes[0]]) / (root[1] - root[0])
    return values[sizes[1]] + slope * (2 ** (log2m / 2) - root[1])


def scaled(kind, machine, counts, kept):
    """Rows of one kind of scaling, by ranks."""
    whole, own = (STRONG, None) if kind == "strong" else (None, int(kind.partition("^")[2]))
    rows = []
    for ranks in (1, *(p for p in sorted(counts) if len(counts[p]) > 1)):
        log2m = own if own is not None else whole - np.log2(ranks)
        messages, far, near, summed, off = law(counts[ranks], log2m) if ranks > 1 else (0.0, 0.0, 0.0, 0.0, 0.0)
        n = ranks * 2.0**log2m
        received = 8 * (MEAN_RANK * (far + 2 * summed) + near)
        row = {"scaling": kind, "GPUs": ranks, "sites": n, "far clusters": far, "near points": near, "summed": summed}
        row |= {"law off %": 100 * off, "kB received": received / 1e3}
        product, compression = seconds(machine, n, ranks, messages, far, received, summed)
        alone = seconds(machine, 2.0**log2m if own is not None else n, 1, 0, 0, 0, 0)
        share = 1 if own is not None else ranks
        row |= {"A x ms": 1e3 * product, "A x efficiency": alone[0] / share / product}
        row |= {"compression s": compression, "compression efficiency": alone[1] / share / compression}
        rows.append(row | {"GB of each process": kept * n / ranks / 1e9})
    return rows


def seconds(machine, n, ranks, messages, far, received, summed):
    """(product, compression) of the model, of n sites in all; received: bytes, with those of sums."""
    link = "NVLink" if ranks <= ON_A_NODE else "InfiniBand"
    hops = 2 * np.ceil(np.log2(ranks))  # of a sum over the ranks
    product = machine.product(n, ranks, messages + bool(summed) * hops, received, link)
    levels, above = np.log2(n / LEAF_SIZE), np.log2(ranks)
    factors = 8 * far * BUILT_RANK * (BUILT_RANK + MEAN_RANK)  # R and T of ghosts
    waits = 2 * messages + (levels * SUMS_A_LEVEL + above + GATHERS) * hops
    return product, n / ranks * COMPRESSION + waits * machine.latency + factors / machine.links[link]


def plot(rows, path):
    """Speed-up of a fixed number of sites, and efficiency of a fixed number a GPU."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
    kinds = dict.fromkeys(row["scaling"] for row in rows)
    styles = {"A x": ("o-", "#2166ac"), "compression": ("s--", "#b2182b")}
    for kind in kinds:
        some = [row for row in rows if row["scaling"] == kind]
        gpus = [row["GPUs"] for row in some]
        for what, (style, colour) in styles.items():
            efficiency = np.array([row[f"{what} efficiency"] for row in some])
            if kind == "strong":
                left.loglog(gpus, efficiency * gpus, style, color=colour, label=what)
            else:
                wide = kind.endswith(str(max(WEAK)))
                label = f"{what}, {kind.partition(' ')[2]} sites a GPU"
                right.semilogx(gpus, efficiency, style, color=colour, alpha=1 if wide else 0.5, label=label)
    left.loglog([1, 1024], [1, 1024], ":", color="0.3", label="ideal")
    left.set(title=f"model: 2^{STRONG} sites in all", xlabel="GPUs", ylabel="speed-up")
    right.axhline(1, linestyle=":", color="0.3")
    right.annotate(H2OPUS, (1024, 1), (2, 1.04), fontsize=8, color="0.3")
    right.set(title="model: as many sites a GPU", xlabel="GPUs", ylabel="efficiency", ylim=(0, 1.12))
    for axes in (left, right):
        axes.grid(True, color="0.9")
        axes.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=160)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
