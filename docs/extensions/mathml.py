"""Formulas as MathML, which browsers show by themselves: no script, no fonts, nothing from the network.

The translator is docutils' own. Reference: https://www.w3.org/TR/mathml-core/
"""

from docutils import nodes
from docutils.utils.math import latex2mathml


def inline(translator, node):
    """A formula within a line."""
    translator.body.append(str(latex2mathml.tex2mathml(node.astext(), as_block=False)))
    raise nodes.SkipNode


def display(translator, node):
    """A formula on lines of its own."""
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    """Sphinx's door."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
