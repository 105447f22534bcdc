"""What the doors of h2gpu.batched check and bring into form."""

import math
from itertools import pairwise

import numpy as np

from h2gpu.arrays import array_module, as_array, native, to_host
from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.texts import brief

REAL, COMPLEX = (np.float32, np.float64), (np.complex64, np.complex128)
RESIDENT = 128  # rows and columns of matrices whose truncated SVD needs no size on the host


def checked(A, name, dtypes=REAL):
    """A as an array of at least two dimensions, or a MatrixBatch, in one of the dtypes; integers become float64."""
    ragged = isinstance(A, MatrixBatch)
    A = A if ragged else as_array(A)
    A = A.astype(np.float64) if A.dtype.kind in "iub" else A if ragged else native(A)
    if (not ragged and A.ndim < 2) or A.dtype.type not in dtypes:
        kinds, got = " or ".join(np.dtype(dtype).name for dtype in dtypes), repr(A) if ragged else f"shape {A.shape}"
        raise ValueError(f"{name}: expected {kinds} matrices of shape (batch, m, n), got {got} of {A.dtype}")
    return A


def precision(dtype):
    """The real type of the parts of a number: float32 for float32 and complex64, float64 for float64 and complex128."""
    return np.finfo(dtype).dtype


def refuse_complex(A, name):
    """ValueError for complex matrices."""
    if A.dtype.kind == "c":
        raise ValueError(f"{name}: expected real matrices, got {A.dtype}; batched.qr and batched.svd take complex ones")


def square(A, name, dtypes=REAL):
    """An array of square matrices, checked."""
    A = checked(A, name, dtypes)
    if A.shape[-1] != A.shape[-2]:
        raise ValueError(f"{name}: expected square matrices, got shape {A.shape}")
    return A


def square_batch(A, name, dtypes=REAL):
    """A MatrixBatch of square matrices, checked."""
    A = checked(A, name, dtypes)
    if (A.rows != A.columns).any():
        raise ValueError(f"{name}: expected square matrices, got {brief(A)}")
    return A


def number(x, name, dtype):
    """x as a number of the dtype; ValueError unless it is one that fits, a real one for real matrices."""
    if type(x) not in (int, float):
        value = to_host(as_array(x))
        if value.ndim or value.dtype.kind not in ("iufbc" if np.dtype(dtype).kind == "c" else "iufb"):
            raise ValueError(f"{name}: expected a number for matrices of {np.dtype(dtype)}, got {brief(x)}")
        x = value[()]
    return np.dtype(dtype).type(x)


def of_precision(name, label, M, A):
    """The array M in the precision of A; ValueError where that would lose any of it."""
    if M.dtype == A.dtype and array_module(M) is array_module(A):
        return M
    M = native(M)
    if M.dtype.kind not in "iub" and M.dtype != A.dtype:
        raise ValueError(f"{name}: expected {label} of the precision of A, {A.dtype}, got {M.dtype}")
    return array_module(A).asarray(M, A.dtype)


def columns_of(A, b, name):
    """Right-hand sides as (batch, m, k), in the precision of A; ValueError where they do not belong to A."""
    xp = array_module(A)
    b = as_array(b)
    if array_module(b) is not xp or b.shape[: A.ndim - 1] != A.shape[:-1] or b.ndim not in (A.ndim - 1, A.ndim):
        raise ValueError(f"{name}: expected b {A.shape[:-1]} or {(*A.shape[:-1], 'k')} where A is, got {b.shape}")
    if b.dtype != A.dtype:
        if b.dtype.kind not in "iub" and np.result_type(b.dtype, A.dtype) != A.dtype:
            raise ValueError(f"{name}: expected b of the precision of A, {A.dtype}, got {b.dtype}")
        b = xp.ascontiguousarray(b, A.dtype)
    return stack(b if b.ndim == A.ndim else b[..., None])


def stack(A):
    """All leading dimensions as one, C-contiguous."""
    A = A if A.flags.c_contiguous else array_module(A).ascontiguousarray(A)
    return A if A.ndim == 3 else A.reshape(math.prod(A.shape[:-2]), *A.shape[-2:])


def alike(*arrays):
    """Whether checked arrays were taken as they are: floating-point numbers of one precision."""
    return all(A.dtype == arrays[0].dtype and A.dtype.kind in "fc" for A in arrays)


def tolerances(atol, shape):
    """atol as (batch,) float64 on the host; ValueError unless it is a number ≥ 0 for each matrix.

    One number on the device stays there, and is the business of whoever computed it.
    """
    if array_module(atol) is not np and atol.ndim == 0:
        return array_module(atol).full(shape, atol).ravel()
    values = np.asarray(atol) if array_module(atol) is np else to_host(atol)
    if values.dtype.kind not in "iuf" or values.shape not in ((), tuple(shape)) or not (values >= 0).all():
        raise ValueError(f"atol: expected a number ≥ 0 or an array of them of shape {tuple(shape)}, got {brief(atol)}")
    return np.broadcast_to(values.astype(np.float64), shape).ravel()


def check_products(routine, factors, addend, out):
    """ValueError unless the products of ragged factors are defined, and addend and out (or None) are of their sizes.

    factors   [(MatrixBatch, whether it is transposed), …]

    Sizes on the device are the business of whoever brought them there.
    """
    first, dtype = factors[0][0], factors[0][0].dtype
    if dtype not in REAL + COMPLEX:
        raise ValueError(f"{routine}: expected A a MatrixBatch of floating-point numbers, got {brief(first)}")
    results = [(name, M) for name, M in (("C", addend), ("out", out)) if M is not None]
    batches = [(chr(ord("A") + i), M) for i, (M, _) in enumerate(factors)] + results
    for name, M in batches:
        if not isinstance(M, MatrixBatch) or len(M) != len(first) or M.dtype != dtype:
            raise ValueError(
                f"{routine}: expected {name} a MatrixBatch of {len(first)} matrices of {dtype}, got {brief(M)}"
            )
    if any(isinstance(M, ResidentBatch) for _, M in batches):
        return
    shapes = [(M.columns, M.rows) if transposed else (M.rows, M.columns) for M, transposed in factors]
    for (_, left), (right, _) in pairwise(shapes):
        _check_equal(routine, "inner dimensions", left, right)
    for name, M in results:
        _check_equal(routine, f"rows of {name}", M.rows, shapes[0][0])
        _check_equal(routine, f"columns of {name}", M.columns, shapes[-1][1])


def check_triangles(A, mode, out):
    """ValueError unless out can receive R of all matrices, and R is all that is asked for."""
    kinds = isinstance(A, MatrixBatch) and isinstance(out, MatrixBatch) and mode == "r"
    if not kinds or len(A) != len(out) or A.dtype != out.dtype:
        raise ValueError(
            f'qr: expected out only with mode "r", a MatrixBatch like A, got mode {brief(mode)}, {A!r}, {out!r}'
        )
    _check_equal("qr", "rows of out", out.rows, np.minimum(A.rows, A.columns))
    _check_equal("qr", "columns of out", out.columns, A.columns)


def _check_equal(routine, what, found, expected):
    """ValueError naming the first matrix whose size is not as expected."""
    if found is not expected and (found != expected).any():
        b = int(np.argmax(found != expected))
        raise ValueError(f"{routine}: matrices {b} do not match: {what} {found[b]} and {expected[b]}")


def operand_like(name, label, M, A, shape):
    """M as an array of A's precision; ValueError unless it is where A is, and of the shape."""
    M = as_array(M)
    if array_module(M) is not array_module(A) or M.shape != tuple(shape):
        raise ValueError(f"{name}: expected {label} of shape {tuple(shape)} where A is, got {M.shape}")
    return of_precision(name, label, M, A)


def check_batch(name, label, M, A, rows, columns):
    """ValueError unless M is None or a MatrixBatch of these sizes, like A."""
    if M is None:
        return
    if not isinstance(M, MatrixBatch) or len(M) != len(A) or M.dtype != A.dtype:
        raise ValueError(f"{name}: expected {label} a MatrixBatch of {len(A)} matrices of {A.dtype}, got {brief(M)}")
    if (M.rows != rows).any() or (M.columns != columns).any():
        raise ValueError(f"{name}: expected {label} of the sizes that A asks for, got {brief(M)} for {A!r}")
