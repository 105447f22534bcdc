"""The tables of batched as pictures, one a figure of Boukaram et al., and figures 7–10 of Nath et al. (2010).

    python -m h2gpu.apps.benchmarks.report.plots [FOLDER]

Reads batched_*.csv in the folder and writes batched_qr.png (figure 4), batched_svd_small.png (5, 8),
batched_svd_large.png (10, 12), batched_peers.png (4, 10b), batched_profiles.png (9, 11), batched_gebrd.png (5 of Dong
et al. 2018), batched_lu.png (8, 9 of Abdelfattah et al. 2019) and batched_sizes.png (7–10 of Nath et al. 2010) beside
them; tables that are missing are left out.
"""

import sys

from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks.report import profiles as bench_profiles
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.benchmarks.report.plot_parts import curve, drawing, finished, grid, rate_curve
from h2gpu.apps.benchmarks.routines.batched import PAPER_BOUND, ROUTINES

DTYPES = ("float64", "float32")
KBLAS = "KBLAS ms, measured elsewhere on an H200"
ELSEWHERE = "KBLAS, elsewhere"
PEERS = ("peer", "second peer", "third peer")
PHASE_COLOURS = dict(
    zip(
        (*bench_profiles.PHASES, *bench_profiles.OTHERS),
        ("#2166ac", "#b2182b", "#e08214", "#762a83", "#1b7837", "#dfc27d", "#80cdc1", "0.75", "#67a9cf", "#ef8a62"),
    )
)


def main(argv=None):
    """The command; returns the exit status."""
    return drawing("bench_plots", __doc__, draw, argv)


def draw(folder):
    """Every picture whose tables are there."""
    import matplotlib

    matplotlib.use("Agg")
    names = "qr", "svd", "rsvd", "gebrd", "lu", "peers", "profiles", "sizes"
    found = {name: _read(folder / f"batched_{name}.csv") for name in names}
    pictures = {
        "batched_qr": (qr, found["qr"]),
        "batched_svd_small": (svd_small, [r for r in found["svd"] if r["figure"] == "5, 8"]),
        "batched_svd_large": (svd_large, [r for r in found["svd"] if r["figure"] == "10"] + found["rsvd"]),
        "batched_peers": (others, found["peers"]),
        "batched_gebrd": (gebrd, found["gebrd"]),
        "batched_lu": (lu, found["lu"]),
        "batched_profiles": (profiles, found["profiles"]),
        "batched_sizes": (sizes, found["sizes"]),
    }
    for name, (picture, rows) in pictures.items():
        if rows:
            figure = picture(rows)
            figure.savefig(folder / f"{name}.png", dpi=150)
            matplotlib.pyplot.close(figure)


def qr(rows):
    """GFLOP/s over the size: square matrices above, m × 32 below; with Q and R alone, PyTorch and KBLAS beside."""
    figure, panels = grid(2, "QR of 1000 matrices (dashed: 200)")
    for column, dtype in enumerate(DTYPES):
        for line, (kind, width) in enumerate((("4a", None), ("4b", "32"))):
            axes = panels[line][column]
            some = [r for r in rows if r["dtype"] == dtype and r["figure"] == kind and width in (None, _n(r))]
            for routine, label in (("qr", "Q and R"), ("qr_r", "R alone")):
                ours = [r for r in some if r["routine"] == routine]
                for batch, style in (("1000", "o-"), ("200", "--")):
                    these = [r for r in ours if r["batch"] == batch]
                    curve(axes, these, "GFLOP/s", style, routine, label if batch == "1000" else None)
                these = [r for r in ours if r["batch"] == "1000"]
                rate_curve(axes, these, "peer ms", "s:", "peer" if routine == "qr" else "second peer")
                mark, note = ("x", "") if routine == "qr" else ("+", ", R alone")
                rate_curve(axes, these, KBLAS, mark, "KBLAS", ELSEWHERE + note)
            axes.set(xlabel="n" if kind == "4a" else "rows m, 32 columns", title=f"{dtype}, {_kind(kind)}")
    panels[0][0].set_ylabel("GFLOP/s")
    panels[1][0].set_ylabel("GFLOP/s")
    return finished(figure, panels)


def svd_small(rows):
    """Time, GFLOP/s of rotations, occupancy."""
    figure, panels = grid(3, "SVD of 1000 matrices, left vectors, condition 1e7")
    for column, dtype in enumerate(DTYPES):
        some = [r for r in rows if r["dtype"] == dtype]
        for line, (quantity, word) in enumerate(
            (("ms", "milliseconds"), ("GFLOP/s", "GFLOP/s"), ("occupancy", "occupancy"))
        ):
            axes = panels[line][column]
            _methods(axes, some, quantity)
            if quantity == "ms":
                _others(axes, some)
            if quantity == "occupancy":
                axes.set_yscale("linear")
                axes.set_ylim(0, 1)
            axes.set(xlabel="n", title=dtype)
            panels[line][0].set_ylabel(word)
    return finished(figure, panels)


def svd_large(rows):
    """Time of every method of the full SVD, and of the randomized one."""
    figure, panels = grid(1, "SVD of 200 matrices, left vectors, condition 1e7; randomized: 64 triplets, rank 64")
    for column, dtype in enumerate(DTYPES):
        some, axes = [r for r in rows if r["dtype"] == dtype], panels[0][column]
        full, randomized = ([r for r in some if r["routine"] == name] for name in ("svd", "rsvd"))
        _methods(axes, full, "ms")
        _others(axes, full)
        curve(axes, randomized, "ms", "D-", "rsvd", "randomized")
        curve(axes, randomized, KBLAS, "+", "KBLAS", ELSEWHERE + ", randomized")
        axes.set(xlabel="n", title=dtype)
    panels[0][0].set_ylabel("milliseconds")
    return finished(figure, panels)


def others(rows):
    """Milliseconds of QR of 1000 square matrices and of the SVD of 200, with everybody's beside them."""
    figure, panels = grid(2, "QR with Q of 1000 matrices; SVD of 200, left vectors, condition 1e7")
    for column, dtype in enumerate(DTYPES):
        some = [r for r in rows if r["dtype"] == dtype]
        square = [r for r in some if (r["routine"], r["figure"], r["batch"]) == ("qr", "4a", "1000")]
        curve(panels[0][column], square, "ms", "o-", "qr", "Q and R")
        _others(panels[0][column], square)
        large = [r for r in some if r["figure"] == "10"]
        curve(panels[1][column], large, "ms", "o-", "auto", "ours")
        _others(panels[1][column], large)
        for line in panels:
            line[column].set(xlabel="n", title=dtype)
            line[0].set_ylabel("milliseconds")
    return finished(figure, panels)


def gebrd(rows):
    """GFLOP/s over the size, beside the bound from our own products and the peers."""
    figure, panels = grid(1, "Bidiagonal form of 1000 matrices, from 128² on of 200")
    for column, dtype in enumerate(DTYPES):
        some, axes = [r for r in rows if r["dtype"] == dtype], panels[0][column]
        curve(axes, some, "GFLOP/s", "o-", "qr", "d, e and reflectors")
        curve(axes, some, PAPER_BOUND, "--", "KBLAS", "2 GEMM · GEMV / (GEMM + GEMV)")
        for peer in ("peer", "second peer"):
            rate_curve(axes, some, f"{peer} ms", "s:", peer, next((r[peer] for r in some if r.get(peer)), None))
        axes.set(xlabel="n", title=dtype)
    panels[0][0].set_ylabel("GFLOP/s")
    return finished(figure, panels)


def lu(rows):
    """GFLOP/s and fraction of the bound over the size, by method, beside the peers."""
    figure, panels = grid(2, "LU with partial pivoting of 500 matrices")
    for column, dtype in enumerate(reversed(DTYPES)):
        some = [r for r in rows if r["dtype"] == dtype]
        once = [r for r in some if r["method"] == "auto"]
        for line, quantity in enumerate(("GFLOP/s", "of bound")):
            axes = panels[line][column]
            _methods(axes, some, quantity, ROUTINES["lu"].kernels)
            curve(axes, once, quantity, "--", "auto", "auto")
            axes.set(xlabel="n", title=f"{dtype}, figure {bench_cases.FIGURE_OF_LU[dtype]}")
            panels[line][0].set_ylabel(quantity)
        for key in ("peer", "second peer"):
            rate_curve(
                panels[0][column], once, f"{key} ms", "s:", key, next((r[key] for r in once if r.get(key)), None)
            )
    return finished(figure, panels)


def profiles(rows):
    """Shares of time by phase, float64."""
    import matplotlib.pyplot as plt

    rows = [{"method": ""} | r for r in rows]  # a column that is empty throughout is not in the file
    rows = [r for r in rows if r["dtype"] == DTYPES[0] and r["method"] != "shared"]
    kinds = list(dict.fromkeys((r["routine"], r["method"]) for r in rows))
    figure, panels = plt.subplots(1, len(kinds), figsize=(max(9, 3 * len(kinds)), 5), sharey=True, squeeze=False)
    shown = {}
    for axes, kind in zip(panels[0], kinds):
        some = [r for r in rows if (r["routine"], r["method"]) == kind]
        sizes = list(dict.fromkeys(r["n"] for r in some))
        below = dict.fromkeys(sizes, 0.0)
        for phase, colour in PHASE_COLOURS.items():
            share = {r["n"]: float(r["share"]) for r in some if r["phase"] == phase}
            if not any(share.values()):
                continue
            heights = [100 * share.get(n, 0) for n in sizes]
            shown[phase] = axes.bar(sizes, heights, bottom=list(below.values()), color=colour, width=0.8)
            below = {n: below[n] + height for n, height in zip(sizes, heights)}
        axes.set(xlabel="n", title=" ".join(filter(None, kind)))
        axes.tick_params(axis="x", labelrotation=60)
    panels[0][0].set_ylabel("per cent of the time")
    figure.suptitle("Phases, 200 matrices, float64")
    figure.legend(shown.values(), shown, loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    return figure


def sizes(rows):
    """Products of every size: rate beside the vendor's, fractions of bound and neighbours, flops beyond the edges."""
    known = ("GFLOP/s", "of bound", "of neighbours", "extra flops")
    quantities = [quantity for quantity in known if any(r.get(quantity) for r in rows)]
    figure, panels = grid(len(quantities), "Products of n × n matrices, compiled for their size")
    for column, dtype in enumerate(DTYPES):
        some = [r | {"shape": r["shape"].replace("³", "×")} for r in rows if r["dtype"] == dtype]
        for quantity, line in zip(quantities, panels):
            curve(line[column], some, quantity, "-", "fixed", "compiled for n")
            line[column].set(xlabel="n", title=dtype, xscale="linear", yscale="linear")
            line[0].set_ylabel(quantity)
            if quantity == "of neighbours":
                line[column].axhline(bench_cases.OF_EVEN_SIZE, color="0.6", linewidth=0.8)
        rate_curve(panels[0][column], some, "peer ms", ":", "peer")
    return finished(figure, panels)


def _methods(axes, rows, quantity, methods=("register", "shared", "block-gram", "block-direct")):
    for method in methods:
        curve(axes, [r for r in rows if r["method"] == method], quantity, "o-", method, method)


def _others(axes, rows):
    """Peers and KBLAS, which every method's row of a size repeats."""
    once = list({_n(r): r for r in rows}.values())
    for key in PEERS:
        curve(axes, once, f"{key} ms", "s:", key, next((r[key] for r in once if r.get(key)), None))
    curve(axes, once, KBLAS, "x", "KBLAS", ELSEWHERE)


def _n(row):
    """Columns of the matrix, as text."""
    return row["shape"].split("×")[1]


def _kind(figure):
    return {"4a": "square", "4b": "32 columns"}[figure]


def _read(path):
    return tables.read(path)[1] if path.is_file() else []


if __name__ == "__main__":
    sys.exit(main())
