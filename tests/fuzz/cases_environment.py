"""Whole commands in odd environments: locales, closed streams, read-only or missing homes, names of any bytes.

Whatever the environment, the command ends with its own status, and its output is the one of a plain environment.
"""

import os
import subprocess
import sys

import h5py
import numpy as np
from battery import battery, expect

import h2gpu
from h2gpu.covariance import Exponential

LOCALES = "C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1", "tr_TR.UTF-8", "xx_YY", ""
NAMES = (
    b"plain.h5",
    b"with space.h5",
    b"-dash.h5",
    b"\xff\xfe.h5",
    "ü☃.h5".encode(),
    b"a\nb.h5",
    b"$x_{$.h5",
    b"%s%n.h5",
)
CLOSED = "", ">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"


@battery("faults: odd environments")
def environments(rng, folder):
    name, points = NAMES[rng.integers(len(NAMES))], rng.random((200, 2))
    path, home = os.fsencode(folder) + b"/" + name, folder / "home"
    with open(path, "wb") as raw, h5py.File(raw, "w") as file:
        file["points"] = points
    home.mkdir(mode=0o555 if rng.random() < 0.5 else 0o755)
    environment = os.environ | {"LC_ALL": LOCALES[rng.integers(len(LOCALES))], "OMP_NUM_THREADS": "1"}
    for key, values in {
        "HOME": [str(home), "/nonexistent", ""],
        "TMPDIR": ["/nonexistent", str(home)],
        "XDG_CACHE_HOME": ["/proc", ""],
        "CUPY_CACHE_DIR": ["/nonexistent/cache", str(home)],
        "MPLCONFIGDIR": ["/nonexistent"],
        "PYTHONUTF8": ["0", "1"],
        "PYTHONIOENCODING": ["ascii", "latin-1", "utf-16"],
        "COLUMNS": ["0", "-1", "1000000"],
        "TERM": ["dumb", ""],
    }.items():
        if rng.random() < 0.4:
            environment[key] = values[rng.integers(len(values))]
    closed = CLOSED[rng.integers(len(CLOSED))]
    command = [
        sys.executable,
        "-m",
        "h2gpu.apps.h2compress",
        "./" + os.fsdecode(name),
        "-o",
        "out.h5",
        "--rtol",
        "1e-3",
    ]
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
    done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, timeout=100)
    expect(b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")[-300:])
    expect(done.returncode == 0, f"status {done.returncode}, {closed!r}: {done.stderr!r:.300}")
    exact = Exponential()(points)
    error = np.linalg.norm(h2gpu.load(folder / "out.h5").to_dense() - exact) / np.linalg.norm(exact)
    expect(error <= 1e-3, f"error {error:.3g}")
    return f"right, {closed or 'all streams'}"
