"""The benchmark of the solvers runs on the data in the repository, and on files of others where they are."""

import pytest
import small_fields
from places import ROOT

from h2gpu.apps.benchmarks import solvers as bench_solvers
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import published

SHARED = ROOT.resolve().parent / "shared" / "data"


def test_the_table_holds_iterations_and_seconds(tmp_path, capsys):
    path = tmp_path / "solvers.csv"
    bench_solvers.main(["--sites", "300", "--unpreconditioned", "5", "--output", str(path)])
    _, rows = tables.read(path)
    assert [row["field"] for row in rows] == ["jacksboro", "jacksboro_nugget"]
    for row in rows:
        assert row["n"] == "300" and int(row["iterations"]) <= 10 and float(row["residual"]) <= 1.05e-8
        assert row["iterations without"] == "> 5" and float(row["matrix s"]) > 0
    assert "jacksboro_nugget" in capsys.readouterr().out


def test_files_of_others_are_benchmarks_too(tmp_path):
    heaton_file, kaust_file = small_fields.heaton(tmp_path / "heaton.h5"), small_fields.kaust(tmp_path / "kaust.h5")
    options = type("Options", (), {"fields": None, "heaton": heaton_file, "kaust": kaust_file})
    found = bench_solvers.fields(options)
    points, values, cov = found["heaton_simulated"]
    assert points.shape == (180, 2) and values.shape == (180,) and cov.nugget == 0.05
    assert found["heaton_satellite"][2].nugget == pytest.approx(0.05 / 16.40771 * found["heaton_satellite"][1].var())
    assert found["kaust_rough"][2].nugget == published.KAUST_NUGGET
    options.fields = "nothing"
    with pytest.raises(ValueError, match="expected some of jacksboro"):
        bench_solvers.fields(options)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data, the published benchmark fields, is absent")
def test_published_fields_take_at_most_fifty_iterations(tmp_path):
    path = tmp_path / "solvers.csv"
    files = ["--heaton", str(SHARED / "heaton2019.h5"), "--kaust", str(SHARED / "kaust2021.h5")]
    bench_solvers.main([*files, "--sites", "2500", "--unpreconditioned", "0", "--output", str(path)])
    _, rows = tables.read(path)
    assert len(rows) == 9 and all(int(row["iterations"]) <= 50 and float(row["residual"]) <= 1.05e-8 for row in rows)
