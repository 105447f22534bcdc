"""What the studies of baselines have in common: options, cases of a precision and a size, a table that is kept."""

from itertools import product
from pathlib import Path

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import Parser
from h2gpu.apps.command.devices import device
from h2gpu.apps.command.inputs.words import counts
from h2gpu.apps.studies.baselines import timed
from h2gpu.batched.device.threads import thread_count

DTYPES = "float64", "float32"


def measured(name, description, argv, sizes, rows_of, compiled=None):
    """All lines of a study, written to FOLDER/study_<name>-<device>.csv as they come.

    name        of the study: the module's, or the table's where that has another
    sizes       {device: sizes that are measured where none are asked for}
    rows_of     function of (dtype, n, device, array module) to the lines of a case
    compiled    function of (dtype, n) that runs all kernels of a case once, called by several processes beforehand
    """
    parser = Parser(prog=f"studies.baselines.{name.partition('_')[0]}", description=description, allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sizes", type=counts, help="orders of the matrices")
    parser.add_argument("--dtypes", default=",".join(DTYPES), metavar="NAME[,NAME]")
    if compiled:
        parser.add_argument("--compilers", type=int, default=thread_count(), help="processes that compile beforehand")
    parser.add_argument(
        "-o", "--output", type=Path, default="benchmarks/batched", help=f"folder for study_{name}-*.csv"
    )
    options = parser.parse_args(argv)
    where = options.device
    title = timing.gpu_name() if where == "cuda" else tables.device_name(where)
    cases, xp = list(product(options.dtypes.split(","), options.sizes or sizes[where])), device(where).arrays
    if compiled and where == "cuda":
        timing.side_by_side(compiled, cases[::-1], options.compilers)
    path = options.output / f"study_{name}-{where}.csv"
    return timed.kept(cases, lambda dtype, n: rows_of(dtype, n, where, xp), path, title)
