"""Tables of several fields: each field is measured by a command of its own, and the tables are joined at the end."""

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from h2gpu.apps.benchmarks.figures.command import kept
from h2gpu.apps.benchmarks.report import tables


class Parts:
    """Where the tables of parts wait for each other.

    entries   undivided
    output    folder that benchmarks/ is here
    room      folder of their own, in `output`
    """

    def __init__(self, entries, output, room):
        self.entries, self.output, self.room = entries, Path(output), Path(room)

    def divided(self):
        """The entries to run."""
        return [part for entry in self.entries for part in entry.divided()]

    def folder(self, entry):
        """What benchmarks/ is for an entry to run."""
        return self.room / entry.part if entry.part else self.output

    def kept(self, entry):
        """The folder for what an entry to run has measured, where that is not published."""
        return self.output / tables.UNFINISHED / entry.name

    def join(self):
        """Publish the tables all of whose parts are there, rows in the order of the parts; others' parts are kept."""
        for entry in self.entries:
            for name in entry.outputs if entry.parts else ():
                files = {part: self.room / part / name for part in entry.parts}
                there = {part: path for part, path in files.items() if path.is_file()}
                if len(there) == len(files):
                    tables.join([*files.values()], self.output / name)
                    continue
                for part, path in there.items():
                    folder = self.kept(replace(entry, part=part))
                    folder.mkdir(parents=True, exist_ok=True)
                    print(f"{entry.name} lacks other parts than {part}, kept in {folder}: {kept(path, folder)}")


@contextmanager
def parts_of(entries, output):
    """Parts of some entries; what they left is joined at the end, also of a run that was ended."""
    Path(output).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".parts-", dir=output) as room:
        parts = Parts(entries, output, room)
        try:
            yield parts
        finally:
            parts.join()
