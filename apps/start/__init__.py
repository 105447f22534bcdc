"""What runs before the package: the commands' first step, which imports nothing but Python itself.

    room for the libraries? → import h2gpu.apps.NAME → its main()

NumPy, HDF5 and the package take a third of a second to import. A Ctrl-C meanwhile, and libraries that do not fit into
the address space, end like every other failure: one line on stderr, status 1. Installed beside the package, as
`h2gpu_start`, since whatever lies in `h2gpu` imports them first.
"""

import signal
import sys
import threading
from contextlib import contextmanager
from importlib import import_module

LEAST = 400_000_000  # bytes of address space for the libraries (measured: 350 MB; BLAS waits for ever below 260 MB)
AGAIN = 1e-3  # seconds until an interrupt that was ignored comes again


def h2compress():
    return _started("h2compress")


def h2info():
    return _started("h2info")


def h2krige():
    return _started("h2krige")


def _started(name):
    """The exit status of a command."""
    try:
        limit = _address_space()
        if limit < LEAST:
            return _failed(
                name,
                f"out of memory: expected at least {LEAST // 10**6} MB of address space for the libraries, "
                f"got {limit // 10**6} MB; raise the limit (ulimit -v)",
            )
        with no_interrupt_lost():
            command = import_module(f"h2gpu.apps.{name}")
    except KeyboardInterrupt:
        return _failed(name, "interrupted")
    except Exception as error:  # libraries turn what interrupts them into errors of their own
        return _failed(name, f"cannot start: {type(error).__name__}: {error}")
    return command.main()


@contextmanager
def no_interrupt_lost():
    """KeyboardInterrupt also where Python prints and forgets it: in callbacks of weak references and in `__del__`.

    Such an interrupt comes again a moment later, by SIGALRM, until it comes where it ends something.
    """
    lost, before, default = [], [], sys.unraisablehook

    def hook(ignored):
        here = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        if not (here and issubclass(ignored.exc_type, KeyboardInterrupt)):
            return default(ignored)
        lost.append(ignored.exc_type)
        handler = signal.signal(signal.SIGALRM, again)
        before.append(handler) if not before else None
        signal.setitimer(signal.ITIMER_REAL, AGAIN)

    def again(*_):
        if lost:
            lost.clear()
            raise KeyboardInterrupt

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = default
        if before:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before[0])
        if lost:
            raise KeyboardInterrupt


def _address_space():
    """The limit of `ulimit -v`, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def _failed(name, message):
    print(f"{name}: error: {' '.join(str(message).split())}", file=sys.stderr)
    return 1
