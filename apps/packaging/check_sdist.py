"""Does a source archive hold what a build from it needs? Package, apps, kernels, tables, licence, tests, documents.

    python -m h2gpu.apps.packaging.check_sdist [--build FOLDER] [dist/NAME.tar.gz]

What is expected is read off this checkout: every source under `h2gpu/`, `apps/`, `kernels/`, `tests/` and `docs/`, and
the files at its top. Machine code is not in it: `make wheel` compiles that.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from h2gpu.apps.command.command import FailureError, Parser, run
from h2gpu.batched.device import compiler

TOP = ("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "pyproject.toml")
FOLDERS = ("apps", "docs", "h2gpu", "kernels", "recipe", "tests")
SOURCES = ("*.py", "*.typed", "*.cu", "*.cuh", "*.csv", "*.md", "*.rst", "*.png", "*.svg", "*.css", "*.yaml")
UNWANTED = (
    "/machine_code/",
    "/__pycache__/",
    "/_build/",
    "/docs/generated/",
    "/.venv/",
)  # of a checkout that was worked in
MOST_BYTES = 20_000_000


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.check_sdist", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.check_sdist", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="build the archive there first")
    parser.add_argument("sdist", type=Path, nargs="?", metavar="NAME.tar.gz")
    options = parser.parse_args(argv)
    if (options.build is None) == (options.sdist is None):
        raise ValueError("expected either --build FOLDER or an archive NAME.tar.gz")
    path = options.sdist or build(options.build)
    names = members(path)
    found = faults(names, checkout())
    if path.stat().st_size > MOST_BYTES:
        found.append(f"{path.stat().st_size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}")
    if found:
        raise FailureError(f"{path}: {'; '.join(found)}")
    print(f"{path}: {len(names)} files, {path.stat().st_size / 1e6:.1f} MB")


def checkout():
    """The folder of the sources. Raises FailureError where this is an installed package."""
    root = compiler.source_folder().parent
    if not (root / "pyproject.toml").is_file():
        raise FailureError(f"{root}: expected a checkout of h2gpu, with pyproject.toml; run this from one")
    return root


def build(folder):
    """Builds the archive in a folder, leaving nothing beside the sources; its path."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as aside:  # a list of files of an earlier build would be taken over
        command = ["-q", "egg_info", "--egg-base", aside, "sdist", "--dist-dir", str(folder)]
        done = subprocess.run(
            [sys.executable, "-c", "import setuptools; setuptools.setup()", *command],
            cwd=checkout(),
            capture_output=True,
            text=True,
        )
    made = sorted(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    if done.returncode or not made:
        raise FailureError(f"setuptools could not build: {done.stderr.strip()[-300:]}")
    return made[-1]


def members(path):
    """Names of the files of an archive, below its one top folder. Raises ValueError for other files."""
    if not path.is_file() or not tarfile.is_tarfile(path):
        raise ValueError(f"{path}: expected a source archive, a .tar.gz file")
    with tarfile.open(path) as archive:
        return {info.name.partition("/")[2] for info in archive.getmembers() if info.isfile()}


def expected(root):
    """Names of the files that an archive must hold."""
    found = (path for folder in FOLDERS for kind in SOURCES for path in (root / folder).rglob(kind))
    names = {path.relative_to(root).as_posix() for path in found}
    return {name for name in names if not any(word in f"/{name}" for word in UNWANTED)} | set(TOP)


def faults(names, root):
    """A line for what is absent and one for what should not be there."""
    absent = sorted(expected(root) - names)
    unwanted = sorted(name for name in names if any(word in f"/{name}" for word in UNWANTED))
    kinds = (absent, "absent"), (unwanted, "not wanted")
    return [f"{len(found)} files {what}, among them {found[0]}" for found, what in kinds if found]


if __name__ == "__main__":
    sys.exit(main())
