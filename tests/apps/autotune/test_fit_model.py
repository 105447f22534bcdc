"""The constants of the model are those that the published tables give."""

import csv
from pathlib import Path

from h2gpu.apps.autotune import fit_model
from h2gpu.batched.device.compiler import source_folder

TABLES = Path(__file__).parents[3] / "benchmarks" / "batched"


def constants(path):
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["constant"], row["dtype"]): float(row["value"]) for row in csv.DictReader(file)}


def test_constants_are_fitted_to_the_published_tables(tmp_path, capsys):
    """Whoever measures tables again, or changes what is counted, fits them again."""
    assert fit_model.main([str(TABLES), "-o", str(tmp_path)]) == 0
    assert "syrk_fixed" in capsys.readouterr().out
    found, kept = (
        constants(folder / "model_fitted.csv") for folder in (tmp_path, source_folder() / "tuning" / "nvidia-h200")
    )
    assert found.keys() == kept.keys()
    assert all(abs(found[name] - kept[name]) <= 1e-3 * abs(kept[name]) for name in kept)
