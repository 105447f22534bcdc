"""The README's Python example runs as it stands (with fewer sites) and does what it says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def examples():
    """The Python in the README, block by block."""
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    example, statistics = examples()
    assert "100_000" in example
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(example.replace("100_000", "2_000"), str(README), "exec"), names)
    C, h2gpu = names["C"], names["h2gpu"]
    assert C.shape == (2000, 2000)
    assert names["y"].shape == (2000,)
    assert h2gpu.sampled_error(C, names["sites"], names["cov"]) <= 1e-6
    residual = C @ names["weights"] - names["np"].sin(names["sites"][:, 0] / 9)
    assert names["np"].linalg.norm(residual) < 1e-5 * 2000**0.5
    assert h2gpu.load("covariance.h5").memory == C.memory
    assert "H2Matrix(2000 × 2000" in capsys.readouterr().out
    names |= {"sites": names["sites"][:300]}
    exec(compile(statistics.replace("(1000, 2)", "(100, 2)"), str(README), "exec"), names)
    assert names["mean"].shape == names["std"].shape == (100,) and names["fields"].shape == (100, 5)
    assert "Matern(variance=" in capsys.readouterr().out


def test_a_csv_file_becomes_a_map_by_one_command(tmp_path, monkeypatch):
    import numpy as np

    from h2gpu.apps import h2compress, h2krige

    for name in ("pandas", "rasterio", "pyproj", "matplotlib"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).random((80, 2)) * 1000
    grid = np.stack(np.meshgrid(np.arange(50, 1000, 100), np.arange(50, 1000, 100)), axis=-1).reshape(-1, 2)
    for name, rows, head in (("rain", np.c_[X, np.sin(X[:, 0] / 200)], "x,y,value"), ("grid", grid, "x,y")):
        np.savetxt(f"{name}.csv", rows, delimiter=",", header=head, comments="")
    for main in (h2krige.main, h2compress.main):
        name = main.__module__.rpartition(".")[2]
        (line,) = [line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith(name + " ")]
        assert main([*line.split()[1:], "--quiet"]) == 0
    import rasterio

    with rasterio.open("map.tif") as file:
        assert file.crs.to_epsg() == 32632 and file.descriptions[0] == "mean" and file.shape == (10, 10)


@pytest.mark.parametrize("command", ["h2compress", "h2info", "h2krige"])
def test_the_commands_of_the_readme_know_their_options(command, capsys):
    from h2gpu.apps import h2compress, h2info, h2krige

    main = {"h2compress": h2compress.main, "h2info": h2info.main, "h2krige": h2krige.main}[command]
    lines = [line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith(command + " ")]
    assert lines
    for line in lines:
        arguments = line.split()[1:]
        assert main(arguments) == 2
        assert f"{arguments[0]}: No such file" in capsys.readouterr().err  # every option was understood
