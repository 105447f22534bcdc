"""Signatures with the names of `h2gpu.typing`: `points: ArrayLike` in place of the union that it stands for.

Reference: https://www.sphinx-doc.org/en/master/usage/extensions/autodoc.html#event-autodoc-process-signature
"""

from sphinx.util.typing import stringify_annotation

from h2gpu import typing

NAMES = "ArrayLike", "DTypeLike", "Seed", "TrendLike"
SPELT = {stringify_annotation(getattr(typing, name), "smart"): name for name in NAMES}


def shortened(signature):
    """The text of a signature, each union written as its name; None stays None."""
    for spelt, name in SPELT.items():
        signature = signature and signature.replace(spelt, name)
    return signature


def process(app, what, name, obj, options, signature, returned):
    """Sphinx's event autodoc-process-signature."""
    return shortened(signature), shortened(returned)


def setup(app):
    """Sphinx's door."""
    app.connect("autodoc-process-signature", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
