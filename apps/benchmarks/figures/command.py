"""The commands of an entry, run one after another in a folder of their own; their files are published at the end.

Names in commands are relative, benchmarks/… and data/…, and the folder has both: what a table says of its command is
what a run in the project's folder would say, and a table that is there stays until all commands have ended well.
What a command has written that fails or is stopped is kept beside, with its log.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import h2gpu
from h2gpu.apps.benchmarks.figures import entry as entries
from h2gpu.apps.benchmarks.report import tables

LAST, WIDTH = 15, 200  # lines of a command that failed, and letters of each
GRACE = 5.0  # seconds to end after SIGTERM
ROOT = str(Path(h2gpu.__file__).resolve().parents[1])


class Command:
    """The running commands of an entry.

    slots     whose GPUs and cores they have
    data      folder of the benchmark data
    output    folder that benchmarks/ is here
    kept      folder for what it has written where it fails, and for its log; removed where all ends well
    """

    def __init__(self, entry, slots, data, output, kept):
        self.entry, self.output, self.kept, self.process = entry, Path(output), Path(kept), None
        self.cores = sorted({core for slot in slots for core in slot.cores})
        self.gpus = [slot.gpu for slot in slots if slot.gpu]
        self.output.mkdir(parents=True, exist_ok=True)
        self.stage = Path(tempfile.mkdtemp(prefix=".figures-", dir=self.output))  # whence a rename is one step
        (self.stage / "data").symlink_to(Path(data).absolute())
        room = self.stage / "benchmarks" / entry.folder
        room.mkdir(parents=True)
        for name in entry.beside:
            if (self.output / entry.folder / name).is_file():
                shutil.copy(self.output / entry.folder / name, room)
        self.log, self.steps = (self.stage / "log").open("wb"), entry.commands()
        self._next()

    def poll(self):
        """None while it runs, "" where all files are published, else what went wrong, and the last lines."""
        status = self.process.poll()
        if status is None or (status == 0 and self._next()):
            return None
        problem = f"exit status {status}" if status else self._published()
        return self._ended(problem)

    def stop(self, why):
        """End it, now; what `poll` would say."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
            os.killpg(self.process.pid, signal.SIGKILL)  # its children, too
        self.process.wait()
        return self._ended(why)

    def _next(self):
        """Start the next step; False after the last."""
        step = next(self.steps, None)
        if step is None:
            return False
        ranks, module, arguments = step
        launcher = [entries.mpiexec(), "-n", str(ranks)] if ranks > 1 else []
        words = [*launcher, sys.executable, "-m", module, *arguments]
        with pinned(self.cores):
            self.process = subprocess.Popen(
                words,
                cwd=self.stage,
                env=environment(self.gpus, max(1, len(self.cores) // ranks)),
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return True

    def _published(self):
        """Rename all files to where they belong, or none; what is missing."""
        room = self.stage / "benchmarks"
        missing = [name for name in self.entry.outputs if not (room / name).is_file()]
        if missing:
            return f"expected the files {', '.join(missing)}, which were not written"
        for name in self.entry.outputs:
            (self.output / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(room / name, self.output / name)
        return ""

    def _ended(self, problem):
        """The problem with what is kept and the last lines of the commands; their folder is removed."""
        self.log.close()
        lines = (self.stage / "log").read_text(encoding="utf-8", errors="replace").splitlines()[-LAST:]
        shutil.rmtree(self.kept, ignore_errors=True)
        found = [problem, self._keep(), *(line[:WIDTH] for line in lines)] if problem else []
        shutil.rmtree(self.stage, ignore_errors=True)
        return "\n    ".join(found)

    def _keep(self):
        """Move log and files to `kept`; a line that says which, and how many rows they have."""
        room = self.stage / "benchmarks" / self.entry.folder
        files = sorted(path for path in room.iterdir() if path.name not in self.entry.beside)
        self.kept.mkdir(parents=True)
        names = [kept(path, self.kept) for path in [*files, self.stage / "log"]]
        return f"kept in {self.kept}: {', '.join(names)}"


def kept(path, folder):
    """Move a file to a folder; its name, with the rows of a table."""
    rows = f" ({len(tables.read(path)[1])} rows)" if path.suffix == ".csv" else ""
    os.replace(path, folder / path.name)
    return path.name + rows


@contextmanager
def pinned(cores):
    """What is started meanwhile has these cores alone, where the system can say so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def environment(gpus, cores):
    """That of a process with these GPUs and so many cores."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(cores))
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    found = os.environ | threads | {"PYTHONPATH": os.pathsep.join([*paths, ROOT])}
    return found | {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else found
