"""Boxes, arrows and words of the drawings; their files change only when the scripts do.

    python docs/drawings/kernels.py      python docs/drawings/accuracy.py      write docs/pictures/*.svg

Reference: https://matplotlib.org/stable/users/explain/configuration.html
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, Polygon, Rectangle

PICTURES = Path(__file__).resolve().parent.parent / "pictures"
BLUE, PALE, RED, GREY, INK = "#1f5f8b", "#d4e4ef", "#c1272d", "#e8e8e8", "#1d2733"
STYLE = {"svg.hashsalt": "h2gpu", "svg.fonttype": "path", "font.size": 9, "font.family": "DejaVu Sans"}


class Sketch:
    """A drawing in units of its own, y upwards: (0, 0) to (width, height)."""

    def __init__(self, width, height, scale=0.62):
        with plt.rc_context(STYLE):
            self.figure = plt.figure(figsize=(width * scale, height * scale))
            self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, width), ylim=(0, height))
        self.ax.set_axis_off()

    def box(self, x, y, width, height, fill=PALE, text="", edge=INK, **words):
        """A rectangle with its lower left corner there, and words in its middle."""
        self.ax.add_patch(Rectangle((x, y), width, height, facecolor=fill, edgecolor=edge, lw=0.8))
        self.text(x + width / 2, y + height / 2, text, ha="center", **words)

    def shape(self, corners, fill=PALE):
        """A polygon."""
        self.ax.add_patch(Polygon(corners, facecolor=fill, edgecolor=INK, lw=0.8))

    def text(self, x, y, text, ha="left", va="center", **words):
        """Words."""
        self.ax.text(x, y, text, ha=ha, va=va, color=words.pop("color", INK), **words)

    def arrow(self, start, end, color=INK, bend=0.0):
        """An arrow between two places."""
        style = f"arc3,rad={bend}"
        patch = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10, color=color, connectionstyle=style)
        self.ax.add_patch(patch)

    def save(self, name):
        """Writes docs/pictures/NAME.svg."""
        save(self.figure, name)


def save(figure, name):
    """Writes a figure as docs/pictures/NAME.svg, on white."""
    with plt.rc_context(STYLE):
        figure.savefig(PICTURES / f"{name}.svg", facecolor="white", metadata={"Date": None, "Creator": None})
    plt.close(figure)
