"""The tests under every Python that this machine has, each in an environment of its own.

    python -m h2gpu.apps.packaging.matrix [--versions 3.11,3.12,3.13,3.14] [--folder .matrix] [TESTS…]

An interpreter is looked for on the PATH, then among pyenv's. One that is missing is said, not passed over in silence.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from h2gpu.apps.command.command import FailureError, Parser, run
from h2gpu.apps.packaging.check_sdist import checkout

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.matrix", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.matrix", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--versions", type=lambda text: text.split(","), default=VERSIONS, help="separated by commas")
    parser.add_argument("--folder", type=Path, default=Path(".matrix"), help="of the environments (default: .matrix)")
    parser.add_argument("tests", nargs="*", help="files and folders (default: all)")
    options = parser.parse_args(argv)
    found = {version: interpreter(version) for version in options.versions}
    if not any(found.values()):
        raise FailureError(f"no interpreter of {', '.join(options.versions)} found on the PATH or by pyenv")
    failed = []
    for version, python in found.items():
        outcome = "not found" if python is None else tested(python, options.folder / version, options.tests)
        print(f"Python {version}: {outcome}", flush=True)
        failed += [version] if outcome.startswith("failed") else []
    if failed:
        raise FailureError(f"failed under Python {', '.join(failed)}")


def interpreter(version):
    """The path of an interpreter of this version that runs; None where there is none."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for path in (shutil.which(f"python{version}"), *map(str, reversed(pyenv))):
        command = [path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        if path and subprocess.run(command, capture_output=True, text=True).stdout.strip() == version:
            return path
    return None


def tested(python, folder, tests):
    """The last line of pytest under an interpreter, after "failed: " where it did."""
    folder = folder.resolve()
    inside = [str(folder / "bin" / "python"), "-m"]
    command = [python, "-m", "venv", str(folder)]
    install = [*inside, "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", ".[tests]"]
    suite = [*inside, "pytest", "-q", "-n", "logical", "-p", "no:cacheprovider", "-m", "not gpu and not slow", *tests]
    for step in (command, install, suite):
        done = subprocess.run(step, cwd=checkout(), capture_output=True, text=True)
        said = (done.stdout.strip() or done.stderr.strip() or "nothing was said").splitlines()
        if done.returncode:
            print(*said[-20:], sep="\n", file=sys.stderr)
            return f"failed: {said[-1]}"
    return said[-1]


if __name__ == "__main__":
    sys.exit(main())
