"""The table of as_called as a picture: microseconds of a call over the order, a panel for each routine."""

COLUMNS = 5
CURVES = {
    "µs": ("o-", "#2166ac", "h2gpu"),
    "device µs": ("--", "#2166ac", "h2gpu, the device's share"),
    "CuPy µs": ("s:", "#e08214", "CuPy"),
    "NumPy µs": ("s:", "#e08214", "NumPy"),
    "torch µs": ("^:", "0.45", "PyTorch"),
}
BATCH, DTYPE = 500, "float64"  # shown where they were measured


def draw(rows, path):
    """Write the picture of the rows of one batch and precision; a file of matplotlib's formats."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    dtype = DTYPE if any(row["dtype"] == DTYPE for row in rows) else rows[0]["dtype"]
    batch = BATCH if any(row["batch"] == BATCH for row in rows) else rows[0]["batch"]
    rows = [row for row in rows if row["dtype"] == dtype and row["batch"] == batch]
    routines = list(dict.fromkeys(row["routine"] for row in rows))
    lines = -(-len(routines) // COLUMNS)
    figure, panels = pyplot.subplots(
        lines, COLUMNS, figsize=(3 * COLUMNS, 2.4 * lines + 0.8), sharex=True, squeeze=False, layout="constrained"
    )
    for axes in panels.flat[len(routines) :]:
        axes.set_axis_off()
    for routine, axes in zip(routines, panels.flat):
        these = [row for row in rows if row["routine"] == routine]
        for column, (style, colour, label) in CURVES.items():
            points = [(row["n"], row[column]) for row in these if row.get(column)]
            if points:
                axes.plot(*zip(*points), style, color=colour, label=label, markersize=4)
        axes.set(title=routine, yscale="log")
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
    for axes in panels[-1]:
        axes.set_xlabel("order n")
    for axes in panels[:, 0]:
        axes.set_ylabel("µs a call")
    labels = {label: handle for axes in panels.flat for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=len(CURVES), frameon=False)
    figure.suptitle(f"A call in a loop: {batch} matrices, {dtype}")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
