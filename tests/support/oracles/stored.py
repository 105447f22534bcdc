"""Small matrices of every kind, and files of them that lie."""

import json
from functools import cache

import h5py
import numpy as np
import pytest

import h2gpu
from h2gpu.covariance import Exponential, Nugget
from h2gpu.storage import writing
from h2gpu.storage.layout import arrays_of

COVARIANCE = Exponential(1.0, 0.3) + Nugget(0.1)
CASES = {
    "1D": {"n": 200, "dim": 1},
    "2D": {"n": 300, "dim": 2},
    "3D": {"n": 400, "dim": 3, "leaf_size": 12, "order": 3},
    "mean split": {"n": 300, "dim": 2, "split": "mean"},
    "float32": {"n": 300, "dim": 2, "dtype": np.float32, "rtol": 1e-3},
    "rectangular": {"n": 300, "dim": 2, "columns": 170},
    "one point": {"n": 1, "dim": 2},
    "one leaf": {"n": 7, "dim": 3},
    "one row": {"n": 1, "dim": 2, "columns": 170},
    "uncompressed": {"n": 300, "dim": 2, "rtol": None},
    "two precisions": {"n": 300, "dim": 2, "storage": "auto"},
    "rectangular, two precisions": {"n": 300, "dim": 2, "columns": 170, "rtol": 2e-8, "storage": "auto"},
}


@cache
def matrix(case):
    parameters = dict(CASES[case])
    rng = np.random.default_rng(len(case))
    n, dim, columns = parameters.pop("n"), parameters.pop("dim"), parameters.pop("columns", None)
    dtype, rtol = parameters.pop("dtype", np.float64), parameters.pop("rtol", 1e-5)
    storage = parameters.pop("storage", "full")
    points = rng.random((n, dim)).astype(dtype)
    others = None if columns is None else rng.random((columns, dim)).astype(dtype)
    A = h2gpu.build(points, COVARIANCE, col_points=others, **{"leaf_size": 10, "order": 4, **parameters})
    return A if rtol is None else h2gpu.compress(A, rtol, storage=storage)


def same_bits(A, B):
    a, b = arrays_of(A), arrays_of(B)
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


def tampered(path, change, symmetric=True, case="2D"):
    """A file with changed arrays and checksums in order, as a malicious writer would make it."""
    arrays = {name: array.copy() for name, array in arrays_of(matrix(case)).items()}
    writing.write(path, change(arrays) or arrays, symmetric, None)


def refused(path, words):
    """load gives one line that names the file and holds the words."""
    with pytest.raises(ValueError, match=words) as caught:
        h2gpu.load(path)
    message = str(caught.value)
    assert "\n" not in message and str(path) in message and len(message) < 600


def changed_settings(path, change):
    """A file of a fitted estimator after change(file, settings)."""
    with h5py.File(path, "a") as file:
        settings = json.loads(file.attrs["settings"])
        change(file, settings)
        file.attrs["settings"] = json.dumps(settings)
