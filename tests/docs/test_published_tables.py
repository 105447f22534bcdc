"""Tables on pages are rows of published tables, with their device and commit."""

from pathlib import Path

import published
import pytest

ROOT = Path(__file__).parents[2]
TABLE = """# date: 2026-01-02
# device: a device
# commit: abc
shape,dtype,ms
8×8,float64,1
8×8,float32,2
9×9,float64,3
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")
    return published.read(tmp_path / "table.csv")


def test_rows_that_meet_all_conditions(table):
    head, rows = table
    assert head["device"] == "a device" and head["commit"] == "abc"
    assert [row["ms"] for row in published.selected(rows, "dtype=float64; shape=9×9|8×8")] == ["1", "3"]
    assert published.selected(rows, None) == rows


@pytest.mark.parametrize(("where", "match"), [("size=3", "expected a column"), ("ms=4", "some row meets")])
def test_conditions_that_no_row_can_meet(table, where, match):
    with pytest.raises(ValueError, match=match):
        published.selected(table[1], where)


def test_every_kernel_page_has_drawing_bound_and_measurement():
    pages = [page for page in ROOT.glob("docs/kernels/*.md") if page.name not in ("index.md", "reach.md")]
    assert len(pages) == 10
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "](../pictures/kernels-" in text and "## Bound" in text and ":::{published}" in text, page.name
