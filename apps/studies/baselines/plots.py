"""The studies of baselines and of edges as pictures: figures of Abdelfattah, Dong, Nath, Anderson et al.

    python -m h2gpu.apps.studies.baselines.plots [FOLDER]

Reads study_lu-*.csv, study_gebrd_versions-*.csv, study_triangles-*.csv, study_hessenberg-*.csv, study_qr-*.csv,
study_edges-*.csv and study_fast_math-*.csv in the folder and writes a picture beside each.
"""

import sys

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.report.plot_parts import drawing

PALETTE = "#762a83", "#5aae61", "#e08214", "#b2182b", "#f4a582", "#2166ac", "black", "0.6"
MARKS = "osv^D*x+"


def main(argv=None):
    """The command; returns the exit status."""
    return drawing("baselines.plots", __doc__, draw, argv)


def draw(folder):
    """Every picture whose table is there."""
    import matplotlib

    matplotlib.use("Agg")
    for prefix, picture in PICTURES.items():
        for path in sorted(folder.glob(f"{prefix}-*.csv")):
            figure = picture(tables.read(path)[1])
            figure.savefig(path.with_suffix(".png"), dpi=150)
            matplotlib.pyplot.close(figure)


def lu(rows):
    """A line a precision: rates of all methods, shares of stages, rates of products with 16 inner indices."""
    dtypes = list(dict.fromkeys(r["dtype"] for r in rows))
    figure, panels = grid(len(dtypes), 3)
    for (methods, shares, products), dtype in zip(panels, dtypes):
        these = [r for r in rows if r["dtype"] == dtype]
        curves(methods, [r for r in these if r["figure"] not in ("3", "4")], lambda r: r["method"])
        methods.set(title=f"LU of {these[0]['batch']}, {dtype}", ylabel="GFLOP/s", xlabel="n")
        stacked(shares, [(r["n"], r["stage"], float(r["share"])) for r in these if r["figure"] == "4"])
        shares.set(title="a kernel a stage: shares", xlabel="n")
        curves(products, [r for r in these if r["figure"] == "3"], lambda r: f"{r['stage'][6:]}, {r['method']}")
        products.set(title="products, 16 inner indices", ylabel="GFLOP/s", xlabel="n")
    return figure


def gebrd(rows):
    """A line a precision: rates of all versions, of GEMV, of GEMM."""
    dtypes = list(dict.fromkeys(r["dtype"] for r in rows))
    figure, panels = grid(len(dtypes), 3)
    for line, dtype in zip(panels, dtypes):
        these = [r for r in rows if r["dtype"] == dtype]
        for axes, figures, title in zip(line, ("5", "34", "2, 7, 8"), ("bidiagonal reduction", "GEMV", "GEMM")):
            some = [r for r in these if r["figure"] in figures]
            curves(axes, some, lambda r: ", ".join(filter(None, (r["stage"].partition(", ")[2], r["method"]))))
            axes.set(title=f"{title} of {these[0]['batch']}, {dtype}", xlabel="n", ylabel="GFLOP/s")
    return figure


def triangles(rows):
    """Rates of every way, an axes a precision."""
    dtypes = list(dict.fromkeys(r["dtype"] for r in rows))
    figure, panels = grid(1, len(dtypes))
    for axes, dtype in zip(panels[0], dtypes):
        these = [r for r in rows if r["dtype"] == dtype]
        curves(axes, these, lambda r: r["method"])
        axes.set(title=f"TRSM, {these[0]['sides']} sides, {these[0]['batch']} of {dtype}", xlabel="n", ylabel="GFLOP/s")
    return figure


def large(rows):
    """Rates of every way of one large matrix, an axes a precision."""
    dtypes = list(dict.fromkeys(r["dtype"] for r in rows))
    figure, panels = grid(1, len(dtypes))
    for axes, dtype in zip(panels[0], dtypes):
        these = [r for r in rows if r["dtype"] == dtype and r.get("GFLOP/s")]
        curves(axes, these, lambda r: r["method"])
        axes.set(title=f"one matrix, {dtype}", xlabel="n", ylabel="GFLOP/s")
    return figure


def penalties(rows):
    """What exact quotients and roots cost, an axes a section."""
    sections = list(dict.fromkeys(r["figure"] for r in rows))
    figure, panels = grid(1, len(sections))
    for axes, section in zip(panels[0], sections):
        some = [r for r in rows if r["figure"] == section]
        curves(axes, some, lambda r: r["routine"], "penalty", log=False)
        axes.set(title=f"{some[0]['batch']} problems, section {section}", xlabel="n", ylabel="longer than by fast math")
    return figure


def edges(rows):
    """Rates of what threads beyond the edge may do, small sizes and large."""
    names = [key for key in rows[0] if key not in ("n", "batch") and "host" not in key]
    figure, panels = grid(1, 2)
    for axes, low, high in zip(panels[0], (0, 161), (160, 1 << 30)):
        some = [r for r in rows if low <= int(r["n"]) <= high]
        lines = [{"n": r["n"], "method": name, "GFLOP/s": r[name]} for name in names for r in some if r.get(name)]
        curves(axes, lines, lambda r: r["method"])
        axes.set(title="products of n × n", xlabel="n", ylabel="TFLOP/s")
    return figure


def grid(lines, columns):
    """A figure and its axes (lines, columns)."""
    import matplotlib.pyplot as plt

    return plt.subplots(lines, columns, figsize=(5.2 * columns, 3.8 * lines), squeeze=False, layout="constrained")


def curves(axes, rows, label, value="GFLOP/s", x="n", log=True):
    """A curve a label."""
    for i, name in enumerate(dict.fromkeys(map(label, rows))):
        points = sorted((int(r[x]), float(r[value])) for r in rows if label(r) == name and r.get(value))
        axes.plot(*zip(*points), marker=MARKS[i % len(MARKS)], color=PALETTE[i % len(PALETTE)], label=name, ms=4)
    if rows:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.set_yscale("log" if log else "linear")
        axes.grid(True, color="0.9")
        axes.legend(fontsize=7, frameon=False)
    else:
        axes.set_visible(False)


def stacked(axes, numbers):
    """Bars of (place, part, height), parts one upon another; nothing where there are none."""
    if not numbers:
        axes.set_visible(False)
        return
    bottom = dict.fromkeys((place for place, *_ in numbers), 0.0)
    for part, colour in zip(dict.fromkeys(part for _, part, _ in numbers), PALETTE):
        heights = {place: height for place, name, height in numbers if name == part}
        axes.bar(list(heights), list(heights.values()), 0.7, [bottom[p] for p in heights], color=colour, label=part)
        bottom |= {place: bottom[place] + height for place, height in heights.items()}
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)  # beside: bars fill the axes


PICTURES = {
    "study_lu": lu,
    "study_gebrd_versions": gebrd,
    "study_triangles": triangles,
    "study_hessenberg": large,
    "study_qr": large,
    "study_edges": edges,
    "study_fast_math": penalties,
}


if __name__ == "__main__":
    sys.exit(main())
