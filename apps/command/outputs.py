"""What a command will write: checked before the work, so that an hour's result is not lost to a misspelled name."""

import os
from pathlib import Path

from h2gpu.apps.command.command import InputError
from h2gpu.apps.command.structure_plot import FORMATS, require_matplotlib
from h2gpu.storage import check_writable
from h2gpu.storage.exchange import check_map, is_map
from h2gpu.texts import described

HDF5 = ".h5", ".hdf5", ".hdf", ".he5", ""


def check_hdf5_name(name, path):
    """InputError where the name of an HDF5 file promises another format."""
    if os.path.splitext(path)[1].lower() not in HDF5:
        raise InputError(f"{name}: expected a name that ends in .h5, as HDF5 is written, got {path}")


def check_name(name, path):
    """InputError where the name of an output is that of no format written, ImportError where a package is missing."""
    if is_map(path):
        check_map(path)
    elif os.path.splitext(path)[1].lower() not in HDF5:
        raise InputError(f"{name}: expected a name that ends in .h5, .csv, .tif or .nc, got {path}")


def check_outputs(inputs, outputs, plot=None):
    """Every output can be written, and none is an input or another output.

    inputs    {what: path}, such as {"the input": "points.h5"}
    outputs   {option: path}; None for what is not asked for
    plot      path of a picture among the outputs

    Raises InputError, and ImportError where a picture is asked for without matplotlib.
    """
    seen = {os.path.realpath(path): what for what, path in inputs.items()}
    for name, path in outputs.items():
        if path is None:
            continue
        other = seen.setdefault(os.path.realpath(path), name)
        if other != name:
            raise InputError(f"{name}: {path} is {other} too; give another name")
        try:
            check_writable(path)
        except (IsADirectoryError, FileNotFoundError) as error:
            raise InputError(f"{name}: {described(error)}") from None
    if plot:
        require_matplotlib()
        if Path(plot).suffix.lower() not in FORMATS:
            raise InputError(f"--plot: expected a name that ends in .png, .pdf or .svg, got {plot}")
