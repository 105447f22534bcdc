"""Ranks as processes of mpiexec, with a limit of time: a script of checks a launch, since a launch costs a second."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

from h2gpu.apps.benchmarks.figures.entry import mpiexec

MPIEXEC = mpiexec()
MISSING = "mpi4py or mpiexec is missing" if importlib.util.find_spec("mpi4py") is None or MPIEXEC is None else ""
HYDRA = not MISSING and "HYDRA" in subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout
needs_mpi = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def launch(ranks, *arguments, limit=60, paths=(), options=(), **rest):
    """The finished process of mpiexec -n ranks python …, one thread a rank.

    paths, options   more of PYTHONPATH, and options of the launcher
    """
    paths = os.pathsep.join(map(str, [ROOT, Path(__file__).parent, *paths]))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    command = [MPIEXEC, *options, "-n", str(ranks), sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env, cwd=ROOT, **rest)
