"""Progress bars on a terminal, nothing in a pipe: an observer for `progress.watched_by`."""

import sys
from contextlib import ExitStack, contextmanager

from h2gpu.progress import PhaseTimes, ProgressBars, watched_by


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
