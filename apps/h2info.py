"""h2info: what a matrix file holds, without reading its entries; --check reads and verifies them all."""

import sys

import numpy as np

from h2gpu.apps.command.about import add_about
from h2gpu.apps.command.command import Parser, run, say
from h2gpu.apps.command.points_file import check_file
from h2gpu.apps.command.report import covariance_text, rank_lines
from h2gpu.covariance.checks import is_finite
from h2gpu.distributed.launch import number
from h2gpu.memory import readable
from h2gpu.storage import load, read_header
from h2gpu.storage.header import FORMAT


def main(argv=None):
    """The command; returns the exit status."""
    return run("h2info", _work, argv)


def parser():
    """The options of h2info."""
    p = Parser(prog="h2info", description="What an H2-matrix file holds.", allow_abbrev=False)
    p.add_argument("file", metavar="FILE.h5", help="a matrix written by h2gpu")
    p.add_argument("--check", action="store_true", help="verify every checksum and the whole structure")
    add_about(p)
    return p


def _work(argv):
    arguments = parser().parse_args(argv)
    if number() > 0:  # of several processes the first one answers
        return
    check_file(arguments.file)
    header = read_header(arguments.file)
    if arguments.check:
        load(arguments.file, check=True)
    say(*lines(header))
    if arguments.check:
        say("check         all checksums and the structure are in order")


def lines(header):
    """The header in words."""
    n, m = header.shape
    kind = "symmetric" if header.symmetric else "rectangular"
    yield f"format        {FORMAT} {header.version}, written by {header.software:.80}"
    yield f"matrix        {n:,} × {m:,}, {kind}, {header.dtype}, boxes in {header.dim}D"
    yield from _attribute_lines(header.attributes)
    yield from rank_lines([{"min": int(r[r > 0].min(initial=r.max())), "max": int(r.max())} for r in header.ranks])
    dense = n * m * header.dtype.itemsize
    parts = " · ".join(f"{name.replace('_', ' ')} {readable(size)}" for name, size in header.memory.items())
    yield f"memory        {parts}"
    if any(header.in_float32.values()) and header.dtype == np.float64:
        shares = (f"{name.replace('_', ' ')} {share:.3g}" for name, share in header.in_float32.items())
        yield f"in float32    {' · '.join(shares)} of the entries"
    yield f"dense         {readable(dense)}, {dense / max(1, header.memory['total']):,.4g} times as much"


def _attribute_lines(attributes):
    """What h2compress keeps in a file; every value may be missing or of another origin."""
    known = {
        "covariance": covariance_text(attributes.get("covariance")),
        "accuracy": _accuracy(attributes),
        "parameters": _pairs(attributes.get("parameters")),
        "source": f"{attributes.get('source', 'unknown')!s:.80}",
    }
    for name, value in known.items():
        yield f"{name:<14}{value}"
    others = sorted(attributes.keys() - {"covariance", "rtol", "error", "parameters", "source", "n", "dim"})
    for name in others:
        yield f"{name:<14.40}{attributes[name]!s:.100}"


def _accuracy(attributes):
    """Promised and measured accuracy."""
    error = attributes.get("error")
    told = [f"promised {attributes['rtol']:.3g}"] if _is_number(attributes, "rtol") else ["unknown"]
    if isinstance(error, dict):
        told += [f"against {name} {error[name]:.3g}" for name in ("uncompressed", "exact") if _is_number(error, name)]
    return ", ".join(told)


def _is_number(values, name):
    return isinstance(values.get(name), (int, float)) and is_finite(values[name])


def _pairs(values):
    if not isinstance(values, dict):
        return "unknown"
    return " · ".join(f"{name.replace('_', ' ')} {value!s:.20}" for name, value in values.items())


if __name__ == "__main__":
    sys.exit(main())
