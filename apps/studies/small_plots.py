"""Small problems as pictures: figures 2, 4, 7 to 12 of Anderson et al. (2012), figure 6 of Dong et al. (2018).

    python -m h2gpu.apps.studies.small_plots [FOLDER]

Reads study_small.csv, study_panels.csv, study_small_peers.csv and study_gebrd.csv in the folder and writes a picture
beside each, and study_small_space.png of study_small.csv, batched_lu.csv and the device's barriers in kernels/tuning;
tables that are missing are left out.
"""

import sys

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.report.plot_parts import drawing, shown, size_of
from h2gpu.batched import model

COLOURS = "#2166ac", "#b2182b", "#e08214", "#1b7837", "#762a83", "#dfc27d", "0.75"
WIDTH = 0.7  # of a bar
THREADS = (32, 64, 128, 256, 512, 1024)  # that meet at a barrier


def main(argv=None):
    """The command; returns the exit status."""
    return drawing("small_plots", __doc__, draw, argv)


def draw(folder):
    """Every picture whose table is there."""
    import matplotlib

    matplotlib.use("Agg")
    pictures = {"study_small": rates, "study_panels": panels, "study_small_peers": others, "study_gebrd": breakdown}
    for name, picture in pictures.items():
        if (folder / f"{name}.csv").is_file():
            _saved(picture(tables.read(folder / f"{name}.csv")[1]), folder / f"{name}.png")
    if all((folder / f"{name}.csv").is_file() for name in ("study_small", "batched_lu")):
        (head, small), (_, large) = (tables.read(folder / f"{name}.csv") for name in ("study_small", "batched_lu"))
        device = next(line.removeprefix("device: ") for line in head if line.startswith("device: "))
        _saved(space(small, large, model.Constants.of(device)), folder / "study_small_space.png")


def _saved(figure, path):
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def space(small, large, constants):
    """Figure 2, a barrier over the threads that meet, and figure 10, LU of all sizes: a thread, a block, by panels."""
    figure, axes = _axes(1, 2)
    left, right = axes[0]
    left.plot(THREADS, [1e9 * constants.barrier(threads) for threads in THREADS], "o-", color=COLOURS[0])
    left.set(xlabel="threads", ylabel="ns", title=f"figure 2, a barrier, {constants.device}")
    left.set_xscale("log", base=2)
    for (number, label), colour in zip((("4", "64,000, a thread each"), ("9", "8,000, a block each")), COLOURS):
        some = [r for r in small if (r["figure"], r["routine"], r["dtype"]) == (number, "lu", "float32") and r["ms"]]
        right.plot(*_line(some, lambda r: r["GFLOP/s"]), "o-", color=colour, label=f"{label}, not pivoted")
    some = [r for r in large if (r["method"], r["dtype"]) == ("auto", "float32")]
    label = f"{some[0]['batch']}, pivoted: batched.lu_factor"
    right.plot(*_line(some, lambda r: r["GFLOP/s"]), "s-", color=COLOURS[2], label=label)
    right.set_xscale("log", base=2)
    right.set(xlabel="n", ylabel="GFLOP/s", yscale="log", title="figure 10, LU in float32")
    right.legend(fontsize="small")
    return figure


def rates(rows):
    """GFLOP/s over n, measured and by the model: figure 4 above, by precision; 7, 9 and 12 below."""
    dtypes = list(dict.fromkeys(r["dtype"] for r in rows if r["figure"] == "4"))
    figure, axes = _axes(2, 3)
    for place, dtype in zip(axes[0], dtypes):
        _measured_and_model(place, rows, "4", ("routine",), dtype)
        place.set_title(f"figure 4, a problem a thread, {dtype}")
    for place, number, keys, title in zip(
        axes[1],
        ("7", "9", "12"),
        (("layout",), ("routine", "dtype"), ("routine", "dtype")),
        ("layouts of least squares", "a problem a block", "solutions, a problem a block"),
    ):
        _measured_and_model(place, rows, number, keys)
        place.set_title(f"figure {number}, {title}")
    for line in axes:
        line[0].set_ylabel("GFLOP/s")
    return figure


def _measured_and_model(axes, rows, figure, keys, dtype=None):
    """A colour for every value of the keys: measured as a line, by the model dashed; of one figure of the paper."""
    some = [r for r in rows if r["figure"] == figure and r["ms"] and dtype in (None, r["dtype"])]
    names = dict.fromkeys(tuple(r[key] for key in keys) for r in some)
    for name, colour in zip(names, COLOURS):
        these = [r for r in some if tuple(r[key] for key in keys) == name]
        axes.plot(*_line(these, lambda r: r["GFLOP/s"]), "o-", color=colour, label=", ".join(name))
        axes.plot(*_by_model(these), "--", color=colour)
    axes.set(xlabel="n, dashed: model", yscale="log")
    axes.legend(fontsize="x-small", ncols=2, loc="lower right")


def _by_model(rows):
    """n, and the GFLOP/s that the model foretells."""
    known = [r for r in rows if r["predicted ms"]]
    return _line(known, lambda r: float(r["GFLOP/s"]) * float(r["ms"]) / float(r["predicted ms"]))


def panels(rows):
    """Cycles of each panel of LU and of QR, its parts one upon another: measured left, by the model right."""
    figure, axes = _axes(2, 2, sharey="row")
    for line, routine in zip(axes, ("lu", "qr")):
        these = [r for r in rows if (r["figure"], r["routine"]) == ("8", routine)]
        for place, (column, title) in zip(line, (("cycles", "measured"), ("predicted cycles", "model"))):
            _stack(place, [(r["panel"], r["part"], float(r.get(column) or 0)) for r in these])
            place.set(xlabel="panel", title=f"{routine.upper()} of {these[0]['shape']}, {these[0]['dtype']}, {title}")
        _beside(line)
        line[0].set_ylabel("cycles")
    return figure


def others(rows):
    """GFLOP/s over n of LU, of QR and of solutions: ours, the model's, others'."""
    routines = list(dict.fromkeys(r["routine"] for r in rows))
    figure, axes = _axes(-(-len(routines) // 2), 2, sharey=True)
    for place, routine in zip(axes.flat, routines):
        these = [r for r in rows if r["routine"] == routine and r["ms"]]
        place.plot(*_line(these, lambda r: r["GFLOP/s"]), "o-", color=COLOURS[0], label="h2gpu, one problem a block")
        place.plot(*_by_model(these), "--", color=COLOURS[0], label="model")
        for key, colour in zip(("peer", "second peer", "LAPACK"), COLOURS[1:]):
            some = [r for r in these if r.get(key)]
            if some:
                place.plot(*_line(some, lambda r, key=key: r[f"{key} GFLOP/s"]), "s-", color=colour, label=some[0][key])
        place.set(xlabel="n", title=f"{routine.upper()} of {rows[0]['batch']} in {rows[0]['dtype']}", yscale="log")
        place.legend(fontsize="small")
    for line in axes:
        line[0].set_ylabel("GFLOP/s")
    return figure


def breakdown(rows):
    """Shares of the time of the bidiagonal reduction over n: measured above, predicted below."""
    figure, axes = _axes(2, 2, sharex="col")
    rows = [r for r in rows if r["share"]]  # none of the kernel as a whole
    for column, dtype in enumerate(("float64", "float32")):
        for line, share in enumerate(("share", "predicted share")):
            place = axes[line][column]
            _stack(place, [(r["n"], r["part"], float(r.get(share) or 0)) for r in rows if r["dtype"] == dtype])
            place.set(
                title=f"{dtype}, {'measured' if line == 0 else 'model'}", ylabel="share of the cycles", xlabel="n"
            )
    _beside(axes[0])
    return figure


def _axes(lines, columns, **knobs):
    import matplotlib.pyplot as plt

    return plt.subplots(lines, columns, figsize=(6 * columns, 4 * lines), squeeze=False, **knobs)


def _stack(axes, numbers):
    """Bars of (place, part, height), parts one upon another in the order in which they come."""
    places, parts = (list(dict.fromkeys(key)) for key in zip(*((place, part) for place, part, _ in numbers)))
    bottom = dict.fromkeys(places, 0.0)
    for part, colour in zip(parts, COLOURS):
        heights = {place: height for place, name, height in numbers if name == part}
        low, high = [bottom[place] for place in places], [heights.get(place, 0.0) for place in places]
        if any(high):
            axes.bar(list(map(str, places)), high, WIDTH, low, color=colour, label=part)
        bottom |= {place: bottom[place] + height for place, height in heights.items()}


def _beside(line):
    """A legend of all axes of a line that covers no bar."""
    line[-1].legend(**shown(line), fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))


def _line(rows, value):
    return [size_of(r) for r in rows], [float(value(r)) for r in rows]


if __name__ == "__main__":
    sys.exit(main())
