"""h2info: what a matrix file holds, without reading its entries; --check verifies them all, --plot draws its blocks."""

import sys
from pathlib import Path

import numpy as np

from h2gpu.apps.command import structure_plot
from h2gpu.apps.command.about import add_about
from h2gpu.apps.command.command import Parser, run, say
from h2gpu.apps.command.outputs import check_outputs
from h2gpu.apps.command.points_file import check_file
from h2gpu.apps.command.report import aligned, covariance_text, parameters_text, rank_lines
from h2gpu.covariance.checks import is_finite
from h2gpu.distributed.communicators.launch import number
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
    p.add_argument("--plot", metavar="FILE.png", help="a picture of the block structure (needs matplotlib)")
    add_about(p)
    return p


def _work(argv):
    arguments = parser().parse_args(argv)
    if number() > 0:  # of several processes the first one answers
        return
    check_file(arguments.file)
    check_outputs({"the file": arguments.file}, {"--plot": arguments.plot}, arguments.plot)
    header = read_header(arguments.file)
    B = load(arguments.file, check=arguments.check) if arguments.check or arguments.plot else None
    if arguments.plot:
        source, accuracy = Path(arguments.file).stem, header.attributes.get("rtol")
        structure_plot.write(arguments.plot, B, source, header.attributes.get("covariance"), accuracy)
    say(*lines(header))
    if arguments.plot:
        say(f"{'written':<14}{arguments.plot}")
    if arguments.check:
        say("check         all checksums and the structure are in order")


def lines(header):
    """The header in words."""
    n, m = header.shape
    kind = "symmetric" if header.symmetric else "rectangular"
    yield f"format        {FORMAT} {header.version}, written by {header.software:.80}"
    yield f"matrix        {n:,} × {m:,}, {kind}, {header.dtype}, boxes in {header.dim}D"
    yield from _attribute_lines(header.attributes)
    yield ""
    yield from rank_lines([_spread(r[r > 0]) for r in header.ranks])
    yield ""
    dense = n * m * header.dtype.itemsize
    rows = [(f"  {name.replace('_', ' ')}", readable(size)) for name, size in header.memory.items()]
    yield from aligned(("memory", ""), rows)
    if any(header.in_float32.values()) and header.dtype == np.float64:
        shares = (f"{name.replace('_', ' ')} {share:.3g}" for name, share in header.in_float32.items())
        yield f"in float32    {' · '.join(shares)} of the entries"
    yield f"dense         {readable(dense)}, {dense / max(1, header.memory['total']):,.4g} times as much"


def _spread(ranks):
    """Least, mean and largest of ranks (clusters,)."""
    if not len(ranks):
        return {"min": 0, "mean": 0.0, "max": 0}
    return {"min": int(ranks.min()), "mean": float(ranks.mean()), "max": int(ranks.max())}


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
    return parameters_text(values)


if __name__ == "__main__":
    sys.exit(main())
