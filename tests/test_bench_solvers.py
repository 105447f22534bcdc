"""The benchmark of the solvers runs on the data in the repository, and on files of others where they are."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from h2gpu.apps import bench_solvers, tables

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def test_the_table_holds_iterations_and_seconds(tmp_path, capsys):
    path = tmp_path / "solvers.csv"
    bench_solvers.main(["--sites", "300", "--unpreconditioned", "5", "--output", str(path)])
    _, rows = tables.read(path)
    assert [row["field"] for row in rows] == ["jacksboro", "jacksboro_nugget"]
    for row in rows:
        assert row["n"] == "300" and int(row["iterations"]) <= 10 and float(row["residual"]) <= 1.05e-8
        assert row["iterations without"] == "> 5" and float(row["matrix s"]) > 0
    assert "jacksboro_nugget" in capsys.readouterr().out


def test_files_of_others_are_read_as_described(tmp_path):
    rng, options = np.random.default_rng(0), type("Options", (), {"fields": None})
    with h5py.File(tmp_path / "heaton.h5", "w") as file:
        for name in ("lon", "lat", "sim_masked", "sat_masked"):
            file[name] = rng.random(50)
        file["sim_masked"][:5] = np.nan
    with h5py.File(tmp_path / "kaust.h5", "w") as file:
        group = file.create_group("rough")
        group["train_points"], group["train_values"] = rng.random((40, 2)), rng.random(40)
        group.attrs.update({"sigma2": 1.5, "beta": 0.1, "nu": 0.6, "has_nugget": True})
    options.heaton, options.kaust = tmp_path / "heaton.h5", tmp_path / "kaust.h5"
    found = bench_solvers.fields(options)
    points, values, cov = found["heaton_simulated"]
    assert points.shape == (45, 2) and values.shape == (45,) and cov.nugget == 0.05
    assert found["kaust_rough"][2].nugget == bench_solvers.KAUST_NUGGET
    options.fields = "nothing"
    with pytest.raises(SystemExit, match="expected some of jacksboro"):
        bench_solvers.fields(options)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data, the published benchmark fields, is absent")
def test_published_fields_take_at_most_fifty_iterations(tmp_path):
    path = tmp_path / "solvers.csv"
    files = ["--heaton", str(SHARED / "heaton2019.h5"), "--kaust", str(SHARED / "kaust2021.h5")]
    bench_solvers.main([*files, "--sites", "2500", "--unpreconditioned", "0", "--output", str(path)])
    _, rows = tables.read(path)
    assert len(rows) == 9 and all(int(row["iterations"]) <= 50 and float(row["residual"]) <= 1.05e-8 for row in rows)
