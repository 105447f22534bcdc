"""Files of points and observations through the commands: one line and status 2, or exactly what is in them.

A command that fails leaves no output; one that succeeds writes a matrix within its accuracy of the dense covariance.
"""

import contextlib
import io
import re

import h5py
import numpy as np
from battery import battery, expect, one_line
from cases_files import changed, near_metadata

import h2gpu
from h2gpu.apps import h2compress, h2info, h2krige
from h2gpu.covariance import Exponential

TYPES = "<f8", "<f4", ">f8", ">f4", "<f2", "<i8", "<i4", ">i2", "u1", "<c16", "S4", "?"
SHAPES = (40, 2), (40, 1), (40, 3), (40,), (0, 2), (1, 2), (2, 40), (40, 9), (), (4, 5, 2)
LARGEST = 1 << 27  # bytes of a chunk: h5py holds two of them while it writes


def called(main, *arguments):
    """Status and standard error of a command, which keeps to one line and no traceback."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(a) for a in arguments])
    text = err.getvalue()
    if status:
        expect(text.count("\n") == 1 and text.endswith("\n"), f"stderr is not one line: {text!r:.300}")
        one_line(text[:-1])
    expect(not re.search(r"error: unexpected \w+: |Traceback", text), text[:300])
    expect(status in (0, 1, 2), f"status {status}")
    return status, text


def numbers(rng):
    """An array of points, sometimes odd."""
    shape = SHAPES[0] if rng.random() < 0.4 else SHAPES[rng.integers(len(SHAPES))]
    dtype = TYPES[0] if rng.random() < 0.4 else TYPES[rng.integers(len(TYPES))]
    with np.errstate(all="ignore"):
        x = rng.random(shape) * 10.0 ** (rng.integers(-3, 5) if rng.random() < 0.7 else rng.integers(-320, 308))
        x = x * (1 + 1e-9 * rng.integers(2)) + (4e6 if rng.random() < 0.2 else 0)
        if x.size and rng.random() < 0.15:
            x.reshape(-1)[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e300])
        if len(x.shape) and len(x) > 3 and rng.random() < 0.3:
            x[2:] = x[:1] if rng.random() < 0.3 else x[rng.integers(2, size=len(x) - 2)]
        return x.astype(dtype)


def put(rng, file, name, data):
    """A dataset of the data, chunked and filtered in some way."""
    kind = rng.integers(6)
    options = {}
    if data.shape and kind >= 2:
        options["chunks"] = tuple(max(1, int(rng.integers(1, side + 2))) for side in data.shape)
        options["maxshape"] = (None,) * data.ndim
        if kind >= 3:
            options |= {"compression": "gzip", "shuffle": bool(rng.integers(2)), "fletcher32": bool(rng.integers(2))}
        if kind == 5:
            row = max(1, data[:1].nbytes)
            options["chunks"] = (min(2 ** int(rng.integers(3, 22)), LARGEST // row), *data.shape[1:])
    with contextlib.suppress(ValueError, TypeError, OSError):
        file.create_dataset(name, data=data, **options)


@battery("commands: files of points")
def points_files(rng, folder):
    path, out, report = folder / "points.h5", folder / "out.h5", folder / "report.json"
    with h5py.File(path, "w", libver="earliest" if rng.random() < 0.5 else "latest") as file:
        put(rng, file, "points", numbers(rng))
        for extra in range(rng.integers(3)):
            put(rng, file, f"group{extra}/values", numbers(rng))
    points = _as_written(path)
    data = path.read_bytes()
    if rng.random() < 0.6:
        path.write_bytes(changed(rng, data) if rng.random() < 0.5 else near_metadata(rng, data))
        points = _as_written(path)
    if rng.random() < 0.1:
        called(h2info.main, path)
    length = 0.3 * float(np.ptp(points, axis=0).max()) if points is not None and np.isfinite(points).all() else 1.0
    options = ["--rtol", "1e-4", "--leaf-size", "8", "--length-scale", length or 1.0, "--max-memory", "200M"]
    status, _ = called(h2compress.main, path, "-o", out, "--report", report, "--covariance", "exponential", *options)
    if status:
        expect(not out.exists() and {p.name for p in folder.iterdir()} == {"points.h5"}, "an output of a failure")
        return "refused"
    expect(points is not None, "accepted, though h5py does not read it")
    exact = Exponential(length_scale=length or 1.0)(points)
    error = np.linalg.norm(h2gpu.load(out).to_dense() - exact) / np.linalg.norm(exact)
    expect(error <= 1e-4, f"error {error:.3g}")
    return "right"


def _as_written(path):
    """The points that plain h5py finds, as (n, dim) float64; None where it does not, or they are none."""
    try:
        with h5py.File(path) as file:
            data = file["points"]
            if data.size > 10**6 or data.dtype.kind not in "fiu":
                return None
            points = np.asarray(data[...], float)
        points = points[:, None] if points.ndim == 1 else points
        return points if points.ndim == 2 and points.size else None
    except Exception:  # whatever HDF5 says of a damaged file
        return None


@battery("commands: observations and targets")
def observation_files(rng, folder):
    """h2krige: refused with one line, or the simple kriging of the dense system."""
    path, out = folder / "data.h5", folder / "out.h5"
    odd = rng.random() < 0.6
    X, y = (numbers(rng), numbers(rng).reshape(-1)) if odd else (rng.random((40, 2)), rng.random(40))
    new = numbers(rng) if odd and rng.random() < 0.5 else rng.random((10, 2))
    with h5py.File(path, "w") as file:
        for name, data in (("points", X), ("values", y), ("targets/points", new)):
            put(rng, file, name, data)
    if rng.random() < 0.3:
        path.write_bytes(near_metadata(rng, path.read_bytes()))
        odd = True
    with h5py.File(folder / "targets.h5", "w") as file:
        put(rng, file, "points", new)
    options = "--variance", 1, "--length-scale", 0.3, "--nugget", 0.1, "--rtol", "1e-8", "--trend", "none"
    status, text = called(h2krige.main, path, "--targets", folder / "targets.h5", "-o", out, *options)
    if status:
        expect(odd, f"refused, though in order: {text}")
        expect(not out.exists(), "an output of a failure")
        return "refused"
    if not odd:
        cov = Exponential(length_scale=0.3)
        mean = cov(new, X) @ np.linalg.solve(cov(X) + 0.1 * np.eye(40), y)
        with h5py.File(out) as file:
            names = [name for name in file if file[name].shape == (10,)]
            apart = min(np.abs(file[name][...] - mean).max() for name in names)
        expect(apart < 1e-6, f"prediction {apart:.3g} from the dense one")
    return "right"
