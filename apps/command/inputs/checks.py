"""What every file of points must hold, whatever its format: InputError, one line, where it does not."""

import os
import stat
from pathlib import Path

import numpy as np

from h2gpu.apps.command.command import InputError
from h2gpu.texts import described

ALL = (0, 1)
MOST_COORDINATES = 8  # interpolation takes at least 2^dim points


def check_file(path):
    """How the name of a file ends, if it is a regular file that can be opened; else InputError."""
    try:
        mode = os.stat(path).st_mode  # before it is opened: a pipe waits for its writer
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: Is a directory; give a file")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: expected a regular file, got a pipe or device")
        with open(path, "rb"):
            pass
    except OSError as error:
        raise InputError(described(error)) from None
    return Path(path).suffix.lower()


def check_shape(shape, name, several):
    """InputError unless coordinates or values may have this shape; `several`: one column of some."""
    wanted = "(n,)" if several else "(n, dim)"
    if shape is None or len(shape) not in ((1,) if several else (1, 2)):
        raise InputError(f"{name}: expected shape {wanted}, got {shape}; one row a point")
    if len(shape) == 2 and shape[1] > MOST_COORDINATES:
        raise InputError(
            f"{name}: expected at most {MOST_COORDINATES} coordinates a point, got shape {shape}; one row a point"
        )


def check_lengths(names, columns, option):
    """InputError unless the columns, one a name, are of one length."""
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        told = ", ".join(f"{name} {length}" for name, length in zip(names, lengths))
        raise InputError(f"{option}: expected coordinates of equal length, got {told}")


def rows_of(n, share):
    """The slice of n rows that is a share (rank, ranks): about equal ones, one after the other."""
    rank, ranks = share
    return slice(n * rank // ranks, n * (rank + 1) // ranks)


def check_finite(path, names, rows, what, first=0):
    """InputError unless all numbers of the rows (n, count), of which the first has that number in the file, are finite;
    `what` they are, and the names they have."""
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise InputError(
            f"{path}: {names}: expected finite {what} within {rows.dtype}, got NaN or infinity in "
            f"{int(bad.sum())} rows, first in row {first + int(np.argmax(bad))}; drop those rows"
        )
