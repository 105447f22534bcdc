"""A picture of an H²-matrix: dense blocks in one colour, low-rank blocks coloured by rank, and a part enlarged.

Rows and columns stand in tree order, so that near points are near the diagonal. Blocks are painted into an image four
times finer than the pixels shown and averaged: where blocks are smaller than a pixel, its colour tells how much of it
is dense. Fine for any number of blocks (10^6 in seconds); needs matplotlib (the extra `plots`).
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from h2gpu.memory import readable
from h2gpu.storage import whole_file
from h2gpu.texts import plain

FORMATS = (".png", ".pdf", ".svg")
FINER = 4  # painted pixels a pixel shown, each way
GAP = 24  # painted pixels from which on a block has a white edge
ENLARGED = 64  # leaves across the enlarged part, or fewer: at most a quarter
DENSE, COLOURS = "#c1272d", 252  # and how many colours ranks have
INK, QUIET = "#1d2733", "#66717e"
PARTS = {"dense blocks": "nearfield", "leaf bases": "leaf_basis", "transfers": "transfer", "couplings": "coupling"}
WIDTH, HEIGHT, DPI = 13.0, 9.2, 150  # inches, and pixels an inch
MATRIX = (0.03, 0.035, 8.0 / WIDTH, 8.0 / HEIGHT)  # axes: left, bottom, width, height in parts of the figure
PART = (0.705, 0.455, 3.5 / WIDTH, 3.5 / HEIGHT)
BAR = (0.705, 0.345, 3.5 / WIDTH, 0.02)


def require_matplotlib():
    """ImportError with advice where matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("a picture needs matplotlib; install it with: pip install 'h2gpu[plots]'")


def write(path, B, source, covariance, accuracy):
    """The picture in a file, its format by the name, whole or not at all.

    source       what the matrix is called
    covariance   dictionary of its parameters, or None
    accuracy     promised, or None
    """
    name = str(covariance["name"]).lower() if isinstance(covariance, dict) and "name" in covariance else ""
    told = [f"{name} covariance" if name else ""]
    told += [f"accuracy {accuracy:.2g}"] if isinstance(accuracy, (int, float)) else []
    with whole_file(path) as temporary:
        kind = Path(path).suffix.lower()[1:]
        draw(B, temporary, f"{source}: {B.shape[0]:,} points", ", ".join(filter(None, told)), kind)


def draw(B, path, title="", subtitle="", format="png"):
    """Write the picture of an H2Matrix.

    path       where to, a name or an open file; `format` png, pdf or svg
    title      the first line, bold; default: shape
    subtitle   the second line, before the sizes: for covariance and accuracy

    Raises ImportError without matplotlib, OSError when the disk refuses.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, facecolor="white")
    ranks, palette = Ranks.of(B), _palette()
    _image(figure, MATRIX, B, ranks, palette, Window.whole(B))
    dense = B.shape[0] * B.shape[1] * B.dtype.itemsize
    numbers = f"{readable(B.nbytes)}, {dense / max(1, B.nbytes):,.3g} times smaller than dense ({readable(dense)})"
    left = MATRIX[0]
    figure.text(
        left,
        0.96,
        plain(title or f"{B.shape[0]:,} × {B.shape[1]:,}", 80),
        parse_math=False,
        fontsize=19,
        fontweight="bold",
        color=INK,
    )
    figure.text(
        left,
        0.925,
        plain("  ·  ".join(filter(None, (subtitle, numbers)))),
        parse_math=False,
        fontsize=12.5,
        color=QUIET,
    )
    _enlarged(figure, B, ranks, palette)
    _legend(figure, ranks, palette)
    _memory(figure, B.memory)
    figure.savefig(path, format=format)


@dataclass(frozen=True)
class Ranks:
    """The rank of each low-rank block, the smaller side of its coupling, and the range of them."""

    of_blocks: np.ndarray
    lowest: int
    highest: int

    @classmethod
    def of(cls, B):
        ranks = np.minimum(*B.couplings.shapes)
        return cls(ranks, *((int(ranks.min()), int(ranks.max())) if len(ranks) else (0, 1)))

    @property
    def colours(self):
        """Index into the palette for each block."""
        return 2 + (self.of_blocks - self.lowest) * (COLOURS - 1) // max(1, self.highest - self.lowest)


@dataclass(frozen=True)
class Window:
    """A part of the matrix, in tree order: rows top … bottom − 1, columns left … right − 1."""

    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def whole(cls, B):
        return cls(0, B.shape[0], 0, B.shape[1])

    @classmethod
    def around_diagonal(cls, B):
        """Some leaves beyond the middle of the matrix; None where there are hardly more."""
        spans = []
        for basis in (B.row_basis, B.col_basis):
            leaves = np.sort(basis.tree.start[basis.tree.leaves])
            count = min(ENLARGED, 1 << max(0, (len(leaves) // 4).bit_length() - 1))
            if count < 4:
                return None
            first = len(leaves) * 5 // 8 // count * count  # a subtree, as a rule
            spans += [int(leaves[first]), int(leaves[first + count])]
        return cls(*spans)


def painted(B, ranks, window, pixels):
    """(pixels, pixels) uint8 indices of the palette: 0 empty, 1 dense, 2 … by rank; both halves of a symmetric one."""
    image = np.zeros((pixels, pixels), np.uint8)
    near = np.ones(len(B.nearfield), np.int64)
    for blocks, colours in ((B.couplings, ranks.colours), (B.nearfield, near)):
        halves = [(blocks.rows, blocks.columns), (blocks.columns, blocks.rows)][: 1 + B.symmetric]
        for t, s in halves:
            top, bottom = _edges(B.row_basis.tree, t, window.top, window.bottom, pixels)
            left, right = _edges(B.col_basis.tree, s, window.left, window.right, pixels)
            seen = (top < bottom) & (left < right)
            for y0, y1, x0, x1, colour in np.column_stack([top, bottom, left, right, colours])[seen].tolist():
                image[y0:y1, x0:x1] = colour
    return image


def _edges(tree, clusters, first, stop, pixels):
    """First pixel and last + 1 of clusters within first … stop − 1; those of some width lose one to a white edge."""
    begin, end = tree.start[clusters], tree.stop[clusters]
    inside = (begin < stop) & (end > first)
    lower = np.clip((begin - first) * pixels // (stop - first), 0, pixels)
    upper = np.clip((end - first) * pixels // (stop - first), 0, pixels)
    upper = np.where(inside, np.maximum(upper, lower + 1), lower)
    return lower, upper - np.where(upper - lower >= GAP, 1 + (upper - lower >= 4 * GAP), 0)


def _palette():
    """(256, 3) colours 0 … 255: white, the dense colour, then ranks from light (small) to dark (large).

    The colours of ranks are YlGnBu's, spaced so that the perceived lightness falls evenly.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    fine = colormaps["YlGnBu"](np.linspace(0.04, 1, 1024))[:, :3]
    linear = np.where(fine <= 0.04045, fine / 12.92, ((fine + 0.055) / 1.055) ** 2.4)
    darkness = -np.cbrt(linear @ (0.2126, 0.7152, 0.0722))  # CIE lightness, up to a factor
    even = np.interp(np.linspace(darkness[0], darkness[-1], COLOURS), darkness, np.arange(1024)).round().astype(int)
    return np.vstack([[to_rgb("white"), to_rgb(DENSE)], fine[even], np.zeros((254 - COLOURS, 3))])


def _image(figure, place, B, ranks, palette, window):
    """Axes with a part of the matrix."""
    axes = figure.add_axes(place)
    pixels = round(place[2] * WIDTH * DPI)
    image, picture = painted(B, ranks, window, pixels * FINER), np.empty((pixels, pixels, 3))
    for row in range(pixels):  # each pixel the mean of those painted under it
        band = palette[image[row * FINER : (row + 1) * FINER]]
        picture[row] = band.reshape(FINER, pixels, FINER, 3).mean(axis=(0, 2))
    extent = (window.left, window.right, window.bottom, window.top)
    axes.imshow(picture, extent=extent, aspect="auto", interpolation="none")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=INK, linewidth=0.9)
    return axes


def _enlarged(figure, B, ranks, palette):
    """A part near the diagonal, its place marked in the matrix."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    window = Window.around_diagonal(B)
    if window is None:
        return
    _image(figure, PART, B, ranks, palette, window)
    size = window.right - window.left, window.bottom - window.top
    mark = Rectangle((window.left, window.top), *size, fill=False, edgecolor=INK, linewidth=1.4)
    figure.axes[0].add_patch(mark)
    x = MATRIX[0] + MATRIX[2] * window.right / B.shape[1]
    for row, corner in ((window.top, PART[1] + PART[3]), (window.bottom, PART[1])):
        y = MATRIX[1] + MATRIX[3] * (1 - row / B.shape[0])
        line = Line2D((x, PART[0]), (y, corner), transform=figure.transFigure, color=INK, linewidth=0.8, alpha=0.6)
        figure.add_artist(line)
    factor = B.shape[0] / size[1]
    figure.text(PART[0], PART[1] + PART[3] + 0.012, f"enlarged {factor:.0f} times", fontsize=11.5, color=QUIET)


def _legend(figure, ranks, palette):
    """Colour bar of the ranks, and the colour of dense blocks."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    left, bottom, width, height = BAR
    bar, colours = figure.add_axes(BAR), ListedColormap(palette[2 : 2 + COLOURS])
    scale = Normalize(ranks.lowest, max(ranks.highest, ranks.lowest + 1))
    shown = figure.colorbar(ScalarMappable(scale, colours), cax=bar, orientation="horizontal")
    shown.ax.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    shown.outline.set(color=QUIET, linewidth=0.6)
    bar.tick_params(labelsize=10.5, colors=INK, length=3)
    figure.text(left, bottom + height + 0.012, "rank of low-rank blocks", fontsize=12, color=INK)
    swatch = Rectangle((left + width - 0.108, bottom + height + 0.0125), 0.011, 0.011 * WIDTH / HEIGHT, color=DENSE)
    figure.add_artist(swatch)
    figure.text(left + width, bottom + height + 0.012, "dense blocks", fontsize=12, color=INK, ha="right")


def _memory(figure, memory):
    """What takes the memory: a bar and a number a part."""
    from matplotlib.patches import Rectangle

    left, right, total = PART[0], PART[0] + PART[2], max(1, memory["total"])
    colours = (DENSE, "#b7bdc6", "#8d96a3", "#2c7fb8")
    for i, ((name, key), colour) in enumerate(zip(PARTS.items(), colours)):
        y = 0.215 - 0.036 * i
        figure.text(left, y, name, fontsize=12, color=INK)
        width = 0.085 * memory[key] / total
        figure.add_artist(Rectangle((left + 0.092, y), max(width, 0.0008), 0.014, color=colour, linewidth=0))
        figure.text(right, y, readable(memory[key]), fontsize=12, color=INK, ha="right")
    figure.text(left, 0.262, "memory", fontsize=12, color=QUIET)
    figure.text(left, 0.215 - 0.036 * 4 - 0.008, "total", fontsize=12, color=INK, fontweight="bold")
    text = readable(memory["total"])
    figure.text(right, 0.215 - 0.036 * 4 - 0.008, text, fontsize=12, color=INK, fontweight="bold", ha="right")
