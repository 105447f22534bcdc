"""The lowest versions of dependencies that pyproject.toml allows, for pip: "numpy>=2.0" → "numpy==2.0.*".

    python -m h2gpu.apps.packaging.floor > constraints.txt       `make floor` installs them and runs the tests there

Only what the package needs itself: development tools and extras may be as new as they are.
"""

import re
import sys
import tomllib

from h2gpu.apps.command.command import FailureError, Parser, run
from h2gpu.apps.packaging.check_sdist import checkout

BOUND = re.compile(r"([A-Za-z0-9_.-]+)>=([0-9]+(?:\.[0-9]+)*)")


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.floor", _work, argv)


def _work(argv):
    Parser(prog="packaging.floor", description=__doc__.splitlines()[0], allow_abbrev=False).parse_args(argv)
    print(*constraints(project()["dependencies"]), sep="\n")


def project():
    """The table [project] of this checkout's pyproject.toml."""
    return tomllib.loads((checkout() / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def constraints(dependencies):
    """Each "name>=version" as the newest patch of that version; FailureError for one without a lower bound."""
    matches = {text: BOUND.fullmatch(text) for text in dependencies}
    loose = [text for text, match in matches.items() if match is None]
    if loose:
        raise FailureError(f"pyproject.toml: expected dependencies as name>=version, got {loose[0]!r}")
    return [f"{match[1]}=={match[2]}.*" for match in matches.values()]


if __name__ == "__main__":
    sys.exit(main())
