"""Tuning tables: the first row whose limits hold is taken, so a row behind one that admits as much is never reached."""

import pytest

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import source_folder

TABLES = [
    (path.parent.name, path.stem)
    for path in sorted(source_folder().glob("tuning/*/*.csv"))
    if any(column.startswith(tuning.LIMIT) for column in tuning.rows(path.stem, path.parent.name)[0])
]


def unreached(limits):
    """Places of rows all of whose limits an earlier row admits; limits: of each row of one precision, in order."""
    return [j for j, late in enumerate(limits) if any(all(a >= b for a, b in zip(early, late)) for early in limits[:j])]


@pytest.mark.parametrize(("folder", "routine"), TABLES, ids=lambda name: name)
def test_every_row_is_reached_by_some_size(folder, routine):
    rows = tuning.rows(routine, folder)
    columns = [column for column in rows[0] if column.startswith(tuning.LIMIT)]
    for dtype in {row["dtype"] for row in rows}:
        limits = [[int(row[column]) for column in columns] for row in rows if row["dtype"] == dtype]
        assert unreached(limits) == [], dtype
        for place, sizes in enumerate(limits):  # the sizes at a row's own limits lead to it, or to one before
            named = {column.removeprefix(tuning.LIMIT): size for column, size in zip(columns, sizes)}
            found = tuning.first_row(folder, routine, dtype, **named)
            assert [found[column] for column in columns] in limits[: place + 1]


def test_a_row_behind_one_that_admits_as_much_is_seen():
    assert unreached([[8, 100], [16, 100], [16, 50], [8, 200], [16, 200]]) == [2]
    assert unreached([[8], [8]]) == [1]
