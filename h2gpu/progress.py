"""What long work tells those who watch: phases and how far they are.

    with phase("weights", total) as advance:      # in the code that works
        advance(part)

    with watched_by(observer):                    # in the code that shows or times it
        …

An observer is called as observer(name, done, total): done 0 when the phase begins, None when it has ended
or failed. Nobody watching costs nothing.
"""

import time
from contextlib import contextmanager
from contextvars import ContextVar

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


class PhaseTimes:
    """An observer that adds up the seconds of each phase, in `seconds` by name, those of phases within it left out.

    synchronize   called before each reading of the clock; on a GPU, the device's
    """

    def __init__(self, synchronize=None):
        self.seconds = {}
        self._synchronize = synchronize
        self._open = []  # [name, seconds of the clock when it began, seconds of phases within it]

    def __call__(self, name, done, total):
        if done == 0 or done is None:
            if self._synchronize is not None:
                self._synchronize()
            now = time.perf_counter()
            if done == 0:
                self._open.append([name, now, 0.0])
                return
            _, begun, inner = self._open.pop()
            self.seconds[name] = self.seconds.get(name, 0.0) + now - begun - inner
            if self._open:
                self._open[-1][2] += now - begun
