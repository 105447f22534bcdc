"""Man pages of the three commands, from their parsers: what --help says is what `man` says.

    python -m h2gpu.apps.packaging.man_pages [-o man]       writes man/h2compress.1, h2info.1, h2krige.1

Written by argparse-manpage, a development tool; `make sdist` packs the pages. Reference: man-pages(7).
"""

import os
import sys
from pathlib import Path

from h2gpu.apps import h2info
from h2gpu.apps.command import krige_options, options
from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.packaging.floor import project

PARSERS = {"h2compress": options.parser, "h2info": h2info.parser, "h2krige": krige_options.parser}
STATUS = "0 on success, 2 on bad usage or input, 1 on any other failure; always one line on the standard error."


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.man_pages", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.man_pages", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("-o", "--output", type=Path, default=Path("man"), metavar="FOLDER", help="default: man")
    folder = parser.parse_args(argv).output
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARSERS:
        path = folder / f"{name}.1"
        path.write_text(page(name), encoding="utf-8")
        print(path)


def page(name):
    """The text of a command's page, in the language of man. Raises ImportError without argparse-manpage."""
    try:
        from argparse_manpage.manpage import Manpage
    except ImportError:
        raise ImportError('man pages: need argparse-manpage: pip install "h2gpu[dev]"') from None
    os.environ["COLUMNS"] = "80"  # of the synopsis, whatever the terminal
    about = project()
    data = {"project_name": about["name"], "version": about["version"], "manual_title": "h2gpu", "format": "pretty"}
    parser = PARSERS[name]()
    text = str(Manpage(parser, _data=data)).rstrip()
    title = parser.description.split(". ")[0].rstrip(".").replace("-", "\\-")
    named = text.replace(f".SH NAME\n{name}\n", f".SH NAME\n{name} \\- {title}\n", 1)
    return f"{named}\n\n.SH EXIT STATUS\n{STATUS}\n"


if __name__ == "__main__":
    sys.exit(main())
