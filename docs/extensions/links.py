"""Pages that lie elsewhere in the project, and links between all pages: right in the files and on the site.

[text](../kernels/README.md#floors)  →  the page that holds that file
[text](../benchmarks/batched)        →  a folder has no page: the text alone
"""

import os
import re
from pathlib import Path

from api_reference import save

LINK = re.compile(r"(?<!!)\[([^\]\[]*)\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
PAGES = {  # file of the project → page of the site
    "CONTRIBUTING.md": "generated/contributing.md",
    "CHANGELOG.md": "generated/changelog.md",
    "kernels/README.md": "generated/map-of-the-kernels.md",
    "h2gpu/batched/README.md": "generated/map-of-batched.md",
    "benchmarks/README.md": "generated/benchmarks.md",
    "data/README.md": "generated/data.md",
    "README.md": "generated/start.md",
}
NOTES = "benchmarks/*/*.md"  # of measurements: a page each, generated/notes-<subject>-<name>.md
START, END = "## Start\n", "## More\n"  # what the page Start takes of the README


def pages(root):
    """{file of the project: page of the site}, for all files that lie outside docs/."""
    notes = sorted(path.relative_to(root) for path in root.glob(NOTES))
    return PAGES | {path.as_posix(): f"generated/{path.parent.name}-{path.name}" for path in notes}


def rewritten(text, source, page, root):
    """The text of `source` with its links as `page` needs them; both are paths relative to `root`."""
    elsewhere = pages(root)

    def target(link):
        """Where a link leads from the page, or None where the site has nothing there."""
        path, hash_, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:") or not path:
            return link
        file = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if not (root / file).is_file():
            return None
        file = os.path.join("docs", elsewhere[file]) if file in elsewhere else file
        return Path(os.path.relpath(file, os.path.dirname(page))).as_posix() + hash_ + anchor

    def link(match):
        there = target(match[2])
        return match[1] if there is None else f"[{match[1]}]({there})"

    return LINK.sub(link, PICTURE.sub(lambda match: f"![{match[1]}]({target(match[2])})", text))


def write(root):
    """Writes the pages that lie elsewhere into docs/generated. Raises ValueError where the README lacks a section."""
    texts = {}
    for file, page in pages(root).items():
        text = (root / file).read_text(encoding="utf-8")
        text = start(text) if file == "README.md" else text
        texts[page.removeprefix("generated/")] = rewritten(text, file, f"docs/{page}", root)
    save(root / "docs" / "generated", texts)


def start(readme):
    """The page Start: the README without its head and its list of pages."""
    return "# Start\n" + readme[readme.index(START) + len(START) : readme.index(END)]


def read(app, name, content):
    """Sphinx's event source-read: links of a page to files elsewhere and to folders."""
    path = Path(app.env.doc2path(name, base=False)).as_posix()
    if path.endswith(".md") and not path.startswith("generated/"):
        content[0] = rewritten(content[0], f"docs/{path}", f"docs/{path}", Path(app.srcdir).parent)


def setup(app):
    """Sphinx's door."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
