"""Does compression save memory, and which truncation does?

Figure 14a of Boukaram et al.: memory of the 2-D exponential covariance (length 0.1, leaf 64, 8×8 Chebyshev points)
before and after compression against n, for the truncation of the basis itself (`method="basis"`, the paper's), for
total weights (`method="weighted"`), and for these with what may be rounded in float32 (`storage="auto"`), a row of its
own: nothing is rounded in the others. Trees split at medians and, as the paper's, at means; both precisions.

    python -m h2gpu.apps.studies.memory [--device cpu|cuda] [--largest 16] [--output FOLDER]
"""

import sys
from itertools import product
from pathlib import Path

import h2gpu
from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.devices import CudaDevice, Device
from h2gpu.apps.command.inputs.words import at_least

RTOL = {"float64": 1e-7, "float32": 1e-5}
SPLITS = "median", "mean"
SMALLEST = 11  # log2 of the first n
MEGABYTE = 1e6
WAYS = {"basis": ("basis", "full"), "weighted": ("weighted", "full"), "weighted, rounded": ("weighted", "auto")}
STYLES = {
    "before": ("o-", "#b2182b", "before"),
    "basis": ("x--", "#ef8a62", "“basis”"),
    "weighted": ("s-", "#2166ac", "“weighted”"),
    "weighted, rounded": ("^:", "#67a9cf", "“weighted”, rounded"),
}


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.memory", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.memory", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--largest", type=at_least(SMALLEST), default=16, help="log2 of the largest n")
    parser.add_argument("-o", "--output", default="benchmarks/compression", help="folder for table and picture")
    options = parser.parse_args(argv)
    device = CudaDevice() if options.device == "cuda" else Device()
    rows = []
    for dtype, split, log2n in product(RTOL, SPLITS, range(SMALLEST, options.largest + 1)):
        here = measure(2**log2n, dtype, split, device)
        rows += here
        print(tables.text(here), flush=True)
    target = Path(options.output) / f"study_memory-{options.device}"
    tables.write(f"{target}.csv", rows, tables.device_name(options.device))
    plot(rows, f"{target}.png")
    print(conclusion(rows))


def measure(n, dtype, split, device):
    """Rows of the table for one n: before, and after each way. A way that makes the same as the one before has none."""
    points = device.take(problems.perturbed_grid(n).astype(dtype))
    A = h2gpu.build(points, problems.paper_covariance(), leaf_size=64, eta=1.0, order=8, split=split)
    rows = [_row(n, dtype, split, "before", A, 0.0)]
    for name, (method, storage) in WAYS.items():
        if storage == "full" or dtype == "float64":  # nothing of float32 is rounded
            B = h2gpu.compress(A, RTOL[dtype], method=method, storage=storage)
            rows.append(_row(n, dtype, split, name, B, A.relative_error(B)))
    return rows


def _row(n, dtype, split, name, matrix, error):
    memory = {part: size / MEGABYTE for part, size in matrix.memory.items()}
    low_rank = memory["total"] - memory["nearfield"]
    return {"n": n, "dtype": dtype, "split": split, "matrix": name, **memory, "low rank": low_rank, "error": error}


def conclusion(rows):
    """What the largest n says of each precision and split, in a sentence."""
    sentences = []
    for dtype, split in product(RTOL, SPLITS):
        largest = max(row["n"] for row in rows)
        some = {r["matrix"]: r for r in rows if (r["n"], r["dtype"], r["split"]) == (largest, dtype, split)}
        left = {name: some[name]["low rank"] / some["before"]["low rank"] for name in WAYS if name in some}
        shares = ", ".join(f"{name} {share:.1%}" for name, share in left.items())
        sentences.append(f"{dtype}, {split}, n = {largest}: left of the low-rank memory by {shares}")
    return "\n".join(sentences)


def plot(rows, path):
    """Low-rank memory against n, dense part and n² beside it: a panel a split and precision."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(9.5, 7), layout="constrained", sharex=True, sharey=True)
    for axes, (dtype, split) in zip(panels.flat, product(RTOL, SPLITS)):
        some = [row for row in rows if (row["dtype"], row["split"]) == (dtype, split)]
        for name, (style, colour, label) in STYLES.items():
            points = [(row["n"], row["low rank"]) for row in some if row["matrix"] == name]
            if points:
                axes.loglog(*zip(*points), style, color=colour, label=f"low rank, {label}")
        before = [row for row in some if row["matrix"] == "before"]
        sizes = [row["n"] for row in before]
        axes.loglog(sizes, [row["nearfield"] for row in before], "d-", color="0.45", label="nearfield, before")
        item = 8 if dtype == "float64" else 4
        axes.loglog(sizes, [item * n * n / MEGABYTE for n in sizes], ":", color="0.2", label="dense matrix")
        axes.set_xscale("log", base=2)
        axes.set(title=f"{dtype}, {split} splits, rtol {RTOL[dtype]:g}", ylim=(0.05, None))
        axes.grid(True, which="major", color="0.9")
    for axes in panels[-1]:
        axes.set_xlabel("sites n")
    for axes in panels[:, 0]:
        axes.set_ylabel("memory, MB")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=160)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
