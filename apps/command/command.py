"""What the commands share: one line on stderr for whatever goes wrong, never a traceback.

| exit status | when |
|---|---|
| 0 | done |
| 2 | bad usage or input: `InputError`, ValueError |
| 1 | any other failure: full disk, no memory, no device, interrupted, a mistake of ours |
"""

import argparse
import logging
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import ClassVar

import numpy as np

from h2gpu.distributed.communicators import communicator, launch
from h2gpu.texts import described, plain
from h2gpu_start import no_interrupt_lost


class InputError(ValueError):
    """The user asked for something that cannot be, or gave a file that cannot be used."""


class FailureError(Exception):
    """Nothing wrong with the question, but it cannot be answered here and now."""


communicator.KINDS[FailureError.__name__] = FailureError  # of one process it is that of all


class Parser(argparse.ArgumentParser):
    """An argument parser whose error is one line."""

    def error(self, message):
        raise InputError(f"{message}; see {self.prog} --help")

    def _print_message(self, message, file=None):
        """--help and --version: of several processes the first one answers."""
        if launch.number() == 0:
            super()._print_message(message, file)


def run(name, work, arguments):
    """work(arguments) → exit status, errors as one line on stderr."""
    _reopen_closed_streams()
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a letter shows a question mark
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings(), _one_voice(name, arguments), no_interrupt_lost():
            warnings.simplefilter("ignore")  # stderr is for the one line and the progress bars
            work(arguments)
            sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _failed(name, 1, "the reader of the output has gone away")
    except KeyboardInterrupt as error:  # of several processes it says which one
        return _failed(name, 1, str(error) or "interrupted")
    except MemoryError as error:
        return _failed(name, 1, f"out of memory: {error}; give fewer points, a larger rtol, or --dtype float32")
    except np.linalg.LinAlgError as error:  # a ValueError, but not of the user's making
        return _failed(name, 1, f"numerical failure: {error}")
    except ValueError as error:
        return _failed(name, 2, error)
    except (FailureError, ImportError) as error:
        return _failed(name, 1, error)
    except OSError as error:
        return _failed(name, 1, described(error))
    except Exception as error:  # a mistake of ours: the user still gets one line
        return _failed(name, 1, f"unexpected {type(error).__name__}: {error}")


def say(*lines):
    """Print lines for the user, each as one line whatever a file put into it."""
    print(*map(plain, lines), sep="\n", flush=True)


def _reopen_closed_streams():
    """Output that was closed, as by `>&-`, goes nowhere; else a file of ours would be opened in its place."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


@contextmanager
def _one_voice(name, arguments):
    """Warnings of the library as lines of this command, none if it is to be quiet, of several processes those of the
    first; SIGTERM ends it as Ctrl-C does."""
    quiet, log = "--quiet" in (sys.argv if arguments is None else arguments), logging.getLogger("h2gpu")
    quiet |= launch.launched() > 1 and launch.number() > 0
    handler = logging.NullHandler() if quiet else logging.StreamHandler()
    handler.setFormatter(_Options(f"{name}: warning: %(message)s"))
    handler.setLevel(logging.WARNING)
    listens = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _interrupted) if listens else None
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        if listens:
            signal.signal(signal.SIGTERM, before)


class _Options(logging.Formatter):
    """Lines that name arguments of Python name a command's options instead."""

    NAMES: ClassVar = {'fit_parameters="all"': "--fit-smoothness"}

    def format(self, record):
        line = super().format(record)
        for argument, option in self.NAMES.items():
            line = line.replace(argument, option)
        return line


def _interrupted(*_):
    raise KeyboardInterrupt


def _failed(name, status, message):
    """One line, of the first process where several were launched: all have the same error."""
    if launch.launched() > 1 and launch.number() > 0:
        return status
    print(f"{name}: error: {plain(' '.join(str(message).split()))}", file=sys.stderr)
    return status
