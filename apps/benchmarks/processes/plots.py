"""Measured scaling as a picture: speed-up of a number of sites, efficiency of as many sites a GPU, the exchange."""

from collections import defaultdict

from h2gpu.storage import whole_file

QUANTITIES = {"A x ms": ("A x", "o-", "#2166ac"), "compressed s": ("compression", "s--", "#b2182b")}
QUANTITIES |= {"CG s": ("CG", "^:", "#1b7837")}


def curves(rows, weak):
    """{(log2 of sites, in all or of a rank, column): {ranks: value}}, means of several rows, of more than one rank.

    Values are speed-ups or, of as many sites a rank, efficiencies; of CG those of an iteration.
    """
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        ranks = int(row["ranks"])
        size = int(row["n"]) // ranks if weak else int(row["n"])
        for name in (name for name in QUANTITIES if row.get(name)):
            value = float(row[name]) / (float(row["iterations"]) if name == "CG s" else 1)
            found[size.bit_length() - 1, name][ranks].append(value)
    means = {key: {p: sum(v) / len(v) for p, v in sorted(values.items())} for key, values in found.items()}
    return {key: {p: v[1] / v[p] for p in v} for key, v in means.items() if len(v) > 1 and 1 in v}


def draw(rows, path):
    """The picture of a table's rows, into a file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    exchanges = [row for row in rows if row.get("without exchange ms")]
    panels = 2 + bool(exchanges)
    figure, axes = plt.subplots(1, panels, figsize=(4.4 * panels, 4), layout="constrained")
    ranks = sorted({int(row["ranks"]) for row in rows})
    for panel, weak in zip(axes, (False, True)):
        for place, ((log2n, name), values) in enumerate(sorted(curves(rows, weak).items())):
            label, style, colour = QUANTITIES[name]
            shade = 0.45 if place < len(QUANTITIES) else 1  # of the smallest size
            panel.plot(*zip(*values.items()), style, color=colour, alpha=shade, label=f"{label}, $2^{{{log2n}}}$")
        panel.plot(ranks, [1] * len(ranks) if weak else ranks, ":", color="0.3")
        panel.set(xlabel="GPUs", xticks=ranks, ylim=(0, None))
        panel.grid(True, color="0.9")
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=8, frameon=False, loc="lower left" if weak else "upper left")
    axes[0].set(title="speed-up of sites in all")
    axes[1].set(title="efficiency of sites a GPU")
    if exchanges:
        _exchange(axes[2], exchanges)
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=110, format="png")
    plt.close(figure)


def _exchange(axes, rows):
    """Bars: a product without its exchange, what is not hidden of that, and the exchange by itself."""
    for i, row in enumerate(rows):
        without, whole = float(row["without exchange ms"]), float(row["A x ms"])
        told = ("without the exchange", "what it adds", "the exchange alone") if i == 0 else (None,) * 3
        axes.barh(i, without, color="#92c5de", label=told[0])
        axes.barh(i, max(0.0, whole - without), left=without, color="#b2182b", label=told[1])
        axes.plot(float(row["exchange ms"]), i, "k|", markersize=12, label=told[2])
    names = [f"$2^{{{int(row['n']).bit_length() - 1}}}$ on {row['ranks']}" for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set(title="a product and its exchange", xlabel="ms", xscale="log")
    axes.legend(fontsize=8)
