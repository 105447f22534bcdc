"""What measures published tables: files, commands, and what these need."""

import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

CARD = "CARD"  # in names of files: the GPU's name, as "h200"
HERE = "HERE"  # in commands: the folder of the files
RANKS = "mpiexec -n"  # before a command that several processes share
HEATON, KAUST = "heaton2019.h5", "kaust2021.h5"  # published fields, in the folder data
FIVE = "medium nugget_rough_long nugget_smooth_medium rough_long smooth_short"  # fields of KAUST
ELEVATIONS = "jacksboro jacksboro_nugget"  # fields of data/jacksboro.h5
BOTH = f"{HEATON} {KAUST}"
FIELDS = f"--heaton data/{HEATON} --kaust data/{KAUST}"


@dataclass(frozen=True)
class Entry:
    """Commands that write one or several tables, and their pictures.

    folder     of the files, under benchmarks/
    files      that are published, tables first
    seconds    roughly, of all commands on the machine of the published tables
    steps      commands one after another, without `python -m h2gpu.apps.`; RANKS and a number may stand before one
    gpus       that are needed; 0 on the CPU; beside what needs several nothing else runs
    gigabytes  of a GPU's memory that are needed
    data       files that are read in the folder data
    packages   without which rows would be missing
    beside     published files of the folder that its pictures and pages show, too
    awaited    nothing of it has been published yet
    parts      names for the command's --fields: each may be measured by itself, several at once
    part       the one that this entry is, as `divided` makes it
    """

    folder: str
    files: tuple
    seconds: float
    steps: tuple
    gpus: int
    gigabytes: int = 0
    data: tuple = ()
    packages: tuple = ()
    beside: tuple = ()
    awaited: bool = False
    parts: tuple = ()
    part: str = ""

    @property
    def name(self):
        """That of its first table, and of its part."""
        return " ".join([self.files[0].removesuffix(".csv"), *([self.part] if self.part else [])])

    @property
    def tables(self):
        return [name.removesuffix(".csv") for name in self.files if name.endswith(".csv")]

    @property
    def outputs(self):
        """Its files, with their folder."""
        return [f"{self.folder}/{name}" for name in self.files]

    def on(self, card):
        """The same with the name of a GPU."""
        files, steps = (tuple(text.replace(CARD, card) for text in texts) for texts in (self.files, self.steps))
        return replace(self, files=files, steps=steps)

    def divided(self):
        """An entry for each part; itself where it has none."""
        return [
            replace(
                self,
                seconds=self.seconds / len(self.parts),
                steps=tuple(f"{step} --fields {part}" for step in self.steps),
                parts=(),
                part=part,
            )
            for part in self.parts
        ] or [self]

    def commands(self):
        """(number of processes, module, its arguments) of each step."""
        for step in self.steps:
            words = shlex.split(step.replace(HERE, f"benchmarks/{self.folder}"))
            ranks = int(words[2]) if step.startswith(RANKS) else 1
            module, *arguments = words[3:] if step.startswith(RANKS) else words
            yield ranks, f"h2gpu.apps.{module}", arguments

    def lacks(self, memories, data):
        """Why it cannot run here, "" where it can.

        memories   gigabytes of each GPU
        data       folder of the benchmark data
        """
        missing = [name for name in self.packages if find_spec(name) is None]
        missing += ["mpiexec"] * (any(ranks > 1 for ranks, *_ in self.commands()) and not mpiexec())
        files = [str(Path(data) / name) for name in self.data if not (Path(data) / name).is_file()]
        if len(memories) < self.gpus:
            return f"needs {self.gpus} GPUs, got {len(memories)}"
        if self.gigabytes and min(memories[: self.gpus]) < self.gigabytes:
            return f"needs {self.gigabytes} GB of a GPU, got {min(memories[: self.gpus]):.0f}"
        return f"needs {', '.join(missing + files)}" if missing + files else ""


def entry(folder, files, seconds, *steps, data="", packages="", beside="", parts="", **more):
    """An Entry; names in a text, separated by spaces."""
    names = {"data": data, "packages": packages, "beside": beside, "parts": parts}
    return Entry(
        folder, tuple(files.split()), seconds, steps, **{k: tuple(v.split()) for k, v in names.items()}, **more
    )


def mpiexec():
    """The launcher: that of the wheels, beside Python, or of the system; None without one."""
    return shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
