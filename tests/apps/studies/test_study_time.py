"""Figures 14b and 15: every way to the SVDs in rows of its own, and a conclusion that counts them."""

import numpy as np
import pytest

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import time as study_time


def row(way, total, truncate, error, n=2**13):
    keys = {"n": n, "dtype": "float32", "tree": "rank 64", "SVD": way}
    return keys | {"total s": total, "truncate s": truncate, "rtol": 1e-5, "error": error}


def test_the_conclusion_counts_pairs_and_what_misses_rtol():
    rows = [row("full", 2.0, 1.0, 9e-6), row("fixed", 1.0, 1.5, 2e-5), row("full", 4.0, 1.0, 9e-6, 2**14)]
    (said,) = study_time.conclusion([*rows, row("fixed", 5.0, 3.0, 9e-6, 2**14)])
    assert said == (
        "fixed: slower than the full SVD in 1 of 2 pairs (0.50 to 1.25 times its time); truncation alone in 2 of 2 "
        "pairs (1.50 to 3.00 times its time); misses rtol in 1, by a factor of 2 at most"
    )


def test_growth_is_the_exponent_of_n():
    rows = [row("full", 3.0 * 2**k, 1.0, 0.0, 2 ** (2 * k)) for k in range(3)]
    assert list(study_time.growths(rows)) == ["float32, rank 64, full SVD: time grows as n^0.50"]
    assert not list(study_time.growths(rows[:1]))


def test_every_way_has_a_row_and_those_that_promise_keep_rtol(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study_time, "SMALLEST", 10)
    monkeypatch.setattr(study_time, "REPETITIONS", 1)
    monkeypatch.setattr(study_time, "TREES", {"rank 36": ({"leaf_size": 32, "eta": 1.0, "order": 6}, 16)})
    assert study_time.main(["--largest", "10", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_time-cpu.csv")
    assert (tmp_path / "study_time-cpu.png").stat().st_size > 10_000
    assert [found["SVD"] for found in rows] == 2 * list(study_time.WAYS)
    for found in rows:
        if found["SVD"] in ("full", "adaptive"):
            assert float(found["error"]) <= float(found["rtol"])
        phases = [
            float(found[f"{name} CPU s"]) for name in ("orthogonalize", "weights", "truncate", "project", "store")
        ]
        assert float(found["total CPU s"]) == pytest.approx(np.sum(phases), rel=1e-2)
    assert [found["largest rank"] for found in rows if found["SVD"] == "fixed ranks"] == ["16", "16"]
    said = capsys.readouterr().out.splitlines()[-3:]
    assert [line.split(":")[0] for line in said] == ["adaptive", "fixed", "fixed ranks"]
