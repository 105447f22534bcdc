"""Two constants of each kernel of h2gpu/batched/model/stepwise.py, fitted to published tables of a device.

    python -m h2gpu.apps.autotune.fit_model [FOLDER] [-o FOLDER]

Reads batched_lu.csv, batched_cholesky.csv, batched_blas.csv and batched_svd.csv in the folder (benchmarks/batched),
finds the nonnegative constants that bring predictions nearest to the times, relatively, and writes model_fitted.csv to
the device's folder of kernels/tuning. It prints for every kernel how far predictions of its own rows are off, and of
rows that were left out of the fit one by one. Lawson & Hanson (1974), chapter 23, for the fit.
"""

import csv
import io
import re
import statistics
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser, run
from h2gpu.batched import model
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import source_folder
from h2gpu.batched.model import stepwise
from h2gpu.storage.whole_file import whole_file

COUNTED = *stepwise.ROUTINES, "cholesky", "svd"
LEAST = 3  # rows for which leaving one out says something


class Row(NamedTuple):
    """A published time."""

    routine: str
    dtype: str
    batch: int
    m: int
    n: int
    columns: int
    seconds: float


def main(argv=None):
    """The command; returns the exit status."""
    return run("fit_model", _work, argv)


def _work(argv):
    parser = Parser(prog="fit_model", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("benchmarks/batched"), help="of the tables")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="default: the installed tables'")
    options = parser.parse_args(argv)
    device, rows = published(options.folder)
    constants, lines = fitted(rows, model.Constants.of(device), device)
    folder = options.output or source_folder() / "tuning" / tuning.folder_name(device)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / "model_fitted.csv") as temporary:
        temporary.write_text(text(constants, device, date.today().isoformat()), encoding="utf-8")
    print(tables.text(lines))


def published(folder):
    """The device, and a Row for every time of a routine that `stepwise` may count, where the default takes it."""
    device, found = None, []
    for name in ("lu", "cholesky", "blas", "svd"):
        head, rows = tables.read(folder / f"batched_{name}.csv")
        device = next(line.removeprefix("device: ") for line in head if line.startswith("device: "))
        for row in rows:
            found += _rows(name, row, device)
    return device, found


def _rows(name, row, device):
    """At most one."""
    routine = {"lu": "lu_factor", "svd": "svd"}.get(name, row.get("routine"))
    routine = "gemv" if routine == "gemv_t" else routine
    m, *others = (int(number) for number in re.findall(r"\d+", row["shape"]))
    n, columns = (m, others[0]) if routine == "trsm" else (others[0] if others else m, 1)
    if routine not in COUNTED or (name == "lu" and row["method"] != "auto"):
        return
    if name == "svd":
        knobs = tuning.first_row(tuning.folder_name(device), "svd", np.dtype(row["dtype"]), rank=n)
        if n <= model.REGISTER_SVD or row["method"] != knobs["method"]:
            return
    yield Row(routine, row["dtype"], int(row["batch"]), m, n, columns, 1e-3 * float(row["ms"]))


def fitted(rows, constants, device):
    """{(constant, dtype): seconds}, and lines that say how near predictions come."""
    groups = {}
    for row in rows:
        work = stepwise.counted(
            row.routine, row.batch, row.m, row.n, row.columns, row.dtype, device, constants("multiprocessors")
        )
        if work is not None:
            groups.setdefault((work.kernel, row.dtype), []).append((work, row.seconds))
    found, lines = {}, []
    for (kernel, dtype), cases in sorted(groups.items(), key=lambda group: bool(group[1][0][0].shares)):
        known = found.get((f"{cases[0][0].shares}_flop", dtype), 0.0)
        step, flop = pair = _solved(cases, dtype, constants, known)
        if any(work.steps for work, _ in cases):
            found[f"{kernel}_step", dtype] = step
        if any(work.flops and not work.shares for work, _ in cases):
            found[f"{kernel}_flop", dtype] = flop
        ratios = [_predicted(work, dtype, constants, pair) / seconds for work, seconds in cases]
        left_out = []
        for i, (work, seconds) in enumerate(cases if len(cases) >= LEAST else []):
            others = _solved(cases[:i] + cases[i + 1 :], dtype, constants, known)
            left_out.append(_predicted(work, dtype, constants, others) / seconds)
        lines.append({"kernel": kernel, "dtype": dtype, "rows": len(cases), **_spread(ratios)})
        lines[-1] |= {f"{key}, left out": value for key, value in _spread(left_out).items()} if left_out else {}
    return found, lines


def _predicted(work, dtype, constants, pair):
    return _known(work, dtype, constants) + pair[0] * work.steps + pair[1] * work.flops


def _known(work, dtype, constants):
    """Seconds of what is counted alone: launches, reads, bytes."""
    bare = stepwise.Work(work.kernel, work.nbytes, launches=work.launches)
    return stepwise.seconds(bare, dtype, constants)


def _solved(cases, dtype, constants, flop):
    """(step, flop) ≥ 0 with the least squares of relative errors; flop is given where it is not 0."""
    A = np.array([(work.steps / seconds, work.flops / seconds) for work, seconds in cases])
    rest = np.array([1 - _known(work, dtype, constants) / seconds for work, seconds in cases])
    if flop:
        rest, A = rest - flop * A[:, 1], A[:, :1]
    scale = np.where(A.max(axis=0) > 0, A.max(axis=0), 1.0)
    x = nnls(A / scale, rest)[0] / scale
    return float(x[0]), flop or float(x[1])


def _spread(ratios):
    """Of predicted / measured: the median deviation and the worst factor."""
    deviation = statistics.median(abs(ratio - 1) for ratio in ratios)
    return {"median deviation": deviation, "worst factor": max(max(ratio, 1 / ratio) for ratio in ratios)}


def text(constants, device, day):
    """model_fitted.csv."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("constant", "dtype", "value", "unit", "device", "date"))
    for (constant, dtype), value in sorted(constants.items()):
        writer.writerow((constant, dtype, f"{value:.4g}", "s", device, day))
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main())
