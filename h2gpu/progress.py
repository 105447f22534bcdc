"""What long work tells those who watch: phases and how far they are.

    with phase("weights", total) as advance:      # in the code that works
        advance(part)

    with watched_by(observer):                    # in the code that shows or times it
        …

An observer is called as observer(name, done, total): done 0 when the phase begins, None when it has ended
or failed. Nobody watching costs nothing. `shown` draws bars, and prints what the logger "h2gpu" is told.
"""

import logging
import sys
import time
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

from tqdm import tqdm

from h2gpu.texts import brief

_observers = ContextVar("h2gpu_observers", default=())


@contextmanager
def watched_by(observer):
    """The observer sees every phase that runs inside the block."""
    token = _observers.set((*_observers.get(), observer))
    try:
        yield observer
    finally:
        _observers.reset(token)


@contextmanager
def phase(name, total=1):
    """A named piece of work of `total` units; yields advance(units)."""
    observers, done = _observers.get(), 0

    def tell(amount):
        for observer in observers:
            observer(name, amount, total)

    def advance(units):
        nonlocal done
        done += units
        tell(done)

    tell(0)
    try:
        yield advance
    finally:
        tell(None)


class ProgressBars:
    """An observer that draws a bar a phase, on stderr; gone when the phase has ended."""

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


class _Told(logging.Handler):
    """Log records as lines above the bars."""

    def emit(self, record):
        tqdm.write(self.format(record), file=sys.stderr)


@contextmanager
def shown(verbose):
    """What happens inside the block, shown on stderr: 0 nothing, 1 bars, 2 also what the logger "h2gpu" is told from
    INFO on. ValueError for other values of `verbose`."""
    if verbose not in (0, 1, 2):
        raise ValueError(f"verbose: expected 0, 1 or 2, got {brief(verbose)}")
    with ExitStack() as stack:
        if verbose:
            bars = ProgressBars()
            stack.callback(bars.close)
            stack.enter_context(watched_by(bars))
        if verbose == 2:
            log, handler = logging.getLogger("h2gpu"), _Told()
            handler.setFormatter(logging.Formatter("h2gpu: %(message)s"))
            stack.callback(log.setLevel, log.level)
            stack.callback(log.removeHandler, handler)
            log.setLevel(min(logging.INFO, log.level or logging.INFO))
            log.addHandler(handler)
        yield


class PhaseTimes:
    """An observer that adds up the seconds of each phase, in `seconds` by name, those of phases within it left out.

    synchronize   called before each reading of the clock; on a GPU, the device's
    clock         what is read, seconds of the wall where None; time.process_time gives those of the CPU
    """

    def __init__(self, synchronize=None, clock=None):
        self.seconds = {}
        self._clock = clock or time.perf_counter
        self._synchronize = synchronize
        self._open = []  # [name, seconds of the clock when it began, seconds of phases within it]

    def __call__(self, name, done, total):
        if done == 0 or done is None:
            if self._synchronize is not None:
                self._synchronize()
            now = self._clock()
            if done == 0:
                self._open.append([name, now, 0.0])
                return
            _, begun, inner = self._open.pop()
            self.seconds[name] = self.seconds.get(name, 0.0) + now - begun - inner
            if self._open:
                self._open[-1][2] += now - begun
