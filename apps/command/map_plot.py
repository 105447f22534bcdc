"""Maps of what was observed and what was predicted: a panel a quantity, in colours, values at scattered places.

Every pixel shows the nearest place, where one is near: within REACH times the distance to their nearest other place
that 99 % of the places have. Grids keep their edges, and maps of scattered sites hardly any holes. Needs matplotlib
(the extra `plots`).
"""

from dataclasses import dataclass

import numpy as np
import scipy

from h2gpu.apps.command.structure_plot import INK, QUIET, require_matplotlib
from h2gpu.texts import plain

PIXELS = 360  # of a panel's longer side
REACH, MOST = 0.8, 99
ENDS = (1, 99)  # percentiles that the colours span
SIDE, MARGIN, DPI = 5.2, 1.0, 150  # inches of a panel's longer side and around the panels, pixels an inch
PALETTES = {"values": "viridis", "uncertainty": "magma", "difference": "RdBu_r"}


@dataclass(frozen=True, eq=False)
class Panel:
    """One map.

    points   (n, 2)
    values   (n,) finite
    kind     values, uncertainty, or difference: around zero, in two colours
    like     another panel whose range of colours it takes; None for its own
    """

    title: str
    points: np.ndarray
    values: np.ndarray
    kind: str = "values"
    like: "Panel | None" = None

    @property
    def limits(self):
        """Smallest and largest value that the colours tell apart."""
        if self.like is not None:
            return self.like.limits
        low, high = np.percentile(self.values, ENDS)
        if self.kind == "difference":
            high = max(abs(low), abs(high))
            low = -high
        return (low, high) if high > low else (low - 1, high + 1)


def outcome(sites, values, targets, mean, std, truth=None):
    """Panels of a prediction: observed, predicted, its standard deviation, and the error where the truth is known.

    sites (n, 2), values (n,) as observed; targets (m, 2), and at them mean, std and truth, each (m,)
    """
    observed = Panel("observed", sites, values)
    panels = [observed, Panel("predicted", targets, mean, like=observed)]
    panels.append(Panel("standard deviation", targets, std, "uncertainty"))
    if truth is not None:
        panels.append(Panel("predicted − true", targets, mean - truth, "difference"))
    return panels


def draw(panels, path, title, subtitle="", format="png", axes=("", ""), values=""):
    """Write maps of (n, 2) points, two a row, on one scale of the coordinates.

    path     where to, a name or an open file; `format` png, pdf or svg
    axes     what the two coordinates are, with their units
    values   what the colours are

    Raises ImportError without matplotlib, OSError when the disk refuses.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    extent = extent_of([panel.points for panel in panels])
    width, height = _sides(extent)
    rows = -(-len(panels) // 2)
    size = (2 * width + 2.2 * MARGIN, rows * (height + 0.5) + MARGIN)
    figure = Figure(figsize=size, dpi=DPI, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.75 / size[1]))
    figure.text(
        0.3 / size[0], 1 - 0.32 / size[1], plain(title, 80), parse_math=False, fontsize=15, fontweight="bold", color=INK
    )
    figure.text(0.3 / size[0], 1 - 0.6 / size[1], plain(subtitle, 200), parse_math=False, fontsize=10.5, color=QUIET)
    places = figure.subplots(rows, 2, squeeze=False).ravel()
    for ax, panel in zip(places, panels):
        bar = _map(figure, ax, panel, extent)
        ax.set_xlabel(plain(axes[0], 80), fontsize=9, color=INK, parse_math=False)
        ax.set_ylabel(plain(axes[1], 80), fontsize=9, color=INK, parse_math=False)
        bar.set_label(plain(values, 80), fontsize=9, color=INK, parse_math=False)
    for ax in places[len(panels) :]:
        ax.set_axis_off()
    figure.savefig(path, format=format)


def raster(points, values, extent, shape):
    """(rows, columns) image of values at the nearest of points (n, 2), first row at the top; NaN where none is near."""
    (left, right), (bottom, top) = extent
    rows, columns = shape
    x = left + (np.arange(columns) + 0.5) * (right - left) / columns
    y = top - (np.arange(rows) + 0.5) * (top - bottom) / rows
    tree, pixels = scipy.spatial.cKDTree(points), np.stack(np.meshgrid(x, y), axis=-1)
    spacing = np.percentile(tree.query(points, 2)[0][:, 1], MOST) if len(points) > 1 else 0.0
    pixel = np.hypot((right - left) / columns, (top - bottom) / rows)
    nearest = tree.query(pixels, distance_upper_bound=max(REACH * spacing, pixel))[1]
    return np.append(values, np.nan)[nearest]  # without one near, the index is n


def extent_of(clouds):
    """((left, right), (bottom, top)) around (n, 2) points, half a per cent beyond; never empty."""
    points = np.concatenate(clouds)
    low, high = points.min(axis=0), points.max(axis=0)
    room = 0.005 * float((high - low).max()) or max(1.0, float(np.abs(high).max())) / 2
    return tuple((float(l) - room, float(h) + room) for l, h in zip(low, high))


def _sides(extent):
    """Inches of a panel, the longer side SIDE, the shorter one a quarter of it at least."""
    spans = [high - low for low, high in extent]
    return [max(SIDE * span / max(spans), SIDE / 4) for span in spans]


def _map(figure, ax, panel, extent):
    """Draws a panel; its colour bar."""
    width, height = _sides(extent)
    shape = [round(PIXELS * side / SIDE) for side in (height, width)]
    image = raster(panel.points, panel.values, extent, shape)
    low, high = panel.limits
    box = (*extent[0], *extent[1])
    drawn = ax.imshow(image, PALETTES[panel.kind], vmin=low, vmax=high, extent=box, interpolation="none", aspect="auto")
    ax.set_title(panel.title, fontsize=11.5, color=INK, loc="left")
    ax.tick_params(labelsize=8.5, colors=QUIET)
    ax.set_facecolor("#dfe3e8")
    for spine in ax.spines.values():
        spine.set(color=QUIET, linewidth=0.6)
    bar = figure.colorbar(drawn, ax=ax, fraction=0.045, pad=0.015, extend="both")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8.5, colors=QUIET)
    return bar
