"""h2krige: observations in a file → predictions with standard deviations at the targets of another.

    check options and outputs → read → refuse what does not fit → fit → predict → score → write

The output holds `points`, `mean`, `std` (of the field) and `std_observation` (of a new observation: nugget included),
of several --values `mean_NAME` and so on; covariance and scores as attributes. Its name decides: HDF5, CSV, GeoTIFF or
NetCDF. Every file is written whole or not at all.

What is refused is refused before `h2gpu.statistics`, and with it scikit-learn, is imported: 0.3 s in place of 1.7.
"""

import logging
import sys
import warnings
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import h2gpu
from h2gpu.apps.command import krige_options, map_plot, options, several
from h2gpu.apps.command.command import InputError, run, say
from h2gpu.apps.command.devices import admitted, device
from h2gpu.apps.command.inputs.checks import rows_of
from h2gpu.apps.command.krige_report import attributes, covariance_in_short, report_of, summary
from h2gpu.apps.command.outputs import check_name, check_outputs
from h2gpu.apps.command.points_file import check_file, holds, names_for, read_crs, read_points, read_values
from h2gpu.apps.command.progress_bars import watched
from h2gpu.apps.command.reference_systems import systems_of
from h2gpu.apps.command.report import write_report
from h2gpu.arrays import to_host
from h2gpu.covariance.sphere import Sphere
from h2gpu.distributed import Alone, communicator
from h2gpu.distributed.communicators.launch import launched
from h2gpu.h2matrix import plan
from h2gpu.progress import phase
from h2gpu.storage import whole_file, whole_hdf5
from h2gpu.storage.exchange import check_map, is_map, write_map

logger = logging.getLogger("h2gpu")

DENSE_COPIES = 3  # of the n × n matrix: itself, its factor, work
WORKSPACE = 1.5  # times the peak of the matrix: factor, vectors, cross-covariances
OF_TIME = {"separable": ("time_scale",), "gneiting": ("time_scale", "time_exponent", "interaction")}  # are fitted
WITHOUT_NUGGET = 1e-10  # rtol that smooth fields need then, about (benchmarks/solvers/solvers-cpu.csv)


@dataclass
class Job:
    """One run: what was asked, what was read, and what came of it."""

    arguments: object
    output: Path
    device: object
    comm: object
    sites: np.ndarray | None = None
    values: np.ndarray | None = None
    targets: np.ndarray | None = None
    truth: np.ndarray | None = None
    drift: tuple = ()  # columns of sites and of targets
    crs: object = None
    estimated_peak: int = 0
    model: object = None
    mean: np.ndarray | None = None
    std: np.ndarray | None = None
    scores: dict = field(default_factory=dict)

    def say(self, *lines):
        """Print for the user, unless asked to be quiet."""
        if not self.arguments.quiet:
            say(*lines)

    def whole(self, share):
        """The shares of all processes, one after the other."""
        return share if self.comm.size == 1 else np.concatenate(self.comm.gather(share, "input"))

    def share(self, whole):
        """This process's share of the rows of an array, where the model takes it."""
        rows = rows_of(len(whole), (self.comm.rank, self.comm.size))
        return self.device.take(whole) if self.comm.size == 1 else whole[rows]

    @property
    def names(self):
        """Of the coordinates of the targets, None where their file does not say."""
        a = self.arguments
        own = a.target_points or names_for(a.targets, a.points)
        return krige_options.coordinate_names(a, own, self.targets.shape[1])

    @property
    def std_observation(self):
        """Standard deviations of new observations (m,)."""
        return np.sqrt(self.std**2 + self.model.nugget_)


def main(argv=None):
    """The command; returns the exit status."""
    return run("h2krige", _work, argv)


def _work(argv):
    arguments = krige_options.parser().parse_args(argv)
    if launched() == 1:
        _all(_job(arguments, Alone()))
        return
    comm = communicator(device(arguments.device).kind)
    with comm.together("h2krige"):
        arguments.quiet = arguments.quiet or comm.rank > 0
        _all(_job(arguments, comm))


def _all(job):
    """The story of the head of this file; of several processes the first one speaks and writes."""
    a = job.arguments
    _read(job)
    with watched(a.quiet, job.device.synchronize) as times:
        _krige(job)
        if job.comm.rank:
            return
        with phase("write"):
            _write(job)
    report = report_of(job, times.seconds)
    if a.report:
        write_report(report, a.report)
    if a.plot:
        _plot(job)
    job.say("", *summary(report), f"written       {' · '.join(filter(None, (str(job.output), a.report, a.plot)))}")


def _job(arguments, comm):
    """All that can be checked before any work: inputs are there, outputs can be written, the device works."""
    a = arguments
    krige_options.check(a)
    for path in (a.input, a.targets):
        check_file(path)
    targets = Path(a.targets)
    output = Path(a.output) if a.output else targets.with_name(f"{targets.stem}-kriged.h5")
    inputs = {"the targets": a.targets, "the input": a.input}
    check_name("--output", output)
    outputs = {"--output": output, "--report": a.report, "--plot": a.plot}
    check_outputs(inputs, outputs, a.plot)
    return Job(a, output, device(a.device), comm)


def _read(job):
    """Sites and values, targets, and the truth where there is one: all on every process, which reads a share."""
    a, part = job.arguments, (job.comm.rank, job.comm.size)
    most, own = a.max_memory or job.device.free_memory(), a.target_points or names_for(a.targets, a.points)
    gaps = a.missing == "skip" or len(a.values) > 1
    job.sites = job.whole(read_points(a.input, a.points, "float64", most, time=a.time, share=part))
    job.values = job.whole(_columns(a.input, a.values, len(job.sites), "--values", gaps, a.points, part))
    option = "--target-points" if a.target_points else "--points"
    job.targets = job.whole(read_points(a.targets, own, "float64", most, option, a.time, part))
    if job.targets.shape[1] != job.sites.shape[1]:
        raise InputError(
            f"{a.targets}: expected {job.sites.shape[1]} coordinates a target as the sites have, "
            f"got {job.targets.shape[1]}; choose with --target-points"
        )
    if a.plot and job.sites.shape[1] != 2:
        raise InputError(f"--plot: maps are of points in 2D, these have {job.sites.shape[1]} coordinates")
    job.drift = (_drift(a.input, a.drift, len(job.sites), a.points), _drift(a.targets, a.drift, len(job.targets), own))
    job.crs = systems_of(a, read_crs(a.input, a.points), read_crs(a.targets, own))
    if is_map(job.output):
        check_map(job.output, job.targets)
    same = Path(a.targets).resolve() == Path(a.input).resolve()
    if a.truth or (not same and all(holds(a.targets, name, own) for name in a.values)):
        job.truth = _columns(a.targets, a.truth or a.values, len(job.targets), "--truth", True, own)


def _columns(path, names, n, option, missing, points, share=(0, 1)):
    """The values (n,) of one name, (n, p) of several; a share of them."""
    found = [read_values(path, name, n, option, missing, points, share) for name in names]
    return found[0] if len(found) == 1 else np.column_stack(found)


def _drift(path, names, n, points):
    """(n, count) drift columns of a file."""
    columns = [read_values(path, name, n, "--drift", points=points) for name in names or ()]
    return np.column_stack(columns) if columns else np.empty((n, 0))


def _krige(job):
    """Fit and predict, on the device."""
    a, (n, dim) = job.arguments, job.sites.shape
    job.say(f"{a.input}: {n:,} sites in {dim}D; {a.targets}: {len(job.targets):,} targets")
    cov, nugget = _model(job)
    _admit(job, cov, nugget)
    job.model = _estimator(job, cov, nugget)
    sites, targets = (np.column_stack(parts) for parts in zip((job.sites, job.targets), job.drift))
    job.model.fit(job.share(sites), job.share(job.values))
    for message in job.model.estimation_.messages if a.fit else ():
        logger.warning(message)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mean, std = job.model.predict(job.share(targets), return_std=True)
    for one in told:
        logger.warning(one.message)
    job.mean, job.std = job.whole(to_host(mean)), job.whole(to_host(std))
    if job.mean.ndim == 2:
        job.scores = {} if job.truth is None else several.scored(a.values, job.truth, job.mean, job.std_observation)
        return
    known = np.zeros(len(job.targets), bool) if job.truth is None else np.isfinite(job.truth)
    if known.any():
        job.scores = h2gpu.statistics.scores.summary(job.truth[known], job.mean[known], job.std_observation[known])


def _estimator(job, cov, nugget):
    """What is fitted, not fitted yet; by the processes of mpiexec where there are several."""
    a, dim = job.arguments, job.sites.shape[1]
    trend = krige_options.trend(a, dim)
    if len(a.values) > 1:
        return several.model(a, cov, job.values, trend, dim, job.comm)
    kinds = ["variance", "length_scale", "nugget", *options.shapes(a)] if a.fit else False
    kinds = [*kinds, "rotation"] if a.fit and a.rotation else kinds
    kinds = [*kinds, *OF_TIME[a.space_time or "separable"]] if a.fit and a.time else kinds
    if job.comm.size > 1:
        estimator = h2gpu.distributed.statistics.Kriging
        return estimator(cov, nugget, trend, a.rtol, comm=job.comm, fit_parameters=kinds, missing=a.missing)
    return h2gpu.statistics.Kriging(cov, nugget, trend, a.rtol, fit_parameters=kinds, missing=a.missing)


def _model(job):
    """The covariance and the nugget given; what is to be estimated starts from the spread of values and sites."""
    a = job.arguments
    dim = job.sites.shape[1] - bool(a.time)
    sites = Sphere(a.radius or options.EARTH).embed(job.sites[:, :dim]) if a.sphere else job.sites[:, :dim]
    spread, extent = float(np.nanvar(job.values)) or 1.0, float(np.ptp(sites, axis=0).max()) or 1.0
    start = {"variance": a.variance or spread, "length_scale": a.length_scale or (extent / 10,), "nugget": None}
    if a.rotation and not a.length_scale:
        start["length_scale"] *= dim
    if a.time:
        start["time_scale"] = a.time_scale or float(np.ptp(job.sites[:, -1])) / 10 or 1.0
    return options.covariance(Namespace(**vars(a) | start), job.sites.shape[1]), a.nugget or 0.0


def _admit(job, cov, nugget):
    """FailureError when the estimated memory of this process exceeds the limit."""
    n, a = int(np.isfinite(job.values).sum()), job.arguments
    if n <= h2gpu.statistics.systems.DENSE:
        estimate = DENSE_COPIES * 8 * n**2
    else:
        rtol = a.rtol if nugget or a.fit else min(a.rtol, WITHOUT_NUGGET)
        peak = plan(job.device.take(job.sites), cov, rtol).bytes_peak if job.comm.rank == 0 else None
        estimate = WORKSPACE * job.comm.gather(peak, "plan")[0] / job.comm.size
    job.estimated_peak = int(estimate)
    job.say(admitted(estimate, a.max_memory, job.device))


def _write(job):
    """The predictions, whole or not at all."""
    columns = {"mean": job.mean, "std": job.std, "std_observation": job.std_observation}
    if job.mean.ndim == 2:
        names = [several.short(name) for name in job.arguments.values]
        columns = {f"{what}_{name}": found[:, i] for i, name in enumerate(names) for what, found in columns.items()}
    if is_map(job.output):
        write_map(job.output, job.targets, columns, job.crs, attributes(job), job.names)
        return
    with whole_hdf5(job.output) as file:
        file["points"] = job.targets
        for name, values in columns.items():
            file[name] = values
        file.attrs.update(attributes(job))


def _plot(job):
    """Maps of what was observed and predicted."""
    truth = job.truth if job.scores and np.isfinite(job.truth).all() else None
    known = np.isfinite(job.values)
    panels = map_plot.outcome(job.sites[known], job.values[known], job.targets, job.mean, job.std, truth)
    told = f"{len(job.sites):,} sites, {len(job.targets):,} targets, {covariance_in_short(job.model.cov_.parameters())}"
    if job.scores:
        told += f", RMSE {job.scores['rmse']:.4g}"
    with whole_file(job.arguments.plot) as temporary:
        kind = Path(job.arguments.plot).suffix.lower()[1:]
        title, name = Path(job.arguments.input).stem, several.short(job.arguments.values[0])
        axes = krige_options.axes(job.arguments, job.names, job.crs)
        map_plot.draw(panels, temporary, f"{title}: {name}", told, kind, axes, name)


if __name__ == "__main__":
    sys.exit(main())
