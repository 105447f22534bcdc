"""A picture of an H²-matrix: dense blocks in one colour, low-rank blocks coloured by rank.

Rows and columns stand in tree order, so that near points are near the diagonal. Blocks are painted into an image four
times finer than the pixels shown and averaged: where blocks are smaller than a pixel, its colour tells how much of it
is dense. Fine for any number of blocks (10^6 in seconds); needs matplotlib (the extra `plots`).
"""

import importlib.util

import numpy as np

from h2gpu.memory import readable

PIXELS = 1200  # of the matrix in the picture, a side
FINER = 4  # painted pixels a pixel shown, each way
GAP = 24  # painted pixels from which on a block is drawn with a white edge
DENSE, EMPTY, COLOURS = "#1b2a41", "#ffffff", 254
INK, QUIET = "#1b2a41", "#5c6b7d"


def require_matplotlib():
    """ImportError with advice where matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("a picture needs matplotlib; install it with: pip install 'h2gpu[plots]'")


def draw(B, path, title="", subtitle="", format="png"):
    """Write the picture of an H2Matrix.

    path       where to, a name or an open file; `format` png, pdf or svg
    title      the first line, bold; default: shape and size
    subtitle   the second line, for covariance and accuracy

    Raises ImportError without matplotlib, OSError when the disk refuses.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 9.4), dpi=150, facecolor="white")
    side = figure.add_axes((0.045, 0.04, PIXELS / 1560, PIXELS / 1410))
    lowest, highest = rank_range(B)
    palette, colours = _palette()
    side.imshow(_shrunk(painted(B, lowest, highest), palette), extent=(0, B.shape[1], B.shape[0], 0), aspect="auto")
    side.set(xticks=[], yticks=[])
    for spine in side.spines.values():
        spine.set(color=INK, linewidth=0.8)
    dense = B.shape[0] * B.shape[1] * B.dtype.itemsize
    title = title or f"{B.shape[0]:,} × {B.shape[1]:,} H²-matrix"
    figure.text(0.045, 0.958, title, fontsize=17, fontweight="bold", color=INK)
    numbers = f"{readable(B.nbytes)}, {dense / B.nbytes:,.3g} times smaller than dense ({readable(dense)})"
    figure.text(0.045, 0.915, "  ·  ".join(filter(None, (subtitle, numbers))), fontsize=11.5, color=QUIET)
    _legend(figure, B, colours, lowest, highest)
    figure.savefig(path, format=format)


def block_ranks(B):
    """(blocks,) rank of each low-rank block: the smaller side of its coupling."""
    S = B.couplings.blocks
    return np.minimum(S.rows, S.columns)


def rank_range(B):
    """Smallest and largest rank of the low-rank blocks; (0, 1) without any."""
    ranks = block_ranks(B)
    return (int(ranks.min()), int(ranks.max())) if len(ranks) else (0, 1)


def painted(B, lowest, highest):
    """(side, side) uint8 indices of colours: 0 empty, 1 dense, 2 … by rank; symmetric matrices whole."""
    size = min(PIXELS * FINER, max(PIXELS, FINER * max(B.shape)))
    image = np.zeros((size, size), np.uint8)
    ranks = block_ranks(B)
    colours = 2 + (ranks - lowest) * (COLOURS - 3) // max(1, highest - lowest)
    for blocks, colour in ((B.couplings, colours), (B.nearfield, np.ones(len(B.nearfield), np.int64))):
        edges = _edges(B.row_basis.tree, blocks.rows, size), _edges(B.col_basis.tree, blocks.columns, size)
        rectangles = np.column_stack([*edges[0], *edges[1], colour])
        _fill(image, rectangles)
        if B.symmetric:
            _fill(image, rectangles[:, [2, 3, 0, 1, 4]])
    return image


def _edges(tree, clusters, size):
    """First and last + 1 pixel of clusters; those of some width lose a pixel to the white edge."""
    first = tree.start[clusters] * size // tree.n
    stop = np.maximum(tree.stop[clusters] * size // tree.n, first + 1)
    return first, stop - np.where(stop - first >= GAP, 1 + (stop - first >= 4 * GAP), 0)


def _fill(image, rectangles):
    for top, bottom, left, right, colour in rectangles.tolist():
        image[top:bottom, left:right] = colour


def _palette():
    """(256, 3) colours 0 … 255 by index, and the colormap of the ranks: light for small, dark for large."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, to_rgb

    colours = ListedColormap(colormaps["YlOrRd"](np.linspace(0.06, 0.9, COLOURS - 2)))
    palette = np.zeros((256, 3))
    palette[0], palette[1] = to_rgb(EMPTY), to_rgb(DENSE)
    palette[2:COLOURS] = colours.colors[:, :3]
    return palette * 255, colours


def _shrunk(image, palette):
    """The picture (pixels, pixels, 3): each pixel the mean colour of the painted ones under it."""
    finer = max(1, len(image) // PIXELS)
    pixels = len(image) // finer
    image = image[: pixels * finer, : pixels * finer]
    picture = np.empty((pixels, pixels, 3), np.uint8)
    for row in range(pixels):
        band = palette[image[row * finer : (row + 1) * finer]].reshape(finer, pixels, finer, 3)
        picture[row] = band.mean(axis=(0, 2)).round()
    return picture


def _legend(figure, B, colours, lowest, highest):
    """Colour bar of the ranks, and what takes the memory, right of the picture."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = figure.add_axes((0.845, 0.43, 0.022, 0.4))
    shown = figure.colorbar(ScalarMappable(Normalize(lowest, highest), colours), cax=bar)
    shown.ax.yaxis.get_major_locator().set_params(integer=True)
    shown.outline.set(color=QUIET, linewidth=0.6)
    bar.tick_params(labelsize=10.5, colors=INK, length=3)
    figure.text(0.845, 0.85, "low-rank blocks: rank", fontsize=11.5, color=INK)
    patch = figure.add_axes((0.845, 0.35, 0.022, 0.022 * 10.4 / 9.4))
    patch.set(xticks=[], yticks=[], facecolor=DENSE)
    figure.text(0.878, 0.355, "dense blocks", fontsize=11.5, color=INK)
    memory = B.memory
    parts = [(name, memory[key]) for name, key in PARTS.items()]
    for i, (name, size) in enumerate([*parts, ("total", memory["total"])]):
        y, weight = 0.245 - 0.032 * i - 0.008 * (name == "total"), "bold" if name == "total" else "normal"
        figure.text(0.845, y, name, fontsize=10.5, color=INK, fontweight=weight)
        figure.text(0.985, y, readable(size), fontsize=10.5, color=INK, fontweight=weight, ha="right")
    figure.text(0.845, 0.285, "memory", fontsize=11.5, color=QUIET)


PARTS = {"dense blocks": "nearfield", "leaf bases": "leaf_basis", "transfers": "transfer", "couplings": "coupling"}
