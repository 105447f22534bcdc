"""Do the packages work where nothing else is? Each is installed into an environment of its own and used there.

    python -m h2gpu.apps.packaging.try_packages dist/NAME.whl dist/NAME.tar.gz

What is run there, away from the checkout: the README's first two examples (of 2,000 sites), a program that finds
kernels, tables, licence and py.typed, and the three commands on files of their own. No GPU needed.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from h2gpu.apps.command.command import FailureError, Parser, run
from h2gpu.apps.packaging.check_sdist import checkout

HELD = """
from importlib.metadata import distribution
from importlib.resources import files
import sys

import h2gpu

assert h2gpu.__file__.startswith(sys.prefix), h2gpu.__file__
inside = files("h2gpu")
assert inside.joinpath("py.typed").is_file()
assert inside.joinpath("kernels/qr").is_dir() and list(inside.joinpath("kernels/tuning").iterdir())
assert any("LICENSE" in str(path) for path in distribution("h2gpu").files)
"""
FILES = """
import h5py
import numpy as np

places = np.random.default_rng(0).random((500, 2))
with h5py.File("sites.h5", "w") as file:
    file["points"], file["value"] = places[:400], np.sin(5 * places[:400, 0])
with h5py.File("grid.h5", "w") as file:
    file["points"] = places[400:]
"""
COMMANDS = (
    "h2compress sites.h5 -o matrix.h5 --covariance exponential --length-scale 0.3 --rtol 1e-4 --quiet",
    "h2info matrix.h5 --check",
    "h2krige sites.h5 --values value --targets grid.h5 -o map.h5 --fit --quiet",
)


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.try_packages", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.try_packages", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("packages", type=Path, nargs="+", metavar="dist/NAME")
    for path in parser.parse_args(argv).packages:
        if not path.is_file() or not path.name.endswith((".whl", ".tar.gz")):
            raise ValueError(f"{path}: expected a wheel or source archive, a .whl or .tar.gz file")
        with tempfile.TemporaryDirectory() as folder:
            told = tried(path.resolve(), Path(folder))
        print(f"{path}: {told}, README's examples and {len(COMMANDS)} commands ran", flush=True)


def tried(package, folder):
    """Install the package into a new environment in the folder and use it; what it ran with, in words."""
    venv.create(folder / "env", with_pip=True)
    binaries, work = folder / "env" / ("Scripts" if os.name == "nt" else "bin"), folder / "work"
    work.mkdir()
    python = str(binaries / "python")
    ran([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(package)], work)
    for program in (HELD, readme_program(checkout() / "README.md"), FILES):
        ran([python, "-W", "error", "-c", program], work)
    for command in COMMANDS:
        name, *arguments = command.split()
        ran([str(binaries / name), *arguments], work)
    return ran(
        [python, "-c", "import sys, numpy; print('Python', sys.version.split()[0], 'NumPy', numpy.__version__)"], work
    )


def readme_program(path):
    """The README's first two Python examples as one program, of fewer sites."""
    matrices, statistics, *_ = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return matrices.replace("100_000", "2_000") + statistics.replace("(1000, 2)", "(100, 2)")


def ran(command, folder):
    """The output of a command, run in a folder without this environment's paths; FailureError where it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing was said"]
        raise FailureError(f"{' '.join(command)[:120]!r} failed with status {done.returncode}: {said[-1]:.300}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
