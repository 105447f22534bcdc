"""Rows of a published table, read when the site is built, with its device and commit.

    :::{published} batched/batched_qr.csv
    :columns: shape, ms, of bound, peer, peer ms
    :where: dtype=float64; batch=1000
    :::

Reference: benchmarks/README.md, which lists the tables.
"""

import csv
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def read(path):
    """({name: value} of the head, rows as dictionaries) of a published table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def selected(rows, where):
    """Rows that meet all of "name=value; name=value", a value one of several between bars. Raises ValueError."""
    for condition in filter(None, (part.strip() for part in (where or "").split(";"))):
        name, values = (part.strip() for part in condition.split("=", 1))
        if rows and name not in rows[0]:
            raise ValueError(f"where: expected a column of the table, got {name!r}; it has {', '.join(rows[0])}")
        rows = [row for row in rows if row[name] in [value.strip() for value in values.split("|")]]
    if not rows:
        raise ValueError(f"where: expected a condition that some row meets, got {where!r}")
    return rows


class Published(Directive):
    """The directive."""

    required_arguments = 1
    option_spec: ClassVar = {"columns": directives.unchanged_required, "where": directives.unchanged}

    def run(self):
        """A table, and a line that says where its numbers come from."""
        try:
            head, rows = read(FOLDER / self.arguments[0])
            rows = selected(rows, self.options.get("where"))
            columns = [name.strip() for name in self.options["columns"].split(",")]
            cells = [[row[name] for name in columns] for row in rows]
        except (OSError, ValueError, KeyError) as error:
            raise self.error(f"published: {self.arguments[0]}: {error}") from None
        self.state.document.settings.record_dependencies.add(str(FOLDER / self.arguments[0]))
        origin = f"benchmarks/{self.arguments[0]}, {head['device']}, {head['date']}, commit {head['commit']}"
        caption = nodes.paragraph("", "", nodes.emphasis(text=origin))
        return [table(columns, cells), caption]


def table(columns, cells):
    """A table of docutils."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in columns), cols=len(columns))
    head, body = nodes.thead("", row(columns)), nodes.tbody("", *map(row, cells))
    group += [head, body]
    return nodes.table("", group)


def row(cells):
    """One of its rows."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))


def setup(app):
    """Sphinx's door."""
    app.add_directive("published", Published)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
