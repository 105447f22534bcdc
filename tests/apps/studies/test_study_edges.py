"""The study of edges: what it concludes, and on a GPU that all ways agree."""

import pytest

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import edges as study_edges


def test_conclusion_averages_over_sizes_that_fill_no_tile():
    names = (*study_edges.BEYOND, "tiles", "fixed", "vendor")
    rows = [
        {"n": n} | dict.fromkeys(names, 1.0) | {"vendor": vendor} for n, vendor in ((16, 9.0), (17, 0.25), (33, 0.75))
    ]
    told = study_edges.conclusion(rows)
    assert (
        "mean over 2 sizes up to 80" in told
        and "above" not in told
        and "vendor 0.50" in told
        and "redirected 1.00" in told
    )


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_ways_agree(dtype, tmp_path, monkeypatch):
    monkeypatch.setattr(study_edges, "ENTRIES", 1 << 10)
    monkeypatch.setattr(study_edges, "FEWEST", 2)
    monkeypatch.setattr(study_edges.timing, "device_ms", lambda *_: 1.0)
    monkeypatch.setattr(study_edges.timing, "side_by_side", lambda *_: None)
    monkeypatch.setattr(study_edges.timing, "call_ms", lambda way, pairs: float(way(pairs[0])[0, 0, 0]))
    assert study_edges.main(["--sizes", "5,33,81,161", "--dtype", dtype, "--output", str(tmp_path)]) == 0
    assert (tmp_path / f"study_edges-{dtype}.csv").is_file()
    _, rows = tables.read(tmp_path / f"study_edges-{dtype}.csv")
    ours, padded = (float(rows[-1][f"{name}, data on the host, ms"]) for name in ("redirected", "padded"))
    assert ours == pytest.approx(padded, rel=1e-3) and "bound" in rows[0]
