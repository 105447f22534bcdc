"""Docstrings of this project as reStructuredText: aligned columns become lists, equations stay as they are.

    name   what it is                     a definition list
           continued here
    A = U S Vᵀ                            an indented block without columns: preformatted
    >>> call()                            an example, as it is
    Raises ValueError …                   a paragraph whose first word is bold; so is Source

Reference: https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html
"""

import re
from textwrap import dedent

ENTRY = re.compile(r"(\S(?:.*?\S)??)\s{2,}(\S.*)")
CODE = re.compile(r"(`[^`]+`)")
HEADS = re.compile(r"(?<!\w)(Raises|Source:|References?:)(?=\s)")


def as_rst(docstring):
    """A docstring, dedented, as reStructuredText: one string of lines without indentation. Raises nothing."""
    return "\n\n".join(converted(block) for block in blocks(docstring)) + "\n"


def blocks(text):
    """Blocks of lines of one kind, in their order."""
    return [piece for part in re.split(r"\n\s*\n", text.strip("\n")) for piece in halves(part)]


def halves(part):
    """Lines of prose, and the indented lines that follow at once, if any."""
    if is_example(part) or columns(dedent(part)) is not None:
        return [part]
    lines = part.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("    ")), len(lines))
    return ["\n".join(piece) for piece in (lines[:first], lines[first:]) if piece]


def is_example(block):
    """Whether a block is what an interpreter shows."""
    return block.lstrip().startswith(">>>")


def converted(block):
    """One block as reStructuredText."""
    inner = dedent(block).strip("\n")
    if is_example(inner):
        return inner
    entries = columns(inner)
    if entries is not None:
        return "\n\n".join(f"{term(name)}\n" + indented(prose(text)) for name, text in entries)
    if block.startswith(" "):
        return "::\n\n" + indented(inner)
    return table(inner) if inner.startswith("|") else prose(inner)


def columns(block):
    """[(name, text)] of aligned lines, or None where the block is none of these."""
    found = []
    for line in block.splitlines():
        entry = ENTRY.fullmatch(line.rstrip())
        if line.startswith("  ") and found:
            found[-1][1] += "\n" + line.strip()
        elif entry and not line.startswith(" "):
            found.append([*entry.groups()])
        else:
            return None
    equations = sum(bool(re.search(r"[=≈≤]|\S\(.*\) ", name)) for name, _ in found)
    return None if equations else found


def term(names):
    """What an entry is called: names apart from the words around them."""
    return names if "`" in names else f"``{names}``"


def prose(text):
    """Text with the markup of reStructuredText made harmless outside backticks."""
    parts = CODE.split(re.sub(r"``", "`", text))
    plain = [literal(part) if i % 2 else escaped(part) for i, part in enumerate(parts)]
    return HEADS.sub(r"**\1**", "".join(plain))


def literal(code):
    """A piece of code in backticks: a name that may be linked, or text that a role would take apart."""
    return f"`{code}`" if "<" in code else code


def escaped(text):
    text = re.sub(r"([*|\\`])", r"\\\1", text)
    return re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)


def table(block):
    """A table in pipes as a list table."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in block.splitlines()]
    rows = [row for row in rows if not set("".join(row)) <= set("-|")]
    lines = [f"   {'* -' if j == 0 else '  -'} {prose(cell)}" for row in rows for j, cell in enumerate(row)]
    return ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(lines)


def indented(text):
    return "\n".join("    " + line if line else line for line in text.splitlines())


def process(app, what, name, obj, options, lines):
    """Sphinx's event autodoc-process-docstring: replaces the lines."""
    lines[:] = as_rst(dedent("\n".join(lines))).splitlines()


def setup(app):
    """Sphinx's door."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
