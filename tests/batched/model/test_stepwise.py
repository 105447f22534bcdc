"""Kernels of steps and products: predictions beside published times, a fit of known constants, growth, refusals."""

import statistics
from pathlib import Path

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.apps.autotune import fit_model
from h2gpu.batched import model
from h2gpu.batched.model import stepwise

FOLDER = Path(__file__).parents[3] / "benchmarks" / "batched"
DEVICE = "nvidia-h200"
CASES = [
    ("gemv", 100, 30), ("symv", 40, 40), ("symv", 300, 300), ("syrk", 65, 64), ("trsm", 33, 33), ("lu_factor", 24, 24),
    ("lu_factor", 130, 130), ("lu_factor", 600, 600), ("cholesky", 30, 30), ("cholesky", 100, 100),
    ("cholesky", 500, 500), ("svd", 100, 100), ("svd", 300, 300),
]  # fmt: skip


@pytest.mark.parametrize("routine", ["gemv", "symv", "syrk", "trsm", "lu_factor", "cholesky", "svd"])
def test_predictions_are_those_of_the_published_tables(routine):
    """The median within 15 %, all within a factor of 2: but for triangles by blocks, which are not counted."""
    _, rows = fit_model.published(FOLDER)
    ratios, refused = [], []
    for row in (row for row in rows if row.routine == routine):
        try:
            predicted = batched.predict_time(*row[:1], *row[2:5], row.dtype, DEVICE, columns=row.columns)
        except ValueError:
            refused.append(row)
        else:
            ratios.append(predicted / row.seconds)
    assert len(refused) == (6 if routine == "trsm" else 0) and len(ratios) >= 8
    assert statistics.median(abs(ratio - 1) for ratio in ratios) <= 0.15
    assert all(0.5 <= ratio <= 2 for ratio in ratios)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("routine", "m", "n"), CASES)
def test_predictions_grow_with_the_batch(routine, m, n, dtype):
    """The same beyond a wave as more of them; none for nothing."""
    batches = (1, 100, 1000) if (routine, n) == ("lu_factor", 24) else (1, 100, 10_000, 10**6, 10**7)
    times = [batched.predict_time(routine, batch, m, n, dtype, DEVICE, columns=8) for batch in batches]
    assert times == sorted(times) and times[0] > 0
    assert len(batches) == 3 or times[-1] / times[-2] == pytest.approx(10, rel=0.05)
    assert batched.predict_time(routine, 0, m, n, dtype, DEVICE) == 0


def test_lu_by_hand():
    """500 of 64² in float64, four at a time: one wave of 64 pivots; 528 matrices' flops; A comes and LU leaves."""
    work = stepwise.counted("lu_factor", 500, 64, 64, 1, np.float64, DEVICE, 132)
    assert (work.kernel, work.steps, work.nbytes) == ("lu_shared", 64, 500 * 2 * 64 * 64 * 8)
    assert work.flops == pytest.approx(528 * 2 / 3 * 64**3)


def test_lu_by_panels_by_hand():
    """224²: panels of 32 columns, 224, 192, … 32 rows; what is behind two of them, 160², 96² and 32², passes once."""
    work = stepwise.counted("lu_factor", 132, 224, 224, 1, np.float64, DEVICE, 132)
    passed = 2 * 224**2 + 2 * 32 * (224 + 192 + 160 + 128 + 96 + 64 + 32) + 2 * (160**2 + 96**2 + 32**2)
    assert (work.kernel, work.steps, work.nbytes, work.launches) == ("lu_panel", 224, 132 * 8 * passed, 1 + 4 * 7)


def test_a_fit_finds_the_constants_that_times_are_made_of():
    constants = model.Constants.of(DEVICE)
    rows = [fit_model.Row("lu_factor", "float32", 500, n, n, 1, 0.0) for n in (64, 96, 128, 160, 256)]
    made = [
        row._replace(seconds=batched.predict_time("lu_factor", 500, row.n, row.n, np.float32, DEVICE)) for row in rows
    ]
    found, (line,) = fit_model.fitted(made, constants, DEVICE)
    assert set(found) == {("lu_shared_step", "float32"), ("lu_shared_flop", "float32")}
    assert all(value == pytest.approx(constants(*name), rel=1e-6) for name, value in found.items())
    assert line["rows"] == 5 and line["worst factor, left out"] == pytest.approx(1)


@pytest.mark.parametrize(("routine", "m", "n", "dtype", "words"), [
    ("lu_factor", 40, 30, np.float64, "no kernel of lu_factor for 10000 of 40 × 30 of float64"),
    ("lu_factor", 16, 16, np.float32, "no kernel of lu_factor for 10000 of 16 × 16 of float32"),
    ("trsm", 512, 512, np.float64, "no kernel of trsm for 10000 of 512 × 512"),
    ("symv", 8, 8, np.complex64, "expected float32 or float64 for symv, got complex64"),
    ("cholesky", 40, 40, np.complex64, "expected float32 or float64 for cholesky"),
])  # fmt: skip
def test_what_is_not_counted_is_told(routine, m, n, dtype, words):
    with pytest.raises(ValueError, match=words):
        batched.predict_time(routine, 10_000, m, n, dtype, DEVICE, columns=64)


def test_constants_that_are_not_fitted_name_the_command(monkeypatch):
    monkeypatch.setattr(model, "_table", lambda folder: {(name, ""): 1.0 for name in (
        "launch", "global_latency", "copy_rate", "multiprocessors")})  # fmt: skip
    with pytest.raises(LookupError, match=r"lu_warp_step of float64 has not been measured .*autotune.fit_model there"):
        batched.predict_time("lu_factor", 8, 8, 8, np.float64)
