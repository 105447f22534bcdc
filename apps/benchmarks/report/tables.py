"""Tables of studies and benchmarks: printed as text, kept as CSV with what is needed to repeat them."""

import csv
import importlib.metadata
import io
import os
import platform
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path

from h2gpu.batched.device.threads import cores
from h2gpu.storage.whole_file import whole_file

SOURCES = "h2gpu", "kernels", "apps", "pyproject.toml"
UNFINISHED = ".unfinished"  # folder beside tables: what was measured and is not published
SHOWN_VERSIONS = ("h2gpu", "numpy", "scipy", "cupy-cuda13x", "cupy-cuda12x", "torch")


def circumstances(device):
    """What a measurement depends on, as lines of "name: value"."""
    lines = [f"date: {date.today()}", f"device: {device}", f"python: {platform.python_version()}"]
    for package in SHOWN_VERSIONS:
        try:
            lines.append(f"{package}: {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return [*lines, f"commit: {commit()}", f"command: {shlex.join(['python', *_module_arguments()])}"]


def device_name(device):
    """The processor or GPU that "cpu" or "cuda" means here."""
    if device == "cuda":
        import cupy

        return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return f"{_processor()}, {len(cores())} cores"


def columns(rows):
    """The keys of rows in the order of their first appearance, without those that no row has a value for."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return [key for key in keys if any(row.get(key) not in ("", None) for row in rows)]


def text(rows):
    """Rows (dictionaries) as an aligned table."""
    if not rows:
        return ""
    cells = _cells(rows)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in cells)


def markdown(rows):
    """Rows as a Markdown table."""
    first, *rest = _cells(rows)
    return "\n".join("| " + " | ".join(line) + " |" for line in (first, ["---"] * len(first), *rest))


def write(path, rows, device):
    """The rows as CSV under comment lines that tell the circumstances, whole or not at all; makes a missing folder.

    Raises ValueError for no rows: what was measured before stays.
    """
    if not rows:
        raise ValueError(f"{path}: nothing was measured, and nothing is written")
    _write(path, circumstances(device), rows)


def lacking(path, rows, key):
    """How many rows of a published table have no counterpart, the same in all columns of `key`, among `rows`."""
    if not Path(path).is_file():
        return 0
    found = {tuple(_shown(row.get(name)) for name in key) for row in rows}
    return sum(tuple(row.get(name, "") for name in key) not in found for row in read(path)[1])


def join(paths, path):
    """One table of several that were measured alike: the rows of all, the command of each.

    Raises ValueError where more than date and command differ.
    """
    heads, parts = zip(*map(read, paths))
    same = [{line for line in head if not line.startswith(("date: ", "command: "))} for head in heads]
    if any(lines != same[0] for lines in same):
        raise ValueError(f"{path}: expected parts of one device and commit, got {sorted(set().union(*same))}")
    commands = [line for head in heads for line in head if line.startswith("command: ")]
    head = [line for line in heads[-1] if not line.startswith("command: ")]
    _write(path, [*head, *commands], [row for rows in parts for row in rows])


def _write(path, head, rows):
    buffer = io.StringIO()
    buffer.writelines(f"# {line}\n" for line in head)
    csv.writer(buffer, lineterminator="\n").writerows(_cells(rows))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(buffer.getvalue(), encoding="utf-8")


def read(path):
    """What `write` wrote: the lines that tell the circumstances, and rows of text."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [line[2:] for line in lines if line.startswith("# ")], list(
        csv.DictReader(line for line in lines if not line.startswith("# "))
    )


def _cells(rows):
    """The table's head and its lines, as text."""
    keys = columns(rows)
    return [keys, *([_shown(row.get(key)) for key in keys] for row in rows)]


def _shown(value):
    """As text; numbers with four digits."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _module_arguments():
    module = sys.modules["__main__"].__spec__
    return [*(["-m", module.name.removesuffix(".__main__")] if module else [sys.argv[0]]), *sys.argv[1:]]


def commit():
    """The commit of the sources, "-dirty" where they were changed; tables are no sources.

    H2GPU_COMMIT says it where it is set; "unknown" without a history.
    """
    if said := os.environ.get("H2GPU_COMMIT"):
        return said
    here = ["git", "-C", str(Path(__file__).resolve().parents[3])]
    try:
        name = subprocess.run([*here, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*here, "diff", "--quiet", "HEAD", "--", *SOURCES], check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name.stdout.strip() + ("-dirty" if changed else "")


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "CPU"
