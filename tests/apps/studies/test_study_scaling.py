"""The study of scaling counts, follows its law, and draws."""

import numpy as np
import pytest

from h2gpu.apps.benchmarks.processes.model import Machine
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies.processes import scaling


def test_a_table_and_a_picture(tmp_path, capsys):
    assert scaling.main(["--largest", "13", "-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_scaling.csv")
    assert {row["scaling"] for row in rows} == {"strong", "weak, 2^22", "weak, 2^25"}
    assert {row["GPUs"] for row in rows} == {"1", "4"}  # more ranks have too few clusters of so few sites
    assert all(0 < float(row["A x efficiency"]) <= 1 and 0 < float(row["compression efficiency"]) <= 1 for row in rows)
    assert (tmp_path / "study_scaling.png").stat().st_size > 10_000


def test_the_law_goes_through_what_it_was_made_of():
    found = {m: (3, 10 + 2 * 2 ** (m / 2), 5 * 2 ** (m / 2), 7) for m in (10, 12, 14)}
    messages, far, near, summed, off = scaling.law(found, 22)
    assert (messages, summed) == (3, 7) and abs(off) < 1e-12
    assert (far, near) == pytest.approx((10 + 2 * 2**11, 5 * 2**11))


def test_more_ranks_cost_what_they_say_to_each_other():
    machine = Machine(wait=1e-4)
    alone = scaling.seconds(machine, 2.0**22, 1, 0, 0, 0, 0)
    times = [scaling.seconds(machine, p * 2.0**22, p, 7, 1000, 1e6, 10) for p in (8, 64, 1024)]
    assert np.all(np.diff([alone, *times], axis=0) > 0)
    assert scaling.seconds(machine, 2.0**28, 1024, 0, 0, 0, 0)[0] == machine.floor + machine.wait
