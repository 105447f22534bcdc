"""The study of radar: sizes that fit into registers, a check that sees what is wrong, and on a GPU the table."""

import pytest

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import radar as study_radar
from h2gpu.apps.studies import small as study_small
from h2gpu.batched import registers

CASES = [case for case in study_small.cases() if case.figure == "VII"]


def test_every_size_lies_in_registers():
    assert {(case.m, case.n) for case in CASES} == set(study_radar.PAPER)
    assert all(study_small.grid_of(case) is not None for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.m}x{case.n}")
def test_departure_sees_a_wrong_entry(case):
    A = study_radar.problems(case._replace(batch=3))
    QR, _ = registers.qr(A)
    assert study_radar.departure(A, QR) < 0.1
    QR[1, 0, case.n - 1] *= 2
    assert study_radar.departure(A, QR) > 1


def test_flops_of_radar_beyond_registers():
    """Those of a 240 × 66 problem are 8 (m n² − n³ / 3), with Q twice as many."""
    case = study_radar.Beyond("complex64", "r", 1, 240, 66)
    assert study_radar.beyond_flops(case) == 8 * (240 * 66**2 - 66**3 / 3)
    assert study_radar.beyond_flops(case._replace(mode="reduced")) == 2 * study_radar.beyond_flops(case)
    assert study_radar.problems(case).shape == (1, 240, 66)


@pytest.mark.gpu
def test_study(tmp_path):
    study_radar.main(["--output", str(tmp_path)])
    _, rows = tables.read(tmp_path / "study_radar.csv")
    assert len(rows) == len(CASES) and all(float(row["departure"]) < 1 for row in rows)
