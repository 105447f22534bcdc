"""How does the time of compression grow, and what does a randomized SVD save?

Figures 14b and 15 of Boukaram et al.: time of orthogonalization, weights, truncation and projection against n for the
2-D exponential covariance (length 0.1, leaf 64), in both precisions, on two trees: rank 64 with 32 samples (8×8
Chebyshev points, eta 1), rank 121 with 64 (11×11, eta 2: a coarser tree of blocks). Four ways to the SVDs of a level:

    full           every singular value (`FullSVD`)
    adaptive       samples doubled where they miss too much: rtol is kept (`RandomizedSVD`)
    fixed          so many samples whatever they miss, ranks by the tolerance: the paper's (`FixedSamples`)
    fixed ranks    the same, all samples kept: no rank is read from the device

    python -m h2gpu.apps.studies.time [--device cpu|cuda] [--largest 16] [--output FOLDER]

Seconds are those of the wall on a GPU, CPU seconds of all threads on a CPU.
"""

import sys
import time
from itertools import product
from pathlib import Path

import numpy as np

import h2gpu
from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.command.devices import device
from h2gpu.apps.command.inputs.words import at_least
from h2gpu.h2matrix.compression.decompositions import FixedSamples, FullSVD, RandomizedSVD
from h2gpu.progress import PhaseTimes, watched_by

RTOL = {"float64": 1e-7, "float32": 1e-5}  # the paper's; float32 can promise no less than 1e-6
SMALLEST = 13  # log2 of the first n
REPETITIONS = 3
TREES = {
    "rank 64": ({"leaf_size": 64, "eta": 1.0, "order": 8}, 32),
    "rank 121": ({"leaf_size": 64, "eta": 2.0, "order": 11}, 64),
}
WAYS = {
    "full": lambda samples: FullSVD(),
    "adaptive": lambda samples: RandomizedSVD(samples=samples),
    "fixed": lambda samples: FixedSamples(samples=samples),
    "fixed ranks": lambda samples: FixedSamples(samples=samples, truncated=False),
}
STYLES = {
    "full": ("o-", "#b2182b", "full SVD"),
    "adaptive": ("s--", "#2166ac", "adaptive samples"),
    "fixed": ("^-.", "#4393c3", "fixed samples"),
    "fixed ranks": ("v:", "#92c5de", "fixed samples, all kept"),
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
    for dtype, log2n, tree in product(RTOL, range(SMALLEST, options.largest + 1), TREES):
        here = measure(2**log2n, dtype, tree, xp)
        rows += here
        print(tables.text(here), flush=True)
    target = Path(options.output) / f"study_time-{options.device}"
    tables.write(f"{target}.csv", rows, tables.device_name(options.device))
    plot(rows, f"{target}.png", tables.device_name(options.device))
    print("\n".join([*growths(rows), *conclusion(rows)]))


def measure(n, dtype, tree, xp):
    """Rows of the table for one n, precision and tree: every way, the median of some repetitions."""
    parameters, samples = TREES[tree]
    points = xp.asarray(problems.perturbed_grid(n).astype(dtype))
    A = h2gpu.build(points, problems.paper_covariance(), **parameters)
    rows = []
    for way, strategy in WAYS.items():
        h2gpu.compress(A, RTOL[dtype], svd=strategy(samples), storage="full")
        runs = [_timed(A, RTOL[dtype], strategy(samples), xp) for _ in range(REPETITIONS)]
        B, unit = runs[-1][0], "CPU s" if xp is np else "s"
        seconds = {phase: float(np.median([run[phase] for _, run in runs])) for phase in runs[0][1]}
        rows.append(
            {"n": n, "dtype": dtype, "tree": tree, "SVD": way, f"total {unit}": sum(seconds.values())}
            | {f"{phase} {unit}": value for phase, value in seconds.items()}
            | {"low rank after MB": (B.nbytes - B.memory["nearfield"]) / 1e6}
            | {"largest rank": int(B.row_basis.ranks.max()), "rtol": RTOL[dtype], "error": A.relative_error(B)}
        )
    return rows


def _timed(A, rtol, strategy, xp):
    synchronize = None if xp is np else xp.cuda.Device().synchronize
    clock = time.process_time if xp is np else time.perf_counter
    with watched_by(PhaseTimes(synchronize, clock)) as times:
        B = h2gpu.compress(A, rtol, svd=strategy, storage="full")
    return B, times.seconds


def _seconds(row, phase):
    """Those of a phase, of the wall or of the CPU."""
    return row[f"{phase} s"] if f"{phase} s" in row else row[f"{phase} CPU s"]


def growths(rows):
    """A line for each precision, tree and way: the slope of log time against log n."""
    for dtype, tree, way in product(RTOL, TREES, WAYS):
        some = [row for row in rows if (row["dtype"], row["tree"], row["SVD"]) == (dtype, tree, way)]
        if len({row["n"] for row in some}) > 1:
            slope = np.polyfit(np.log([row["n"] for row in some]), np.log([_seconds(row, "total") for row in some]), 1)[
                0
            ]
            yield f"{dtype}, {tree}, {way} SVD: time grows as n^{slope:.2f}"


def conclusion(rows):
    """A sentence a way: in how many pairs it is slower than the full SVD, by what factor, and where it misses rtol."""
    full = {_key(row): row for row in rows if row["SVD"] == "full"}
    for way in WAYS:
        some = [row for row in rows if row["SVD"] == way]
        if way == "full" or not some:
            continue
        whole = [_seconds(row, "total") / _seconds(full[_key(row)], "total") for row in some]
        alone = [_seconds(row, "truncate") / _seconds(full[_key(row)], "truncate") for row in some]
        missed = [row["error"] / row["rtol"] for row in some if row["error"] > row["rtol"]]
        yield (
            f"{way}: slower than the full SVD in {_slower(whole)}; truncation alone in {_slower(alone)}; "
            f"misses rtol in {len(missed)}" + (f", by a factor of {max(missed):.4g} at most" if missed else "")
        )


def _key(row):
    return row["n"], row["dtype"], row["tree"]


def _slower(ratios):
    """How many of them exceed 1, and their range, in words."""
    return (
        f"{sum(r > 1 for r in ratios)} of {len(ratios)} pairs ({min(ratios):.2f} to {max(ratios):.2f} times its time)"
    )


def plot(rows, path, device):
    """Time against n: a panel a tree and precision, every way."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shared = {"sharex": True, "sharey": True, "squeeze": False, "layout": "constrained"}
    figure, panels = plt.subplots(len(RTOL), len(TREES), figsize=(9.5, 7), **shared)
    for axes, (dtype, tree) in zip(panels.flat, product(RTOL, TREES)):
        for way, (style, colour, label) in STYLES.items():
            some = [row for row in rows if (row["dtype"], row["tree"], row["SVD"]) == (dtype, tree, way)]
            sizes, seconds = np.array([row["n"] for row in some], float), [_seconds(row, "total") for row in some]
            axes.loglog(sizes, seconds, style, color=colour, label=label)
        axes.loglog(sizes, seconds[-1] * sizes / sizes[-1], ":", color="0.4", label="slope 1")
        axes.set_xscale("log", base=2)
        parameters, samples = TREES[tree]
        axes.set(title=f"{dtype}, initial {tree}, eta {parameters['eta']:g}, {samples} samples")
        axes.grid(True, color="0.9")
    for axes in panels[-1]:
        axes.set_xlabel("sites n")
    for axes in panels[:, 0]:
        axes.set_ylabel("compression, " + ("seconds" if "total s" in rows[0] else "CPU seconds"))
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(device)
    figure.savefig(path, dpi=160)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
