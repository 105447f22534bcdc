"""What the pictures of benchmarks have in common: commands that draw them, two precisions side by side, sizes."""

from pathlib import Path

from h2gpu.apps.command.command import InputError, Parser, run

COLOURS = {
    "register": "#1b7837",
    "shared": "#2166ac",
    "block-gram": "#b2182b",
    "block-direct": "#e08214",
    "rsvd": "#762a83",
    "qr": "#2166ac",
    "qr_r": "#e08214",
    "fixed": "#2166ac",
    "matrix": "#1b7837",
    "panel": "#b2182b",
    "column": "#e08214",
    "unblocked": "#762a83",
    "auto": "black",
    "peer": "0.35",
    "second peer": "0.65",
    "third peer": "#35978f",
    "KBLAS": "black",
}


def drawing(name, about, draw, argv):
    """A command that draws the pictures of a folder's tables; returns the exit status."""

    def work(argv):
        p = Parser(prog=name, description=about.splitlines()[0], allow_abbrev=False)
        p.add_argument("folder", nargs="?", type=Path, default=Path("benchmarks/batched"), metavar="FOLDER")
        folder = p.parse_args(argv).folder
        if not folder.is_dir():
            raise InputError(f"{folder}: expected a folder with tables")
        draw(folder)

    return run(name, work, argv)


def curve(axes, rows, quantity, style, colour, label):
    """A quantity over the size, where it is known."""
    points = sorted((size_of(r), float(r[quantity])) for r in rows if r.get(quantity))
    if points:
        axes.plot(*zip(*points), style, color=COLOURS[colour], label=label, markersize=4)


def rate_curve(axes, rows, time, style, colour, label=None):
    """GFLOP/s of another's time for the same nominal work."""
    rated = [
        r | {"rate": float(r["GFLOP/s"]) * float(r["ms"]) / float(r[time])} for r in rows if r.get(time) and r["ms"]
    ]
    curve(axes, rated, "rate", style, colour, label or next((r["peer"] for r in rated), None))


def size_of(row):
    """Rows of the matrix."""
    return int(row["shape"].split("×")[0])


def grid(lines, title):
    """A figure, and its axes (lines, 2), both logarithmic."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        lines, 2, figsize=(10, 3.6 * lines + 0.6), sharey="row", layout="constrained", squeeze=False
    )
    figure.suptitle(title)
    for axes in panels.flat:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:.0f}")
    return figure, panels


def finished(figure, panels):
    """The figure with a legend beside each line, empty axes left out."""
    for axes in panels.flat:
        axes.grid(True, color="0.9")
        if not axes.lines:
            axes.set_visible(False)
    for line in panels:
        for axes in [axes for axes in line if axes.get_visible()][-1:]:
            axes.legend(**shown(line), frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def shown(line):
    """What a legend of several axes names, each label once."""
    found = {label: handle for axes in line for handle, label in zip(*axes.get_legend_handles_labels())}
    return {"handles": found.values(), "labels": found}
