"""HDF5 file of a user → (n, dim) points, (n,) values, with one clear line for whatever is wrong with it.

Sizes are compared with the free memory before anything is read. Links to other files, external and virtual data are
refused: a file of points holds its points.
"""

import os
import stat
from collections import deque
from contextlib import contextmanager
from itertools import islice
from math import prod

import h5py
import numpy as np

from h2gpu.apps.command.command import InputError, described
from h2gpu.memory import readable
from h2gpu.storage.plain_text import plain

MOST_COORDINATES = 8  # interpolation takes at least 2^dim points
LISTED = 20  # datasets named in a message, at most
VISITED = 500  # groups and datasets looked at to name them
CHUNK = 1 << 26  # bytes that HDF5 may unpack at a time: a chunk is held as a whole, however little of it is asked for
FILTERS = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)  # these do not change the size of what passes


def read_points(path, names, dtype, most, option="--points", time=None):
    """The points of a file as an (n, dim) array of finite numbers.

    names   one dataset (n, dim) or (n,), or several (n,), one a coordinate; None: points
    time    a dataset (n,) that is a further, last coordinate
    dtype   "float32" or "float64"
    most    bytes that the points may take
    option  with which the user chooses the names

    Raises InputError.
    """
    names = names or ["points"]
    with _own_words(path) as file:
        columns = [_declared(file, name, option, several=len(names) > 1) for name in names]
        if time:
            names, columns = [*names, time], [*columns, _declared(file, time, "--time", several=True)]
        _check_lengths(names, columns, option)
        size = sum(prod(column.shape) for column in columns) * np.dtype(dtype).itemsize
        if 3 * size > most:
            raise InputError(
                f"expected points that fit in {readable(most)}, got {readable(size)} of them; "
                "thin them out or raise --max-memory"
            )
        points = _together([_numbers(column, dtype) for column in columns])
    _check_finite(path, ",".join(names), points, "coordinates")
    return points


def read_values(path, name, n, option, missing=False):
    """The dataset of that name as (n,) float64, one number a point; `missing`: NaN may stand for unknown ones.

    option  with which the user chooses the name

    Raises InputError.
    """
    with _own_words(path) as file:
        column = _declared(file, name, option, several=True)
        if len(column) != n:
            raise InputError(f"{name}: expected {n} values as there are points, got {len(column)}")
        values = _numbers(column, "float64")
    if not missing:
        _check_finite(path, name, values[:, None], "values")
    return values


def holds(path, name):
    """Whether the file has a dataset of that name. Raises InputError for a file that cannot be read."""
    with _own_words(path) as file:
        node = file
        for part in filter(None, name.split("/")):
            hard = isinstance(node, h5py.Group) and isinstance(node.get(part, getlink=True), h5py.HardLink)
            if not hard:
                return False
            node = node[part]
        return node is not file


@contextmanager
def _own_words(path):
    """The file, open to be read; whatever goes wrong becomes an InputError of one line."""
    check_file(path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # HDF5 parses bytes of unknown origin: OSError, RuntimeError, KeyError, TypeError, …
        words = " ".join(str(error).split())
        raise InputError(f"{path}: expected an HDF5 file in order, got “{words:.160}”") from None


def check_file(path):
    """InputError unless path is a regular file that can be opened."""
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


def _declared(file, name, option, several):
    """The dataset of that name, if it is real numbers of a right shape in this file; the option chooses others."""
    node = file
    for part in filter(None, name.split("/")):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            raise InputError(f"dataset {name!r} not found; the file holds {listed(file)}: choose with {option}")
        if not isinstance(link, h5py.HardLink):
            raise InputError(f"{name}: expected a dataset of this file, got a {type(link).__name__}; copy the data in")
        node = node[part]
    if not isinstance(node, h5py.Dataset):
        raise InputError(f"{name!r} is a group; the file holds {listed(file)}: choose with {option}")
    if node.is_virtual or node.external:
        raise InputError(f"{name}: expected a dataset of this file, got one that lies in others; copy the data in")
    if node.dtype.kind not in "fiu":
        raise InputError(f"{name}: expected real numbers, got {node.dtype}; store coordinates as float64")
    wanted = "(n,)" if several else "(n, dim)"
    if node.shape is None or len(node.shape) not in ((1,) if several else (1, 2)):
        raise InputError(f"{name}: expected shape {wanted}, got {node.shape}; one row a point")
    if len(node.shape) == 2 and node.shape[1] > MOST_COORDINATES:
        raise InputError(
            f"{name}: expected at most {MOST_COORDINATES} coordinates a point, got shape {node.shape}; one row a point"
        )
    _check_packing(node, name)
    if 0 in node.shape:
        raise InputError(f"{name}: expected at least one point and one coordinate, got shape {node.shape}")
    return node


def _check_packing(node, name):
    """InputError where little on the disk may unpack to far more than the dataset: large chunks, packed twice."""
    if node.chunks is None or node.shape is None:
        return
    size, most = (prod(shape) * node.dtype.itemsize for shape in (node.chunks, node.shape))
    plan = node.id.get_create_plist()
    packings = [k for k in range(plan.get_nfilters()) if plan.get_filter(k)[0] not in FILTERS]
    if size > max(CHUNK, most) or len(packings) > 1:
        raise InputError(
            f"{name}: expected chunks of at most {readable(max(CHUNK, most))}, packed once, got {readable(size)} "
            f"packed {len(packings)} times; write it anew"
        )


def listed(file):
    """The datasets of a file with their shapes, as text."""
    found = list(islice(_datasets(file), LISTED + 1))
    more = " and more" if len(found) > LISTED else ""
    return ", ".join(found[:LISTED]) + more if found else "no datasets near its root"


def _datasets(file):
    """Names and shapes of the datasets, nearest to the root first, among the first VISITED things of the file."""
    waiting, left = deque([("", file)]), VISITED
    while waiting:
        path, group = waiting.popleft()
        for name in group:
            left -= 1
            if left < 0:
                return
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            node = group[name]
            if isinstance(node, h5py.Group):
                waiting.append((f"{path}{name}/", node))
            elif isinstance(node, h5py.Dataset):
                yield f"{plain(path + name, 80)} {node.shape}"


def _check_lengths(names, columns, option):
    lengths = [column.shape[0] for column in columns]
    if len(set(lengths)) > 1:
        told = ", ".join(f"{name} {length}" for name, length in zip(names, lengths))
        raise InputError(f"{option}: expected coordinates of equal length, got {told}")


def _numbers(column, dtype):
    """A dataset read in one precision; what does not fit becomes infinite and is refused later."""
    with np.errstate(all="ignore"):
        return column[()].astype(dtype)


def _together(columns):
    return columns[0].reshape(len(columns[0]), -1) if len(columns) == 1 else np.column_stack(columns)


def _check_finite(path, names, rows, what):
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise InputError(
            f"{path}: {names}: expected finite {what} within {rows.dtype}, got NaN or infinity in "
            f"{int(bad.sum())} rows, first in row {int(np.argmax(bad))}; drop those rows"
        )
