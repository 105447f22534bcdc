"""Measures the published tables again, several at once where there are several GPUs.

    python -m h2gpu.apps.benchmarks.figures [--device cpu|cuda] [--only TABLE …] [--list] [--data data]
        [--output benchmarks] [--devices 0,1,…] [--jobs N] [--cores N] [--limit SECONDS] [--dirty]

Each command has a GPU and cores of its own; on the CPU --jobs of them run at once, on two cores each, as published.
Which commands: on_cpu.py, on_cuda.py; in which order: queue.py. A table is replaced where its command has ended well;
what others have measured is kept in benchmarks/.unfinished.
"""

import shlex
import sys
from importlib.util import find_spec

from h2gpu.apps.benchmarks.figures import machine
from h2gpu.apps.benchmarks.figures.command import Command
from h2gpu.apps.benchmarks.figures.on_cpu import ON_CPU
from h2gpu.apps.benchmarks.figures.on_cuda import ON_CUDA
from h2gpu.apps.benchmarks.figures.parts import parts_of
from h2gpu.apps.benchmarks.figures.queue import Outcome, Queue, needs_all
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import FailureError, InputError, Parser, run
from h2gpu.apps.command.inputs.words import at_least, positive


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.figures", _work, argv)


def parser():
    p = Parser(prog="benchmarks.figures", description=__doc__.splitlines()[0], allow_abbrev=False)
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--only", nargs="+", metavar="TABLE", help="these tables, and what their commands write with them")
    p.add_argument("--list", action="store_true", help="tell the commands and their seconds, run nothing")
    p.add_argument("--data", default="data", metavar="FOLDER", help="of the benchmark data")
    p.add_argument("--output", default="benchmarks", metavar="FOLDER", help="in place of benchmarks/")
    p.add_argument("--devices", metavar="N[,N]", help="numbers of the GPUs; default: all")
    p.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="commands at once on the CPU")
    p.add_argument("--cores", type=at_least(1), metavar="N", help="of a command; default: two on the CPU, else a share")
    p.add_argument("--limit", type=positive, default=float("inf"), metavar="SECONDS", help="after which nothing begins")
    p.add_argument("--dirty", action="store_true", help="although the sources differ from their commit")
    return p


def _work(argv):
    options = parser().parse_args(argv)
    if options.list:
        print(*map(listed, chosen(options.device, options.only)), sep="\n")
        return
    check_sources(options.dirty)
    gpus = machine.gpus() if options.device == "cuda" else []
    if options.devices:
        gpus = [gpu for gpu in gpus if gpu[0] in options.devices.split(",")]
    if options.device == "cuda" and not gpus:
        raise InputError(f"--devices: expected numbers of GPUs that are there, got {options.devices}")
    entries = chosen(options.device, options.only, machine.card(gpus[0][2]) if gpus else None)
    lacking = [(entry, entry.lacks([size for _, size, _ in gpus], options.data)) for entry in entries]
    slots = machine.slots([number for number, *_ in gpus], options.jobs, options.cores)
    with parts_of([entry for entry, why in lacking if not why], options.output) as parts:
        queue = Queue(
            parts.divided(),
            slots,
            lambda entry, slots: Command(entry, slots, options.data, parts.folder(entry), parts.kept(entry)),
            options.limit,
            lambda line: print(line, flush=True),
        )
        outcomes = queue.run()
    report([*outcomes, *(Outcome(entry, "left out", 0.0, why) for entry, why in lacking if why)])


def chosen(device, only, card=None):
    """The entries that write some tables, on a card; all for None. InputError for a table that none writes."""
    entries = ON_CUDA if device == "cuda" else ON_CPU
    entries = [entry.on(card) for entry in entries] if card else list(entries)
    known = {name for entry in entries for name in entry.tables}
    if unknown := sorted(set(only or ()) - known):
        raise InputError(f"--only: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)}")
    return [entry for entry in entries if not only or set(only) & set(entry.tables)]


def check_sources(dirty):
    """FailureError where tables could not say which sources they are of, or their pictures could not be drawn."""
    commit = tables.commit()
    if commit.endswith("-dirty") and not dirty:
        raise FailureError(f"expected sources as committed, got {commit}: commit first, or give --dirty")
    if commit == "unknown" and not dirty:
        raise FailureError("expected a commit, got no history: H2GPU_COMMIT=… says which, or give --dirty")
    if find_spec("matplotlib") is None:
        raise FailureError("expected matplotlib for the pictures, got none: pip install 'h2gpu[plots]'")


def listed(entry):
    """What --list says of an entry: seconds and tables, what they need, the commands."""
    needs = ["nothing beside it"] * needs_all(entry) + [f"{entry.gpus} GPUs"] * (entry.gpus > 1)
    needs += [f"{entry.gigabytes} GB of a GPU"] * (entry.gigabytes > 0) + [*entry.data, *entry.packages]
    parts = [f"by --fields {', '.join(entry.parts)}"] * bool(entry.parts)
    lines = [f"{entry.seconds:5.0f} s  {', '.join(entry.tables)}"] + [f"needs {', '.join(needs)}"] * bool(needs) + parts
    for ranks, module, arguments in entry.commands():
        lines.append(shlex.join([*(["mpiexec", "-n", str(ranks)] * (ranks > 1)), "python", "-m", module, *arguments]))
    return "\n         ".join(lines)


def report(outcomes):
    """Seconds of all, and the last lines of those that failed, for which FailureError is raised."""
    rows = [
        {"table": o.entry.name, "outcome": o.state, "s": round(o.seconds) or None, "about s": o.entry.seconds}
        for o in sorted(outcomes, key=lambda outcome: -outcome.seconds)
    ]
    print("\n" + tables.text(rows))
    for state in ("left out", "failed"):
        for outcome in (o for o in outcomes if o.state == state):
            print(f"\n{outcome.entry.name} {state}: {outcome.why}")
    failed = [o.entry.name for o in outcomes if o.state == "failed"]
    if failed:
        raise FailureError(f"{len(failed)} of {len(outcomes)} commands failed: {', '.join(failed)}")


if __name__ == "__main__":
    sys.exit(main())
