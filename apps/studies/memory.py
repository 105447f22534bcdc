"""Does compression save memory, and which truncation does?

Figure 14a of Boukaram et al.: memory of the 2-D exponential covariance (length 0.1, leaf 64, 8×8 Chebyshev points, rtol
1e-7) before and after compression against n, for the truncation of the basis itself (`method="basis"`, the paper's) and
for total weights (`method="weighted"`).

    python -m h2gpu.apps.studies.memory [--largest 16] [--output FOLDER]
"""

import sys
from pathlib import Path

import h2gpu
from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.options import at_least

RTOL = 1e-7
SMALLEST = 11  # log2 of the first n
MEGABYTE = 1e6


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.memory", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.memory", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--largest", type=at_least(SMALLEST), default=16, help="log2 of the largest n")
    parser.add_argument("-o", "--output", default="benchmarks/compression", help="folder for study_memory.csv and .png")
    options = parser.parse_args(argv)
    rows = []
    for log2n in range(SMALLEST, options.largest + 1):
        rows += measure(2**log2n)
        print(tables.text(rows[-3:]), flush=True)
    tables.write(Path(options.output) / "study_memory.csv", rows, tables.device_name("cpu"))
    plot(rows, Path(options.output) / "study_memory.png")
    print(conclusion(rows))


def measure(n):
    """Rows of the table for one n: before, after each method."""
    A = h2gpu.build(problems.perturbed_grid(n), problems.paper_covariance(), leaf_size=64, eta=1.0, order=8)
    rows = [_row(n, "before", A, 0.0)]
    for method in ("basis", "weighted"):
        B = h2gpu.compress(A, RTOL, method=method)
        rows.append(_row(n, method, B, A.relative_error(B)))
    return rows


def _row(n, name, matrix, error):
    memory = {part: size / MEGABYTE for part, size in matrix.memory.items()}
    low_rank = memory["total"] - memory["nearfield"]
    return {"n": n, "matrix": name, **memory, "low rank": low_rank, "error": error}


def conclusion(rows):
    """What the largest n says, in one sentence each."""
    before, basis, weighted = rows[-3:]
    removed = 1 - basis["low rank"] / before["low rank"]
    sentence = "removes nothing" if removed < 0.001 else f"removes {removed:.1%}"
    left = weighted["low rank"] / before["low rank"]
    return (
        f"n = {before['n']}: truncating the Chebyshev basis itself {sentence} of the low-rank memory: Lagrange bases\n"
        f"are well conditioned, every vector counts. Total weights leave {left:.1%}, error {weighted['error']:.1e}."
    )


def plot(rows, path):
    """Memory against n, logarithmic, dense part and n² beside it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    sizes = sorted({row["n"] for row in rows})
    styles = {"before": ("o-", "#b2182b", "low rank, uncompressed"), "basis": ("x--", "#ef8a62", "low rank, “basis”")}
    styles["weighted"] = ("s-", "#2166ac", "low rank, “weighted”")
    for name, (style, colour, label) in styles.items():
        memory = [row["low rank"] for row in rows if row["matrix"] == name]
        axes.loglog(sizes, memory, style, color=colour, label=label)
    nearfield = [row["nearfield"] for row in rows if row["matrix"] == "before"]
    axes.loglog(sizes, nearfield, "d-", color="0.45", label="nearfield (dense blocks)")
    axes.loglog(sizes, [8 * n * n / MEGABYTE for n in sizes], ":", color="0.2", label="dense matrix, 8 n² bytes")
    axes.set_xscale("log", base=2)
    axes.set(xlabel="sites n", ylabel="memory, MB", ylim=(0.5, None), title="Covariance as H²-matrix, rtol 1e-7")
    axes.grid(True, which="major", color="0.9")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=160)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
