"""How do time and memory grow, from 2^14 points to tens of millions?

From points to the compressed matrix, and A x with it, in 2-D and 3-D, exponential and Matérn 3/2, for a perturbed grid,
points in clusters, and the sites of data/jacksboro.h5. A slope of 1 in log–log is linear growth.

    python -m h2gpu.apps.benchmarks.scale [--device cpu|cuda] [--problems …] [--largest 20] [--seconds 600]
                                       [--output FOLDER]
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks import problems
from h2gpu.apps.benchmarks.compress_row import device_of, measure, of_own_process, timed
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.studies import published
from h2gpu.covariance import Covariance, Exponential, Matern

SMALLEST, WARM = 14, 20  # log2 of the first n, and of the largest that runs before it is timed
FLAT = {"leaf_size": 64, "eta": 1.5}
PEER = FLAT | {"order": 8}  # as H2Opus was measured
SOLID = {"leaf_size": 128, "eta": 1.5}
GROWTH = "total s", "total after MB", "A x ms"
SHOWN = "problem", "n", "rtol", "total s", "total after MB", "peak MB", "peak / result", "A x ms", "A x / copy"


@dataclass(frozen=True)
class Problem:
    """Points for any n, a covariance, an accuracy of the whole, and those parameters of the build that are given.

    largest   log2 of the largest n, unless --largest is less
    step      of log2 n
    only      the one n that there is, None for any
    """

    points: object
    covariance: Covariance
    rtol: float
    parameters: dict
    largest: int = 20
    step: int = 2
    only: int | None = None

    def sizes(self, largest):
        """Numbers of points to measure, 2^largest at most."""
        largest = min(largest, self.largest)
        return [self.only] if self.only else [2**k for k in range(largest, SMALLEST - 1, -self.step)][::-1]


PROBLEMS = {
    "grid": Problem(problems.perturbed_grid, Exponential(length_scale=0.1), 1e-7, FLAT, 22),
    "grid-peer": Problem(problems.perturbed_grid, Exponential(length_scale=0.1), 1e-7, PEER, 20, 1),
    "grid-large": Problem(problems.perturbed_grid, Exponential(length_scale=0.1), 1e-6, PEER, 25),
    "grid-chosen": Problem(problems.perturbed_grid, Exponential(length_scale=0.1), 1e-7, {}),
    "grid-large-chosen": Problem(problems.perturbed_grid, Exponential(length_scale=0.1), 1e-6, {}, 25, 5),
    "grid-matern": Problem(problems.perturbed_grid, Matern(1.0, 0.1, 1.5), 1e-7, FLAT),
    "clusters": Problem(problems.clusters, Exponential(length_scale=0.1), 1e-7, FLAT),
    "cube": Problem(problems.cube, Exponential(length_scale=0.2), 1e-3, SOLID),
    "cube-fine": Problem(problems.cube, Exponential(length_scale=0.2), 1e-5, SOLID),
    "cube-matern": Problem(problems.cube, Matern(1.0, 0.2, 1.5), 1e-4, SOLID),
    "jacksboro": Problem(problems.jacksboro, Exponential(length_scale=1000.0), 1e-7, {}, only=problems.JACKSBORO_SITES),
}


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.scale", _work, argv)


def _work(argv):
    parser = Parser(prog="benchmarks.scale", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--problems", help=f"some of {','.join(PROBLEMS)}; default: all")
    parser.add_argument("--largest", type=int, default=20, help="log2 of the largest n, where a problem goes so far")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further row after so many")
    parser.add_argument("--name", default="scale", help="of the files, before -DEVICE (default: scale)")
    parser.add_argument("-o", "--output", help="folder for NAME-DEVICE.csv and .png")
    parser.add_argument("--row", nargs=2, metavar=("PROBLEM", "N"), help="measure one row, print it as JSON")
    options = parser.parse_args(argv)
    if options.row:
        print(json.dumps(_row(options.row[0], int(options.row[1]), options.device)))
        return
    begin, rows = time.perf_counter(), []
    for name, problem in published.chosen(PROBLEMS, options.problems, "--problems").items():
        for n in problem.sizes(options.largest):
            if time.perf_counter() - begin < options.seconds:
                rows.append(_measured(name, n, options.device))
                print(tables.text([{key: rows[-1].get(key) for key in SHOWN}]), flush=True)
                if options.output:  # an hour may follow
                    tables.write(_target(options, "csv"), rows, tables.device_name(options.device))
    copy_rate = _copy_rate(options.device)  # last: a process of a row would inherit the peak of this one
    for row in rows:
        row["A x / copy"] = row["A x ms"] / (row["total after MB"] / copy_rate * 1e3)
    print(tables.text([{key: row.get(key) for key in SHOWN} for row in rows]))
    for line in slopes(rows):
        print(line)
    if options.output:
        tables.write(_target(options, "csv"), rows, tables.device_name(options.device))
        plot(rows, _target(options, "png"), tables.device_name(options.device))


def _target(options, kind):
    return str(Path(options.output) / f"{options.name}-{options.device}.{kind}")


def _measured(name, n, device):
    """The row, on the CPU of a process of its own."""
    if device == "cpu":
        return of_own_process("h2gpu.apps.benchmarks.scale", device, name, n)
    return _row(name, n, device)


def _row(name, n, device):
    """One row: as `measure` gives it, and how much more than its result the job held."""
    problem = PROBLEMS[name]
    points = problem.points(n)
    warm_up = points if n <= 1 << WARM or problem.only else problem.points(1 << WARM)
    row = {"problem": name, "rtol": problem.rtol}
    row |= measure(points, problem.covariance, problem.parameters, problem.rtol, device, warm_up)
    row["peak / result"] = row["peak MB"] / row["total after MB"]
    return row


def _copy_rate(device, size=1 << 30):
    """Megabytes a second, read and written, of a copy larger than the caches."""
    xp, synchronize, _ = device_of(device)
    a, b = xp.ones(size // 16), xp.empty(size // 16)
    return size / 1e6 / min(timed(lambda: xp.copyto(b, a), synchronize)[1] for _ in range(5))


def slopes(rows):
    """One line a problem: exponents of n in time, memory and A x over its larger half of sizes."""
    for name in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == name]
        mine = mine[len(mine) // 2 :] if len(mine) > 3 else mine
        if len(mine) > 1:
            n = np.log([row["n"] for row in mine])
            slopes_of = {key: np.polyfit(n, np.log([row[key] for row in mine]), 1)[0] for key in GROWTH}
            found = [f"{key} n^{round(slope, 2) + 0.0:.2f}" for key, slope in slopes_of.items()]
            yield f"{name}, from {mine[0]['n']:,} points: {', '.join(found)}"


def plot(rows, path, device):
    """Time, memory and A x against n, a line a problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for axes, key, label in zip(panels, GROWTH, ("points to compressed matrix, s", "stored, MB", "A x, ms")):
        for name in dict.fromkeys(row["problem"] for row in rows):
            mine = [row for row in rows if row["problem"] == name]
            axes.loglog([row["n"] for row in mine], [row[key] for row in mine], "o-", markersize=4, label=name)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="sites n", ylabel=label)
        axes.grid(True, color="0.9")
    sizes = np.array(sorted({row["n"] for row in rows}), float)
    panels[1].loglog(sizes, 8e-6 * sizes**2, ":", color="0.3", label="dense matrix")
    panels[1].set_xscale("log", base=2)
    panels[1].set_ylim(top=10 * max(row["total after MB"] for row in rows))
    panels[1].legend(frameon=False, fontsize=8)
    figure.suptitle(device)
    figure.savefig(path, dpi=160)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
