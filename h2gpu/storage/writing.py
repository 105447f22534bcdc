"""Arrays → HDF5 file, whole or not at all."""

import errno
import os
import re

import h5py
import numpy as np

from h2gpu.storage.header import FORMAT, VERSION, header_of, json_of
from h2gpu.storage.whole_file import whole_file

LIBRARY = ("v108", "v110")  # from HDF5 1.8 on, the file's own tables carry checksums
TYPES = {"int64": h5py.h5t.STD_I64LE, "float32": h5py.h5t.IEEE_F32LE, "float64": h5py.h5t.IEEE_F64LE}
LITTLE_ENDIAN = {"int64": "<i8", "float32": "<f4", "float64": "<f8"}


def write(path, arrays, symmetric, attributes):
    """Write the file. Raises ValueError for attributes that do not fit, OSError when the disk refuses."""
    arrays = {name: array.astype(LITTLE_ENDIAN[array.dtype.name], copy=False) for name, array in arrays.items()}
    header = header_of(arrays, symmetric, attributes)
    with whole_file(path) as temporary:
        try:
            with h5py.File(temporary, "w", libver=LIBRARY) as file:
                _write_head(file, header)
                for name, array in arrays.items():
                    dataset = file.create_dataset(name, data=array)
                    dataset.attrs["sha256"] = np.bytes_(header.datasets[name][2])
        except (OSError, RuntimeError) as error:
            raise _plain(error, path) from None


def _write_head(file, header):
    file.attrs["format"] = np.bytes_(FORMAT)
    file.attrs["version"] = np.int64(VERSION)
    file.attrs["symmetric"] = np.int64(header.symmetric)
    file.attrs["software"] = np.bytes_(header.software)
    file.attrs["attributes"] = np.bytes_(json_of(header.attributes))
    file.attrs["checksum"] = np.bytes_(header.checksum)


def _plain(error, path):
    """An OSError with the system's words for what HDF5 says at length."""
    found = re.search(r"errno = (\d+)", str(error))
    code = int(found[1]) if found else getattr(error, "errno", None) or errno.EIO
    return OSError(code, f"could not write: {os.strerror(code)}", str(path))
