"""Matrices of a ragged batch in classes: those that one kernel instance works on.

What an instance depends on is worked out for the sizes (m, n) that occur, of which there are few, not for every matrix.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import moved_together

DENSE = 16  # sizes that could occur, for each matrix, up to which they are counted in a table
LEAST_TABLE = 1 << 16  # sizes that are counted in a table always


@dataclass(frozen=True)
class SizeClass:
    """Matrices of agreeing keys.

    members   indices into the batch, or a slice where all of it
    count     of the members
    rows      of the sizes that occur in it, like `columns`
    keys      what they agree in
    """

    members: object
    count: int
    rows: np.ndarray
    columns: np.ndarray
    keys: np.ndarray

    @property
    def shape(self):
        """Rows and columns that no matrix exceeds."""
        return int(self.rows.max()), int(self.columns.max())

    def table(self, *columns):
        """(count, columns) int64 on the device; a column is one number a matrix of the batch, or one for all."""
        ((_, table),) = with_tables([self], *columns)
        return table

    def _lines(self, columns):
        """The same on the host."""
        lines = np.empty((self.count, len(columns)), np.int64)
        for i, column in enumerate(columns):
            lines[:, i] = column[self.members] if isinstance(column, np.ndarray) else column
        return lines


def with_tables(groups, *columns):
    """(SizeClass, its table) for each of several; columns as for `table`, all by one copy."""
    import cupy

    groups = list(groups)
    return zip(groups, moved_together(cupy, *(group._lines(columns) for group in groups)))


def distinct(m, n):
    """The sizes that occur, rows and columns, and for each matrix which of them it has."""
    width = int(n.max(initial=0)) + 1
    flat = m * width + n
    span = int(flat.max(initial=0)) + 1
    if span > max(LEAST_TABLE, DENSE * len(flat)):
        sizes, which = np.unique(flat, return_inverse=True)
    else:
        sizes = np.flatnonzero(np.bincount(flat, minlength=span))
        place = np.empty(span, np.int32)
        place[sizes] = np.arange(len(sizes))
        which = place[flat]
    return sizes // width, sizes % width, which


def _distinct_columns(keys):
    """The columns that occur, in lexicographic order, and which of them each is; NumPy's `unique` takes several times
    as long for a few dozen."""
    order, new = np.lexsort(keys[::-1]), np.ones(keys.shape[1], bool)
    ordered, index = keys[:, order], np.empty(keys.shape[1], np.int32)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    index[order] = np.cumsum(new) - 1
    return ordered[:, new], index


def classes(m, n, keys):
    """SizeClass for SizeClass, in the order of their keys; matrices without rows or columns are in none.

    m, n   (batch,) rows and columns
    keys   (sizes' rows, sizes' columns) → (·, sizes) integers
    """
    rows, columns, which = distinct(m, n)
    some = rows * columns > 0
    found, index = _distinct_columns(np.asarray(keys(rows[some], columns[some])))
    number = np.full(len(rows), -1, np.int32)
    number[some] = index
    alike = found.shape[1] == 1 and some.all()
    which = None if alike else number[which]
    for c in range(found.shape[1]):
        members = slice(None) if alike else np.flatnonzero(which == c)
        count = len(m) if alike else len(members)
        yield SizeClass(members, count, rows[number == c], columns[number == c], found[:, c])
