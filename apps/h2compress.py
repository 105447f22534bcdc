"""h2compress: points in a file → compressed covariance matrix in a file; or such a matrix → a smaller one.

    check options and outputs → read → plan → refuse what does not fit → assemble → check the accuracy → write

Nothing is written unless the accuracy holds; every file is written whole or not at all.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from h2gpu import compress, distributed
from h2gpu.apps.command import options, structure_plot
from h2gpu.apps.command.command import InputError, run, say
from h2gpu.apps.command.devices import admitted, device
from h2gpu.apps.command.outputs import check_hdf5_name, check_outputs
from h2gpu.apps.command.points_file import check_file, read_points
from h2gpu.apps.command.progress_bars import watched
from h2gpu.apps.command.report import covariance_text, report_of, summary, write_report
from h2gpu.covariance.sites import Sites
from h2gpu.distributed import communicator, gathered_matrix
from h2gpu.distributed.assembly import of_plan, sites_of_shares, sorted_sides
from h2gpu.distributed.communicators.launch import launched
from h2gpu.distributed.planning import planned
from h2gpu.h2matrix.assembly import assemble, error_on_rows, plans
from h2gpu.h2matrix.planning.planner import LEAF_SIZES
from h2gpu.memory import free_memory
from h2gpu.progress import phase
from h2gpu.storage import in_precision, is_matrix_file, load, read_header, save

ROWS = 256  # sampled for the error against the exact covariance
CHECKING = {"numpy": 2.0, "cupy": 1.5}  # times the peak foretold: compared with the uncompressed one
WORKSPACE = 2.5  # times the matrix: the peak of a recompression, bases and couplings old and new


@dataclass
class Job:
    """One run: what was asked, and what comes to be known of it."""

    arguments: object
    input: Path
    output: Path
    device: object
    covariance: dict | None = None
    parameters: dict = field(default_factory=dict)
    rtol: float = 0.0  # asked
    promised: float = 0.0
    estimated_peak: int | None = None
    errors: dict = field(default_factory=dict)

    def say(self, *lines):
        """Print for the user, unless asked to be quiet."""
        if not self.arguments.quiet:
            say(*lines)

    def admit(self, estimate):
        """FailureError when the estimated memory exceeds the limit; the estimate is told before it is needed."""
        self.estimated_peak = int(estimate)
        self.say(admitted(estimate, self.arguments.max_memory, self.device, ", or use --dtype float32"))


def main(argv=None):
    """The command; returns the exit status."""
    return run("h2compress", _work, argv)


def _work(argv):
    arguments = options.parser().parse_args(argv)
    if launched() > 1:
        comm = communicator(device(arguments.device).kind)
        with comm.together("h2compress"):
            _work_by_ranks(arguments, comm)
        return
    job = _job(arguments)
    with watched(arguments.quiet, job.device.synchronize) as times:
        A, B = _recompressed(job) if is_matrix_file(job.input) else _compressed(job)
        with phase("write"):
            save(B, job.output, attributes=_attributes(job, B))
    _tell(job, A, B, times)


def _work_by_ranks(arguments, comm):
    """The same by the processes of mpiexec: all work, the first one speaks and writes."""
    arguments.quiet = arguments.quiet or comm.rank > 0
    job = _job(arguments)
    with watched(arguments.quiet, job.device.synchronize) as times:
        again = is_matrix_file(job.input)
        A, B = _recompressed(job, comm) if again else (None, gathered_matrix(_compressed_by_ranks(job, comm)))
        if comm.rank == 0:
            with phase("write"):
                save(B, job.output, attributes=_attributes(job, B))
    if comm.rank == 0:
        _tell(job, A, B, times)


def _tell(job, A, B, times):
    """Report, picture and the summary for the user; A: before compression, None where nobody had it."""
    arguments = job.arguments
    report = report_of(job, A, B, times.seconds)
    if arguments.report:
        write_report(report, arguments.report)
    if arguments.plot:
        structure_plot.write(arguments.plot, B, job.input.stem, job.covariance, job.promised)
    written = filter(None, (str(job.output), arguments.report, arguments.plot))
    job.say("", *summary(report), f"written       {' · '.join(written)}")


def _job(arguments):
    """All that can be checked before any work: the input is there, outputs can be written, the device works."""
    source = Path(arguments.input)
    check_file(source)
    output = Path(arguments.output) if arguments.output is not None else source.with_name(f"{source.stem}-h2.h5")
    check_hdf5_name("--output", output)
    outputs = {"--output": output, "--report": arguments.report, "--plot": arguments.plot}
    check_outputs({"the input": source}, outputs, arguments.plot)
    return Job(arguments, source, output, device(arguments.device))


def _compressed(job):
    """Points → the uncompressed matrix, couplings deferred, and the compressed one, accuracy checked."""
    a = job.arguments
    most = a.max_memory or job.device.free_memory()
    points = read_points(job.input, a.points, a.dtype or "float64", most, time=a.time)
    cov = options.covariance(a, points.shape[1])
    options.check_order(a, points.shape[1])
    job.covariance, job.rtol = cov.parameters(), a.rtol
    job.say(f"{job.input}: {len(points):,} points in {points.shape[1]}D, {covariance_text(job.covariance)}")
    points = job.device.take(points)
    fixed = {"leaf_size": a.leaf_size, "eta": a.eta, "order": a.order, "split": a.split or "median"}
    fixed["storage"] = a.storage
    sites = Sites.of(points, cov)
    for chosen in plans(sites, a.rtol, **fixed):
        job.say(f"{chosen}")
        job.admit(CHECKING[sites.xp.__name__] * chosen.bytes_peak + points.nbytes)
        A, B = assemble(sites, chosen, method=a.method, svd=a.svd, storage=a.storage)
        error = error_on_rows(B, sites, ROWS, 0)
        if error <= a.rtol or a.order is not None:  # a fixed order promises the compression's share alone
            break
    else:
        raise InputError(f"--rtol: {a.rtol:g} was not reached, the error is {error:.2g}; ask for less accuracy")
    job.promised = max(a.rtol, error)
    job.parameters = {name: getattr(chosen, name) for name in ("leaf_size", "eta", "order", "split")}
    job.parameters |= {"compression_rtol": chosen.rtol, "method": a.method, "svd": a.svd, "storage": a.storage}
    job.errors = {"uncompressed": A.relative_error(B), "exact": error, "rows_sampled": min(ROWS, len(points))}
    return A, B


def _compressed_by_ranks(job, comm):
    """Points, of which every process reads a share → the DistributedH2Matrix, accuracy checked."""
    a = job.arguments
    most, share = a.max_memory or free_memory(np), (comm.rank, comm.size)
    points = read_points(job.input, a.points, a.dtype or "float64", most, time=a.time, share=share)
    count = sum(comm.gather(len(points), "points"))
    cov = options.covariance(a, points.shape[1])
    options.check_order(a, points.shape[1])
    job.covariance, job.rtol, sites = cov.parameters(), a.rtol, sites_of_shares(comm, points, cov)
    job.say(f"{job.input}: {count:,} points in {points.shape[1]}D, {covariance_text(job.covariance)}")
    fixed = {"leaf_size": a.leaf_size, "eta": a.eta, "order": a.order, "split": a.split or "median"}
    finest = a.leaf_size or LEAF_SIZES[0]
    ordered = sorted_sides(comm, sites, finest, fixed["split"])
    for chosen in planned(comm, sites, ordered, a.rtol, finest=finest, storage=a.storage, **fixed):
        job.say(f"{chosen}, by {comm.size} processes")
        job.admit(chosen.bytes_peak / comm.size + points.nbytes)
        given = {"storage": a.storage, "svd": a.svd, "method": a.method, "rows": ROWS}
        B, error = of_plan(comm, sites, ordered, chosen, **given)
        if error <= a.rtol or a.order is not None:
            break
    else:
        raise InputError(f"--rtol: {a.rtol:g} was not reached, the error is {error:.2g}; ask for less accuracy")
    job.promised = max(a.rtol, error)
    job.parameters = {name: getattr(chosen, name) for name in ("leaf_size", "eta", "order", "split")}
    job.parameters |= {"compression_rtol": chosen.rtol, "method": a.method, "svd": a.svd, "storage": a.storage}
    job.parameters["processes"] = comm.size
    job.errors = {"uncompressed": None, "exact": error, "rows_sampled": min(ROWS, count)}
    return B


def _recompressed(job, comm=None):
    """Matrix file → the matrix in it, and the smaller one, None on all processes of a communicator but the first."""
    a = job.arguments
    options.check_for_matrix(a)
    header = read_header(job.input)
    job.covariance, job.rtol, job.promised = header.attributes.get("covariance"), a.rtol, a.rtol
    job.say(f"{job.input}: {header.shape[0]:,} × {header.shape[1]:,} matrix, {covariance_text(job.covariance)}")
    job.admit(WORKSPACE * header.memory["total"])
    with phase("read"):
        A = load(job.input)
    A = in_precision(A, a.dtype or A.dtype).to_device(job.device.kind)
    B = _smaller(A, a, comm)
    earlier = header.attributes.get("parameters")
    job.parameters = {**(earlier if isinstance(earlier, dict) else {}), "compression_rtol": a.rtol}
    job.parameters |= {"method": a.method, "svd": a.svd, "storage": a.storage}
    job.parameters |= {"processes": comm.size} if comm else {}
    job.errors = {"uncompressed": A.relative_error(B) if B else None, "exact": None, "rows_sampled": 0}
    before = header.attributes.get("rtol")
    if isinstance(before, (int, float)) and 0 < before < 1:  # errors add up: promised against the exact covariance
        job.promised = before + a.rtol * (1 + before)
    return A, B


def _smaller(A, a, comm):
    """The smaller matrix; by ranks, all of which have A, that of the first one."""
    asked = {"method": a.method, "svd": a.svd, "storage": a.storage}
    if comm is None:
        return compress(A, a.rtol, **asked)
    if not A.symmetric:
        raise InputError("several processes compress symmetric matrices again, this one is not; launch one")
    B = gathered_matrix(distributed.compress(distributed.distribute(A, comm), a.rtol, **asked))
    return B and B.to_device("cuda" if comm.xp is not np else "cpu")


def _attributes(job, B):
    """What is kept in the file beside the matrix."""
    return {
        "covariance": job.covariance,
        "n": B.shape[0],
        "dim": int(B.row_basis.tree.boxes.lower.shape[1]),
        "rtol": job.promised,
        "parameters": job.parameters,
        "error": job.errors,
        "source": job.input.name,
    }


if __name__ == "__main__":
    sys.exit(main())
