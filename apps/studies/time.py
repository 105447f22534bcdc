"""How does the time of compression grow, and what does a randomized SVD save?

Figures 14b and 15 of Boukaram et al.: time of orthogonalization, weights, truncation and projection against n for the
2-D exponential covariance (length 0.1, leaf 64, rtol 1e-7), with full SVDs and with randomized ones: 32 samples at rank
64 (8×8 Chebyshev points, eta 1), 64 samples at rank 121 (11×11, eta 2: a coarser tree of blocks).

    python -m h2gpu.apps.studies.time [--device cpu|cuda] [--largest 16] [--output FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

import h2gpu
from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.devices import device
from h2gpu.apps.command.options import at_least
from h2gpu.h2matrix.compression.decompositions import FullSVD, RandomizedSVD
from h2gpu.progress import PhaseTimes, watched_by

RTOL = 1e-7
SMALLEST = 13  # log2 of the first n
REPETITIONS = 3
TREES = {
    "rank 64": ({"leaf_size": 64, "eta": 1.0, "order": 8}, 32),
    "rank 121": ({"leaf_size": 64, "eta": 2.0, "order": 11}, 64),
}


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.time", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.time", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--largest", type=at_least(SMALLEST), default=16, help="log2 of the largest n")
    parser.add_argument("-o", "--output", default="benchmarks/compression", help="folder for table and picture")
    options = parser.parse_args(argv)
    xp = device(options.device).arrays
    rows = []
    for log2n in range(SMALLEST, options.largest + 1):
        for name in TREES:
            rows += measure(2**log2n, name, xp)
            print(tables.text(rows[-2:]), flush=True)
    target = Path(options.output) / f"study_time-{options.device}"
    tables.write(f"{target}.csv", rows, tables.device_name(options.device))
    plot(rows, f"{target}.png", tables.device_name(options.device))
    for tree in TREES:
        for svd in ("full", "randomized"):
            print(f"{tree}, {svd} SVD: time grows as n^{growth(rows, tree, svd):.2f}")


def measure(n, name, xp):
    """Rows of the table for one n and tree: full and randomized SVD, the median of some repetitions."""
    parameters, samples = TREES[name]
    A = h2gpu.build(xp.asarray(problems.perturbed_grid(n)), problems.paper_covariance(), **parameters)
    rows = []
    for svd, strategy in (("full", FullSVD()), ("randomized", RandomizedSVD(samples=samples))):
        h2gpu.compress(A, RTOL, svd=strategy)
        runs = [_timed(A, strategy, xp) for _ in range(REPETITIONS)]
        seconds = {phase: float(np.median([run[phase] for _, run in runs])) for phase in runs[0][1]}
        B = runs[-1][0]
        rows.append(
            {"n": n, "tree": name, "SVD": svd, "total s": sum(seconds.values())}
            | {f"{phase} s": value for phase, value in seconds.items()}
            | {"low rank after MB": (B.nbytes - B.memory["nearfield"]) / 1e6, "error": A.relative_error(B)}
        )
    return rows


def _timed(A, strategy, xp):
    synchronize = None if xp is np else xp.cuda.Device().synchronize
    with watched_by(PhaseTimes(synchronize)) as times:
        B = h2gpu.compress(A, RTOL, svd=strategy)
    return B, times.seconds


def growth(rows, tree, svd):
    """Slope of log time against log n."""
    chosen = [row for row in rows if (row["tree"], row["SVD"]) == (tree, svd)]
    return np.polyfit(np.log([row["n"] for row in chosen]), np.log([row["total s"] for row in chosen]), 1)[0]


def plot(rows, path, device):
    """Time against n for both trees, full and randomized."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(TREES), figsize=(9, 4), sharey=True, layout="constrained")
    for axes, name in zip(panels, TREES):
        for svd, style, colour in (("full", "o-", "#b2182b"), ("randomized", "s--", "#2166ac")):
            chosen = [row for row in rows if (row["tree"], row["SVD"]) == (name, svd)]
            seconds = [row["total s"] for row in chosen]
            label = "full SVD" if svd == "full" else f"randomized SVD, {TREES[name][1]} samples"
            axes.loglog([row["n"] for row in chosen], seconds, style, color=colour, label=label)
        sizes = np.array([row["n"] for row in chosen], float)
        axes.loglog(sizes, seconds[-1] * sizes / sizes[-1], ":", color="0.4", label="slope 1")
        axes.set_xscale("log", base=2)
        axes.set(xlabel="sites n", title=f"initial {name}, eta {TREES[name][0]['eta']:g}")
        axes.grid(True, color="0.9")
        axes.legend(frameon=False)
    panels[0].set_ylabel("compression, seconds")
    figure.suptitle(device)
    figure.savefig(path, dpi=160)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
