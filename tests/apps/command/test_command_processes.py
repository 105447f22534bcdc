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


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("place", ["kill()", "Gone()", "weakref.finalize(Gone(), kill)"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_is_one_line(name, place, source):
    """Also one that comes where Python ignores all errors: in `__del__`, in the callback of a weak reference."""
    code = (
        "import os, signal, sys, time, weakref\n"
        "from h2gpu.apps import h2compress\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        "kill = lambda: os.kill(os.getpid(), signal.NAME)\n"
        "Gone = type('Gone', (), {'__del__': lambda self: kill()} if 'PLACE' == 'Gone()' else {})\n"
        "h2compress.assemble = lambda *a, **k: (PLACE and None, time.sleep(30))\n"
        "sys.exit(h2compress.main(sys.argv[1:]))"
    ).replace("NAME", name)
    command = [sys.executable, "-c", code.replace("PLACE", place), source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "h2compress: error: interrupted\n")
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
