"""The knobs that change only the time: rows of kernels/tuning/<device>/<routine>.csv.

A table is read top to bottom: the first row of the precision whose limits (columns `max_…`) all hold is taken. Every
row carries its measured rate, device and date; kernels/README.md explains the columns, apps/autotune/tune.py measures
them.
"""

import csv
import logging
import sys
from contextlib import contextmanager
from functools import cache, lru_cache

import numpy as np

from h2gpu.batched.device.compiler import source_folder

FALLBACK = "nvidia-h200"  # the device the kernels were written on
LIMIT = "max_"  # columns that say for which sizes a row is

_log = logging.getLogger(__name__)
_trials = {}  # routine → values on trial instead of those of any row


def row(routine, dtype, **sizes):
    """The tuning row of a routine as a dict; integer columns as int.

    sizes   the numbers that the table's limits are about: `size=64` is held against the column `max_size`

    Raises LookupError where no row admits the sizes.
    """
    values = first_row(_device_folder(routine), routine, dtype, **sizes)
    return values | _trials[routine] if routine in _trials else values


@lru_cache(maxsize=4096)  # small products take no longer than to look for a row
def first_row(folder, routine, dtype, **sizes):
    """The same of the folder of a device that need not be at hand."""
    for limits, values in _table(folder, routine, np.dtype(dtype).name):
        if all(sizes[name] <= limit for name, limit in limits):
            return values
    raise LookupError(f"tuning: no row of {routine}.csv for {np.dtype(dtype).name} and {sizes}")


def measured(routine, dtype, size):
    """The row of just this size measured on the current device, or None: no other device's stands in for it."""
    if routine in _trials:
        return _trials[routine]
    return _by_size(folder_name(_name(_device())), routine, np.dtype(dtype).name).get(size)


@contextmanager
def trial(routine, **values):
    """Within the block every row of the routine carries these values in place of its own."""
    before = _trials.get(routine)
    _trials[routine] = values
    _forget_plans()
    try:
        yield
    finally:
        if before is None:
            del _trials[routine]
        else:
            _trials[routine] = before
        _forget_plans()


def rows(routine, folder=FALLBACK):
    """A folder's whole table of a routine: dictionaries of text, in the order of the file."""
    with (source_folder() / "tuning" / folder / f"{routine}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def folder_name(device_name):
    """NVIDIA H200 → nvidia-h200."""
    return "-".join(device_name.lower().split())


@cache
def _table(folder, routine, dtype):
    """((limits, values), …) of one precision, in the order of the file."""
    found = [_numbers(row) for row in rows(routine, folder) if row["dtype"] == dtype]
    return [([(k.removeprefix(LIMIT), v) for k, v in row.items() if k.startswith(LIMIT)], row) for row in found]


@cache
def _by_size(folder, routine, dtype):
    if not (source_folder() / "tuning" / folder / f"{routine}.csv").is_file():
        return {}
    return {row["size"]: row for row in map(_numbers, rows(routine, folder)) if row["dtype"] == dtype}


def _numbers(row):
    """Integer fields as int, the rest as text."""
    return {key: int(value) if value.lstrip("-").isdigit() else value for key, value in row.items()}


def _forget_plans():
    """The modules that launch remember what they made of a row; they shall ask again."""
    for name, module in list(sys.modules.items()):
        if name.startswith("h2gpu.batched.") and not name.startswith("h2gpu.batched.device."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def _device_folder(routine):
    """The folder of the current device's table of a routine, or the fallback's."""
    return _folder_of(_device(), routine)


@cache
def _folder_of(device, routine):
    name = _name(device)
    if (source_folder() / "tuning" / folder_name(name) / f"{routine}.csv").is_file():
        return folder_name(name)
    _log.debug("no tuning table of %s for %s: using that of %s", routine, name, FALLBACK)
    return FALLBACK


def _device():
    import cupy

    return cupy.cuda.Device().id


def _name(device):
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(device)["name"].decode()
