"""The knobs that change only the time: rows of kernels/tuning/<device>/<routine>.csv.

A table is read top to bottom: the first row of the precision whose limits (columns `max_…`) all hold is taken. Every
row carries its measured rate, device and date; kernels/tuning/README.md explains the columns.
"""

import csv
import logging
from functools import cache

import numpy as np

from h2gpu.batched.modules import source_folder

FALLBACK = "nvidia-h200"  # the device the kernels were written on

_log = logging.getLogger(__name__)


def row(routine, dtype, **sizes):
    """The tuning row of a routine as a dict; integer columns as int.

    sizes   the numbers that the table's limits are about: `size=64` is held against the column `max_size`

    Raises LookupError where no row admits the sizes.
    """
    for limits, values in _table(_device_folder(), routine, np.dtype(dtype).name):
        if all(sizes[name] <= limit for name, limit in limits):
            return values
    raise LookupError(f"tuning: no row of {routine}.csv for {np.dtype(dtype).name} and {sizes}")


def folder_name(device_name):
    """NVIDIA H200 → nvidia-h200."""
    return "-".join(device_name.lower().split())


@cache
def _table(folder, routine, dtype):
    """((limits, values), …) of one precision, in the order of the file."""
    path = source_folder() / "tuning" / folder / f"{routine}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [_numbers(row) for row in csv.DictReader(file) if row["dtype"] == dtype]
    return [([(k[4:], v) for k, v in row.items() if k.startswith("max_")], row) for row in rows]


def _numbers(row):
    """Integer fields as int, the rest as text."""
    return {key: int(value) if value.lstrip("-").isdigit() else value for key, value in row.items()}


def _device_folder():
    """The folder of the current device's tables, or the fallback's."""
    import cupy

    return _folder_of(cupy.cuda.Device().id)


@cache
def _folder_of(device):
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(device)["name"].decode()
    if (source_folder() / "tuning" / folder_name(name)).is_dir():
        return folder_name(name)
    _log.debug("no tuning tables for %s: using those of %s", name, FALLBACK)
    return FALLBACK
