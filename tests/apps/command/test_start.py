"""The first step of the commands: whatever ends the import of the libraries, the user gets one line."""

import os
import subprocess
import sys

import pytest

COMMANDS = ("h2compress", "h2info", "h2krige")


def started(name, folder, limit=None):
    """A command, NumPy's place taken by what `folder` holds."""
    code = f"import sys\nfrom h2gpu_start import {name}\nsys.exit({name}())"
    if limit:
        code = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n{code}"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_within_the_imports_is_one_line(name, tmp_path):
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt")
    assert started(name, tmp_path) == (1, "", f"{name}: error: interrupted\n")


def test_an_interrupt_that_python_ignores_comes_again(tmp_path):
    ignored = "class Gone:\n    def __del__(self):\n        raise KeyboardInterrupt\n"
    (tmp_path / "numpy.py").write_text(f"{ignored}Gone()\nimport time\ntime.sleep(20)\nraise AssertionError")
    assert started("h2info", tmp_path) == (1, "", "h2info: error: interrupted\n")
    (tmp_path / "numpy.py").write_text(f"{ignored}Gone()\nraise AssertionError")  # which comes first
    assert started("h2info", tmp_path) == (1, "", "h2info: error: interrupted\n")


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (r"ImportError('libx.so:\ncannot map')", "ImportError: libx.so: cannot map"),
        ("MemoryError()", "MemoryError: "),
        ("SystemError('error return')", "SystemError: error return"),
    ],
)
def test_libraries_that_do_not_load_are_one_line(raised, told, tmp_path):
    (tmp_path / "numpy.py").write_text(f"raise {raised}")
    assert started("h2info", tmp_path) == (1, "", f"h2info: error: cannot start: {told}".rstrip() + "\n")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are kept by Linux")
@pytest.mark.parametrize("megabytes", [100, 200, 399])
def test_too_little_address_space_is_told_before_the_libraries_load(megabytes, tmp_path):
    (tmp_path / "numpy.py").write_text("raise AssertionError")
    status, out, err = started("h2compress", tmp_path, megabytes * 10**6)
    assert (status, out) == (1, "") and err.startswith("h2compress: error: out of memory: expected at least 400 MB")
    assert f"got {megabytes} MB" in err and err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("arguments", [["--version"], ["--wrong"], ["none.h5", "--targets", "none.h5", "--fit"]])
def test_an_answer_without_work_loads_nothing_for_work(name, arguments):
    """NumPy, HDF5 and the package take 0.3 s; SciPy would take as much again, scikit-learn a second."""
    late = {"matplotlib", "pandas", "sklearn", "scipy.linalg", "scipy.spatial", "scipy.stats"}
    arguments = arguments if name == "h2krige" else arguments[:1]
    code = f"import sys\nfrom h2gpu_start import {name}\ntry:\n    {name}()\nexcept SystemExit:\n    pass\n"
    code += f"print(sorted({late} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]" and (arguments == ["--version"] or ": error: " in done.stderr)


def test_the_command_itself_comes_next(tmp_path):
    status, out, err = started("h2info", tmp_path)
    assert (status, err) == (0, "") and out.startswith("h2info ")
