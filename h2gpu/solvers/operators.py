"""What all solvers ask of a matrix: `A @ X` for a block of vectors, square, and numbers that are numbers."""

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.copies import all_finite
from h2gpu.covariance.checks import checked
from h2gpu.texts import brief

LESS_ACCURATE = (
    "the matrix (or its preconditioner) is not positive definite to the accuracy it is kept in; build it with a "
    "smaller rtol (h2gpu.solvers.sufficient_rtol tells which), or add a nugget"
)


def check_square(A, name="A"):
    """The order n of a square operator; ValueError for others."""
    shape = getattr(A, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != shape[1] or not hasattr(A, "__matmul__"):
        raise ValueError(f"{name}: expected a square matrix with @, got {type(A).__name__} of shape {shape}")
    return shape[0]


def check_vectors(x, n, name="b"):
    """x as a floating-point array (n,) or (n, count) of finite numbers, where it lives; ValueError for others."""
    xp = array_module(x)
    x = xp.asarray(x)
    if x.ndim not in (1, 2) or x.shape[0] != n:
        raise ValueError(f"{name}: expected shape ({n},) or ({n}, count), got {x.shape}; one row a site")
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{name}: expected real numbers, got {x.dtype}; solve for real and imaginary parts")
    x = x.astype(np.float32 if x.dtype == np.float32 else np.float64, copy=False)
    if not all_finite(x):
        bad = ~xp.isfinite(x.reshape(n, -1)).all(axis=1)
        raise ValueError(
            f"{name}: expected finite numbers, got NaN or infinity in {int(bad.sum())} rows, first in row "
            f"{int(bad.argmax())}; drop those sites"
        )
    return x


def shifted(A, nugget):
    """x → (A + nugget I) x."""
    nugget = check_nugget(nugget)

    def apply(x):
        y = A @ x
        return y + nugget * x if nugget else y

    return apply


def check_nugget(nugget):
    """The nugget as a float; ValueError unless it is a finite number ≥ 0."""
    return checked("nugget", nugget, zero=True)


def check_nuggets(nugget, n):
    """The nuggets of n sites, (n,) on the host, from one number or one a site; ValueError for others."""
    if np.ndim(nugget) == 0:
        return np.full(n, check_nugget(nugget))
    nugget = np.asarray(nugget, np.float64)
    if nugget.shape != (n,) or not (np.isfinite(nugget) & (nugget >= 0)).all():
        raise ValueError(f"nugget: expected one finite number ≥ 0, or {n} of them, one a site, got {brief(nugget, 60)}")
    return nugget


def check_preconditioner(preconditioner, n):
    """ValueError unless it is None or a square matrix of order n with @."""
    if preconditioner is not None and check_square(preconditioner, "preconditioner") != n:
        raise ValueError(
            f"preconditioner: expected shape {(n, n)} as the matrix has, got {preconditioner.shape}; "
            "make it from the same points"
        )


def module_of(*operators):
    """The array module of the vectors that these matrices take."""
    arrays = [A.row_basis.leaf.buffer if hasattr(A, "row_basis") else getattr(A, "data", None) for A in operators]
    return array_module(*operators, *arrays)


def column_dots(X, Y):
    """x_jᵀ y_j of the columns, (count,)."""
    xp = array_module(X)
    if X.shape[1] == 1 and xp is not np:  # as conjugate gradients ask: one call of BLAS in place of an einsum's several
        return xp.dot(X[:, 0], Y[:, 0]).reshape(1)
    return xp.einsum("ij,ij->j", X, Y)


def column_norms(X):
    """‖x_j‖₂ of the columns, (count,) on the host."""
    return np.sqrt(to_host(column_dots(X, X)))
