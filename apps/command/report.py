"""What a run of h2compress tells: a dictionary for the JSON report, and lines to read."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version

from h2gpu.covariance import from_parameters
from h2gpu.h2matrix.matrix import ranks_by_level
from h2gpu.h2matrix.nearfield import EvaluatedNearfield
from h2gpu.memory import peak_memory, readable
from h2gpu.storage import whole_file

LIBRARIES = ("h2gpu", "numpy", "scipy", "h5py", "cupy-cuda13x", "cupy-cuda12x")
LABEL = 14  # letters of the first column, as in the lines without a table
PARTS = ("nearfield", "leaf_basis", "transfer", "coupling", "total")


def report_of(job, A, B, seconds):
    """Everything about a run, ready for JSON.

    job       the `h2compress` job: input, output, points or source, covariance, parameters, device, errors
    A, B      the matrices before and after compression; A is None where no process had all of it
    seconds   {phase: seconds}
    """
    return {
        "input": str(job.input),
        "output": str(job.output),
        "n": B.shape[0],
        "shape": list(B.shape),
        "dim": int(B.row_basis.tree.boxes.lower.shape[1]),
        "covariance": job.covariance,
        "rtol": job.promised,
        "asked": job.rtol,
        "parameters": job.parameters,
        "dtype": str(B.dtype),
        "device": {"kind": job.device.kind, "name": job.device.name},
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "ranks": ranks_by_level(B),
        "memory": {
            "before": None if A is None else as_if_stored(A),
            "after": B.memory,
            "dense": B.shape[0] * B.shape[1] * B.dtype.itemsize,
        },
        "peak_memory": {
            "estimated": job.estimated_peak,
            "process": peak_memory(),
            "device": job.device.peak_memory(),
        },
        "error": job.errors,
        "versions": versions(),
    }


def as_if_stored(A):
    """Bytes by part of a matrix whose blocks may be evaluated where they are used, had they been stored."""
    if not isinstance(A.nearfield, EvaluatedNearfield):
        return A.memory
    parts = {**A.memory, "nearfield": int(A.nearfield.sizes.sum()) * A.dtype.itemsize}
    return {**parts, "total": sum(size for part, size in parts.items() if part != "total")}


def write_report(report, path):
    """The report as a JSON file, whole or not at all."""
    text = json.dumps(report, indent=2, allow_nan=False)
    with whole_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def summary(report):
    """The report as lines to read."""
    memory, times = report["memory"], report["memory"]["dense"] / max(1, report["memory"]["after"]["total"])
    device = report["device"]["kind"]
    yield f"{described(report)} · {covariance_text(report['covariance'])} · {report['dtype']} · {device}"
    yield parameters_text(report["parameters"])
    yield ""
    before = {part: readable(memory["before"][part]) if memory["before"] else "by ranks" for part in PARTS}
    rows = [(f"  {part.replace('_', ' ')}", before[part], readable(memory["after"][part])) for part in PARTS]
    yield from aligned(("memory", "before", "after"), rows)
    yield f"  {times:,.4g} times smaller than dense, {readable(memory['dense'])}"
    yield f"  peak {readable(report['peak_memory']['process'] or 0)} of this process" + _of_device(report)
    yield ""
    yield from rank_lines(report["ranks"])
    yield ""
    yield from second_lines(report["seconds"])
    yield ""
    yield "error         " + error_text(report)


def aligned(head, rows):
    """Lines of a table: the first column to the left, numbers to the right, a title over each column.

    head   (columns,) titles
    rows   [(columns,)] texts
    """
    texts = [tuple(map(str, row)) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts)]
    widths[0] = max(widths[0], LABEL)
    for first, *others in texts:
        line = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(others, widths[1:]))]
        yield "  ".join(line).rstrip()


def rank_lines(levels):
    """A table of smallest, mean and largest ranks of the levels that have some."""
    used = [(l, r) for l, r in enumerate(levels) if r["max"] > 0]
    if not used:
        return ["ranks         none: all blocks are dense"]
    rows = [(f"  level {l}", r["min"], f"{r['mean']:.1f}", r["max"]) for l, r in used]
    return aligned(("ranks", "least", "mean", "most"), rows)


def second_lines(seconds):
    """A table of the seconds of each phase, the longest first, and of all."""
    rows = [(f"  {name}", f"{value:.3f}") for name, value in sorted(seconds.items(), key=lambda item: -item[1])]
    return aligned(("seconds", ""), [*rows, ("  total", f"{sum(seconds.values()):.3f}")])


def error_text(report):
    """Measured errors in words."""
    error = report["error"]
    told = [] if error["uncompressed"] is None else [f"{error['uncompressed']:.2e} against the uncompressed matrix"]
    if error["exact"] is not None:
        told.append(f"{error['exact']:.2e} against the exact covariance ({error['rows_sampled']} random rows)")
    missed = error["exact"] is not None and error["exact"] > report["asked"]
    return f"{', '.join(told)}; asked {report['asked']:g}" + (
        ", which the given order does not reach" if missed else ""
    )


def described(report):
    """Size and dimension in words."""
    n, m = report["shape"]
    return f"{n:,} points in {report['dim']}D" if n == m else f"{n:,} × {m:,} points in {report['dim']}D"


def covariance_text(parameters):
    """A covariance's parameters in words."""
    if parameters is None:
        return "unknown covariance"
    try:
        return repr(from_parameters(parameters))
    except ValueError:  # from a later version, or a file of another origin
        return f"{parameters!r:.100}"


def parameters_text(parameters):
    """{name: value} of a run in words."""
    told = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in parameters.items()}
    return " · ".join(f"{name.replace('_', ' ')} {value!s:.20}" for name, value in told.items())


def versions():
    """Versions of the libraries at work."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _of_device(report):
    held = report["peak_memory"]["device"]
    return f", {readable(held)} of the device" if held else ""
