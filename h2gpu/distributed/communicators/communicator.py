"""What the ranks of a distributed matrix say to each other: a protocol, and what all its adapters share.

| adapter       | rank                      | arrays                                       |
|---------------|---------------------------|----------------------------------------------|
| `Alone`       | the one process           | any                                          |
| `MPI`         | a process of mpiexec      | NumPy by MPI; CuPy by MPI through the host   |
| `NCCL`        | a process with its GPU    | CuPy by NCCL; NumPy by MPI                   |

An adapter answers `start` (one grouped exchange of arrays), `start_sum`, `sum` and `gather`, and `fail`, which tells
all others that this rank cannot go on. Who waits listens for that, and gives up after `limit` seconds with the
exchange's name.
"""

import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from weakref import WeakSet

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.texts import brief, described
from h2gpu.typing import Array, ArrayLike

LIMIT = 600.0  # seconds that an exchange may wait for others, unless told otherwise
INTERRUPTED = KeyboardInterrupt  # Ctrl-C; SIGTERM of a command: else the others would wait
SHARED = ValueError, TypeError, MemoryError, TimeoutError, OSError, ImportError, np.linalg.LinAlgError, INTERRUPTED
KINDS = {kind.__name__: kind for kind in SHARED}  # commands add one of theirs; of others comes a RuntimeError
BRIEF, PAUSE = 1e-3, 5e-5  # seconds of waiting without a pause, then a pause between two looks


class ToldError:
    """Marks an error that all ranks know of."""


@dataclass
class Traffic:
    """What a rank received from others by the name of the exchange, {name: [messages, bytes]}, and {name: sums}."""

    exchanges: dict = field(default_factory=dict)
    sums: dict = field(default_factory=dict)

    def add(self, name, arrays):
        """Count the arrays received in one exchange."""
        count = self.exchanges.setdefault(name, [0, 0])
        count[0] += len(arrays)
        count[1] += sum(array.nbytes for array in arrays)

    def again(self, other):
        """Count all that another has counted."""
        for name, received in other.exchanges.items():
            count = self.exchanges.setdefault(name, [0, 0])
            count[:] = [mine + more for mine, more in zip(count, received)]
        for name, sums in other.sums.items():
            self.sums[name] = self.sums.get(name, 0) + sums


class Communicator(ABC):
    """The ranks 0 … size − 1 of one job.

    rank, size   this process and how many there are
    xp           where this rank's numbers are to be: numpy or cupy
    limit        seconds that an exchange may wait before TimeoutError
    traffic      what was received so far

    Source: MPI's communicators.

    >>> from h2gpu.distributed import Alone, Communicator
    >>> isinstance(Alone(), Communicator)
    True
    """

    def __init__(self, rank: int, size: int, xp: ModuleType = np, limit: float = LIMIT) -> None:
        if not (isinstance(limit, (int, float)) and limit > 0):
            raise ValueError(f"limit: expected seconds above 0 that an exchange may wait, got {brief(limit)}")
        self.rank, self.size, self.xp, self.limit = rank, size, xp, float(limit)
        self.traffic, self.failure = Traffic(), None
        self.mode = "plain"  # "rehearsed": exchanges leave arrays as they are; "recorded": into a CUDA graph
        self.recordings = WeakSet()  # graphs with exchanges of these ranks

    @property
    def records(self) -> bool:
        """Whether exchanges of arrays on a GPU can be recorded, with the work around them, in a CUDA graph."""
        return False

    def until(self, event: Any, name: str) -> None:
        """Wait for an event of the device; TimeoutError after `limit` seconds, or what another rank failed with."""
        self._until(lambda: event.done, name)

    def begun(self, event: Any, name: str) -> None:
        """This rank has given its device work with exchanges in it, up to an event. Raises as `until`."""
        self.until(event, name)

    def fetch(self, values: Array, name: str) -> Array:
        """An array on the host; one that stands behind an exchange on the device is waited for as that."""
        if not isinstance(values, np.ndarray):
            self.until(self.xp.cuda.get_current_stream().record(), name)
        return to_host(values)

    @abstractmethod
    def _start(self, sends, receives, name):
        """Begin an exchange; returns a function that ends it."""

    @abstractmethod
    def _gather(self, value, name):
        """The values of all ranks, in a list by rank."""

    @abstractmethod
    def _start_sum(self, values, name):
        """Begin the sum of a contiguous array, the same bits on all ranks; returns a function that gives it."""

    @abstractmethod
    def _tell(self, failure):
        """Send (rank, kind, message) to all others."""

    @abstractmethod
    def _heard(self):
        """(rank, kind, message) of a rank that failed, or None."""

    def start(self, sends: Sequence[Any], receives: Sequence[Any], name: str) -> Callable[[], None]:
        """Begin a grouped exchange of 1-D contiguous arrays; returns a function to call when they are needed.

        sends      {rank: array}, which stay as they are until the exchange ends; empty ones are skipped; on a GPU what
                   the current stream has been given so far makes them
        receives   {rank: array to fill}, of the same sizes as what is sent; empty ones are skipped on this side too
        name       said where it takes too long

        Raises TimeoutError after `limit` seconds, and what another rank failed with.
        """
        self._check()
        sends, receives = ({q: a for q, a in part.items() if a.size} for part in (sends, receives))
        self.traffic.add(name, list(receives.values()))
        return self._start(sends, receives, name)

    def sum(self, values: ArrayLike, name: str = "sum") -> Array:
        """The sum over all ranks of an array of numbers, on the host, the same bits on all."""
        return self.start_sum(np.ascontiguousarray(values), name)()

    def start_sum(self, values: Array, name: str = "sum") -> Callable[[], Array]:
        """Begin the sum over all ranks of a contiguous array; returns a function that gives it, where the values are.

        The same bits on all ranks. Raises as `start`, at the latest when the sum is asked for.
        """
        self._check()
        self.traffic.sums[name] = self.traffic.sums.get(name, 0) + 1
        return self._start_sum(values, name)

    def gather(self, value: Any, name: str = "gather") -> list[Any]:
        """The values of all ranks, anything that can be pickled, by rank."""
        self._check()
        return self._gather(value, name)

    def collect(self, value: Any, name: str = "collect") -> list[list[Any]]:
        """The values of all ranks on rank 0, by rank; None on others."""
        mine = np.frombuffer(pickle.dumps(value, protocol=5), np.uint8)
        sizes = self.gather(len(mine), name)
        if self.rank:
            self.start({0: mine}, {}, name)()
            return None
        parts = {q: np.empty(size, np.uint8) for q, size in enumerate(sizes) if q}
        self.start({}, parts, name)()
        return [value, *(pickle.loads(parts[q].data) for q in range(1, self.size))]

    def fail(self, error: BaseException) -> None:
        """Tell all ranks of an error, and raise it here: one message everywhere, of this rank and its cause."""
        if not isinstance(error, ToldError):
            kind = next((name for name in KINDS if isinstance(error, KINDS[name])), "RuntimeError")
            kind = "LinAlgError" if isinstance(error, np.linalg.LinAlgError) else kind
            text = described(error) or ("interrupted" if isinstance(error, INTERRUPTED) else "")
            self.failure = self.rank, kind, text if kind in KINDS else f"{type(error).__name__}: {error}"
            self._tell(self.failure)
            raise told(*self.failure) from error
        raise error

    @contextmanager
    def together(self, name: str) -> AbstractContextManager[None]:
        """All ranks leave the block, or all raise what one of them failed with."""
        try:
            self._check()
            yield
            self.sum(np.zeros(1), name)
        except (Exception, INTERRUPTED) as error:
            self.fail(error)

    def _check(self):
        if self.failure is not None:
            raise told(*self.failure)

    def _until(self, done, name, brief=None):
        """Wait for done(); TimeoutError after the limit, or what another rank failed with."""
        begun = time.monotonic()
        while not done():
            self.failure = self._heard()
            self._check()
            waited = time.monotonic() - begun
            if waited > self.limit:
                raise TimeoutError(f"waited {self.limit:g} s for other ranks in the exchange {name!r}")
            if waited > (BRIEF if brief is None else brief):
                time.sleep(PAUSE)


def told(rank, kind, message):
    """The error of a rank, of the kind that it had there, to be raised by all."""
    base = KINDS.get(kind, RuntimeError)
    return type(kind, (base, ToldError), {})(f"rank {rank}: {message}")


class Alone(Communicator):
    """The one process of a job: nothing is sent.

    Raises ValueError for a limit that is not positive. Source: MPI's COMM_SELF.

    >>> comm = Alone()
    >>> comm.rank, comm.size, comm.gather("here", "example")
    (0, 1, ['here'])
    """

    def __init__(self, xp: ModuleType = np, limit: float = LIMIT) -> None:
        super().__init__(0, 1, xp, limit)

    @property
    def records(self) -> bool:
        """True: nothing is sent."""
        return True

    def until(self, event: Any, name: str) -> None:
        """Nobody else is waited for."""

    def _start(self, sends, receives, name):
        return lambda: None

    def _gather(self, value, name):
        return [value]

    def _start_sum(self, values, name):
        total = values.copy()
        return lambda: total

    def _tell(self, failure):
        pass

    def _heard(self):
        return None
