"""Progress bars on a terminal, nothing in a pipe: an observer for `progress.watched_by`."""

import sys
from contextlib import ExitStack, contextmanager

from tqdm import tqdm

from h2gpu.progress import PhaseTimes, watched_by


class ProgressBars:
    """One bar a phase, on stderr; gone when the phase has ended."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._bars = {}

    def __call__(self, name, done, total):
        if done == 0 and name not in self._bars:
            layout = "{desc:<22}{percentage:3.0f}% |{bar:40}| {elapsed}"
            self._bars[name] = tqdm(total=max(total, 1), desc=name, leave=False, file=self._stream, bar_format=layout)
        elif done is None:
            bar = self._bars.pop(name, None)
            if bar is not None:
                bar.close()
        elif name in self._bars:
            bar = self._bars[name]
            bar.update(min(done, bar.total) - bar.n)

    def close(self):
        """Take away the bars of phases that an error cut short."""
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()


def observers(quiet):
    """The observers of a command: bars where someone can see them."""
    return [] if quiet or not sys.stderr.isatty() else [ProgressBars()]


@contextmanager
def watched(quiet, synchronize=None):
    """Bars for the phases of the work inside, where someone can see them; yields its PhaseTimes."""
    with ExitStack() as stack:
        for observer in observers(quiet):
            stack.callback(observer.close)
            stack.enter_context(watched_by(observer))
        yield stack.enter_context(watched_by(PhaseTimes(synchronize)))
