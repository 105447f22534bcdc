"""h2compress and h2info as processes: signals, pipes, terminals."""

import os
import pty
import subprocess
import sys
import termios
import threading

import pytest
from commands import FAST

from h2gpu.apps import h2compress
from h2gpu.apps.command import progress_bars


def run(*arguments, **rest):
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **rest)


def test_the_commands_as_modules(source):
    done = run("h2gpu.apps.h2compress", source, *FAST)
    assert (done.returncode, done.stderr) == (0, "") and "estimated peak memory" in done.stdout
    done = run("h2gpu.apps.h2info", source.with_name("places-h2.h5"), "--check")
    assert (done.returncode, done.stderr) == (0, "") and "in order" in done.stdout
    done = run("h2gpu.apps.h2compress", source, "--order", "-1")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


def test_a_terminal_without_our_letters_and_a_name_without_any(source):
    name = os.fsencode(source.parent) + b"/\xff.h5"
    os.rename(source, name)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "h2gpu.apps.h2compress", name, *FAST, "--report", source.with_suffix(".json")]
    done = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, b"") and b"leaf size" in done.stdout


INTERRUPTED = """
import os, signal, sys, time, weakref
from h2gpu.apps import h2compress

def work(name, place):
    kill = lambda: os.kill(os.getpid(), name)
    Gone = type("Gone", (), {"__del__": lambda self: kill()} if place == "in __del__" else {})
    if place == "at work":
        kill()
    elif place == "in __del__":
        Gone()
    else:
        weakref.finalize(Gone(), kill)
    time.sleep(30)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
for name in (signal.SIGINT, signal.SIGTERM):
    for place in ("at work", "in __del__", "in a callback"):
        child = os.fork()
        if child == 0:
            h2compress.assemble = lambda *a, **k: work(name, place)
            sys.exit(h2compress.main(sys.argv[1:]))
        print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_is_one_line(source):
    """Also one that comes where Python ignores all errors: in `__del__`, in the callback of a weak reference."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, source], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, 6 * "h2compress: error: interrupted\nstatus 1\n")
    assert os.listdir(source.parent) == [source.name]


def test_a_reader_that_leaves(source):
    with subprocess.Popen(
        [sys.executable, "-m", "h2gpu.apps.h2compress", source, *FAST], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        err = process.stderr.read().decode()
        assert process.wait(60) == 1 and err.count("\n") == 1 and "reader of the output" in err


def test_bars_on_a_terminal_only(source, monkeypatch):
    main, side = pty.openpty()
    termios.tcsetwinsize(side, (24, 100))
    shown = bytearray()

    def read():  # a terminal holds little that nobody reads
        while not shown.endswith(b"\0"):
            shown.extend(os.read(main, 1000))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with os.fdopen(side, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert progress_bars.observers(quiet=True) == []
        status = h2compress.main([str(source), *FAST])
        terminal.write("\0")
        terminal.flush()
        reader.join(20)
    os.close(main)
    text = shown.decode()
    assert status == 0 and "truncate" in text and "0%" in text and "Traceback" not in text
