"""Matrix files that are in order for HDF5 but not what they should be: arrays and structure changed with care."""

import h5py
import numpy as np
from battery import battery, expect, one_line
from cases_files import a_name, judged, original, saved
from stored import CASES, matrix

import h2gpu
from h2gpu.storage import writing
from h2gpu.storage.layout import arrays_of

INTEGERS = -(2**63), 2**63 - 1, 2**31, 2**32 + 1, -1, 0, 1
NUMBERS = np.nan, np.inf, -np.inf, 1e308, 5e-324, -0.0, 0.0, 1e30


def array_changed(rng, arrays):
    """One array of several ways to change it."""
    name = str(rng.choice(list(arrays)))
    a, kind = arrays[name].copy(), rng.integers(6)
    flat = a.reshape(-1)
    if kind <= 2 and flat.size:
        at = rng.integers(flat.size)
        if a.dtype.kind == "i":
            flat[at] = rng.choice(INTEGERS) if rng.random() < 0.4 else flat[at] + rng.integers(-3, 4)
        else:
            flat[at] = rng.choice(NUMBERS) if rng.random() < 0.6 else -flat[at] * 3 + 1
    elif kind == 3:
        a = a[: rng.integers(len(a) + 1)] if rng.random() < 0.5 else np.concatenate([a, a[:2]])
    elif kind == 4:
        a = a[rng.permutation(len(a))]
    else:
        a = a.astype(np.float32 if a.dtype == np.float64 else np.float64 if a.dtype == np.float32 else np.int64)
    arrays[name] = a


@battery("files: arrays changed, checksums right")
def arrays_changed(rng, folder):
    """Refused, or a matrix whose products are those of its dense form."""
    name, path = str(rng.choice(list(CASES))), folder / "changed.h5"
    A = matrix(name)
    arrays = dict(arrays_of(A))
    for _ in range(rng.integers(1, 3)):
        array_changed(rng, arrays)
    writing.write(path, arrays, A.symmetric, None)
    try:
        B = h2gpu.load(path)
    except ValueError as error:
        one_line(error)
        return "refused"
    expect(B.shape == A.shape, f"{name}: another shape, {B.shape}")
    with np.errstate(all="ignore"):
        x = rng.standard_normal(B.shape[1]).astype(B.dtype)
        dense = B.to_dense().astype(np.longdouble)
        y, z = B @ x, dense @ x
        scale = np.abs(dense).max(initial=0) * np.abs(x).sum() * np.finfo(B.dtype).eps
        bound = 1e4 * scale * max(map(len, (arrays["row_tree/start"],)))
        bound += B.shape[1] * np.finfo(B.dtype).smallest_subnormal  # each product may be rounded to such a multiple
        if (
            np.isfinite(bound)
            and np.isfinite(y).all()
            and not any(np.abs(a).max(initial=0) > 1e20 for a in arrays.values())
        ):
            expect(np.abs(y - z).max(initial=0) <= bound, f"{name}: products differ from the dense matrix")
            if B.symmetric:
                apart = np.abs(dense - dense.T).max(initial=0)
                expect(apart <= 1e6 * np.finfo(B.dtype).eps * np.abs(dense).max(initial=1), f"{name}: not symmetric")
    return "a matrix"


def _soft(file, name, data):
    file["aside"] = data
    file[name] = h5py.SoftLink("/aside")


def _external(file, name, data):
    file[name] = h5py.ExternalLink("other.h5", "/x")


def _virtual(file, name, data):
    file["aside"] = data
    layout = h5py.VirtualLayout(data.shape, data.dtype)
    layout[...] = h5py.VirtualSource(file["aside"])
    file.create_virtual_dataset(name, layout)


def _outside(file, name, data):
    file.create_dataset(name, data=None, shape=data.shape, dtype=data.dtype, external=[("/etc/passwd", 0, data.nbytes)])


def _filtered(file, name, data):
    file.create_dataset(name, data=data, chunks=True, compression="gzip")


def _huge(file, name, data):
    file.create_dataset(name, shape=(2**40, *data.shape[1:]), dtype=data.dtype, chunks=(1024, *data.shape[1:]))


def _big_endian(file, name, data):
    file.create_dataset(name, data=data.astype(data.dtype.newbyteorder(">")))


def _texts(file, name, data):
    file.create_dataset(name, data=["a"] * len(data), dtype=h5py.string_dtype())


def _references(file, name, data):
    file.create_dataset(name, data=[file.ref] * len(data), dtype=h5py.ref_dtype)


def _group(file, name, data):
    file.create_group(name)


def _nothing(file, name, data):
    pass


def _the_same(file, name, data):
    file.create_dataset(name, data=data)


REPLACED = (
    _soft, _external, _virtual, _outside, _filtered, _huge, _big_endian, _texts, _references, _group, _nothing,
    _the_same,
)  # fmt: skip


def _attribute(rng, file):
    """An attribute lost, of another type, or of another value."""
    node = file if rng.random() < 0.5 or not _datasets(file) else file[str(rng.choice(_datasets(file)))]
    if not len(node.attrs):
        return
    name = str(rng.choice(list(node.attrs)))
    value = rng.choice(len(ATTRIBUTES) + 1)
    if value == len(ATTRIBUTES):
        del node.attrs[name]
    else:
        node.attrs[name] = ATTRIBUTES[value]


ATTRIBUTES = (
    0, -1, 2**63 - 1, 1.5, "text", np.bytes_(b"\xff\xfe"), np.bytes_(b"{" * 5000), np.arange(3),
    np.bytes_(b'{"a":1e999}'), np.bytes_(b"[" * 3000 + b"]" * 3000), h5py.Empty("f"), np.bytes_(b"1" * 5000),
)  # fmt: skip


def _datasets(file):
    found = []
    file.visititems(lambda name, node: found.append(name) if isinstance(node, h5py.Dataset) else None)
    return found


@battery("files: structure changed through h5py")
def structure_changed(rng, folder):
    name, path = a_name(rng), folder / "changed.h5"
    path.write_bytes(saved(name))
    original(name)
    with h5py.File(path, "r+") as file:
        for _ in range(rng.integers(1, 3)):
            if rng.random() < 0.4:
                _attribute(rng, file)
                continue
            if not _datasets(file):
                continue
            where = str(rng.choice(_datasets(file)))
            if file[where].size > 10**6:  # the huge one that was put there just now
                continue
            data, kept = file[where][...], dict(file[where].attrs)
            del file[where]
            try:
                REPLACED[rng.integers(len(REPLACED))](file, where, data)
                if isinstance(file.get(where, getlink=True), h5py.HardLink):
                    file[where].attrs.update(kept)
            except (ValueError, TypeError, OSError, KeyError):  # h5py does not make such a one
                pass
    return judged(path, name)
