"""How do estimates and predictions of small published data sets compare with those of other packages?

    python -m h2gpu.apps.studies.classics.compare --data FOLDER [--output benchmarks/kriging]

FOLDER holds meuse.rda (data of the R package sp), jura.rda, sic2004.rda and walker.rda (of gstat), which Debian's
r-cran-sp and r-cran-gstat carry, and baltimore.geojson (examples/baltim in the wheel of libpysal). All packages:
ordinary kriging, exponential covariance and nugget, estimated from their own starting values. `log-likelihood` is the
exact one of all at the parameters that each found, the mean at its best value; of several folds, the sum. `coverage` is
of 95 % intervals of new observations. Needs the extra `studies`.
"""

import sys
import time
from pathlib import Path

import numpy as np

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import InputError, Parser, run
from h2gpu.apps.studies.classics import data, packages
from h2gpu.covariance import Exponential
from h2gpu.statistics import log_likelihood, scores


def main(argv=None):
    """The command; returns the exit status."""
    return run("studies.classics.compare", _work, argv)


def _work(argv):
    parser = Parser(prog="studies.classics.compare", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", required=True, help=f"folder with {', '.join(data.FILES)}")
    parser.add_argument("--output", default="benchmarks/kriging", help="folder of the table")
    options = parser.parse_args(argv)
    missing = [name for name in data.FILES if not (Path(options.data) / name).is_file()]
    if missing:
        raise InputError(f"--data: expected a folder with {', '.join(data.FILES)}, {options.data} lacks {missing[0]}")
    if lacking := packages.told_missing():
        print(lacking)
    rows = study(data.read(options.data), packages.available())
    print(tables.text(rows))
    tables.write(Path(options.output) / "study_classics-cpu.csv", rows, tables.device_name("cpu"))


def study(sets, functions):
    """A row a data set and package."""
    return [
        row(name, splits, package, function) for name, splits in sets.items() for package, function in functions.items()
    ]


def row(name, splits, package, function):
    """Scores over all splits, parameters of the first."""
    begin = time.process_time()
    found = [packages.quietly(function, split) for split in splits]
    seconds = time.process_time() - begin
    results, told = [result for result, _ in found], sum(count for _, count in found)
    mean, std = (np.concatenate([np.asarray(result[i]) for result in results]) for i in (0, 1))
    truth = np.concatenate([split.truth for split in splits])
    likelihood = sum(exact(split, *result[2:]) for split, result in zip(splits, results))
    variance, length, nugget = results[0][2:]
    return (
        {"data": name, "package": package, "observations": len(splits[0].values), "targets": len(truth)}
        | {"variance": float(variance), "length": float(length), "nugget": float(nugget)}
        | {"log-likelihood": likelihood}
        | scores.summary(truth, mean, std)
        | {"warnings": told, "CPU s": seconds}
    )


def exact(split, variance, length, nugget):
    """The exact log-likelihood of parameters; −∞ where they are none."""
    if not (variance > 0 and length > 0 and nugget >= 0):
        return -np.inf
    try:
        return float(log_likelihood(Exponential(variance, length), split.sites, split.values, nugget, "constant"))
    except (ValueError, np.linalg.LinAlgError):
        return -np.inf


if __name__ == "__main__":
    sys.exit(main())
