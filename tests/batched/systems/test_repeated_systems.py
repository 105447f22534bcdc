"""lu_factor, cholesky, solve and inv called as once before: the same bits, and what fails is named every time."""

import numpy as np
import pytest

from h2gpu import batched
from h2gpu.arrays import to_host

SHAPES = (5, 7, 7), (2, 3, 4, 4), (3, 40, 40)


def matrices(shape, dtype):
    """Symmetric positive definite."""
    A = np.random.default_rng(0).standard_normal(shape)
    return (A @ A.swapaxes(-1, -2) / shape[-1] + 2 * np.eye(shape[-1])).astype(dtype)


DOORS = {
    "lu_factor": batched.lu_factor,
    "cholesky": batched.cholesky,
    "inv": batched.inv,
    "det": batched.det,
    "slogdet": batched.slogdet,
    "solve": lambda A: batched.solve(A, A[..., 0].copy()),
    "solve, three right": lambda A: batched.solve(A, A[..., :3].copy()),
}


def doors_of(name):
    return getattr(batched, name.partition(",")[0])


def parts(result):
    return [to_host(part) for part in (result if isinstance(result, tuple) else [result])]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DOORS)
def test_the_second_call_gives_what_the_first_gave(name, shape, dtype):
    import cupy

    A = matrices(shape, dtype)
    doors_of(name).cache_clear()
    given = cupy.asarray(A)
    first, second = parts(DOORS[name](given)), parts(DOORS[name](given))
    for a, b in zip(first, second):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    given *= 2
    for found, right in zip(parts(DOORS[name](given)), parts(DOORS[name](2 * A))):
        assert found.shape == right.shape and found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=0, atol=1e4 * np.finfo(dtype).eps * max(1, abs(right).max()))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name, reason", [
    ("lu_factor", "NaN or Inf"), ("cholesky", "not positive"), ("inv", "a zero pivot"), ("solve", "a zero pivot"),
])  # fmt: skip
def test_a_remembered_call_names_what_fails(name, reason, shape):
    import cupy

    given = cupy.asarray(matrices(shape, np.float64))
    for _ in range(2):
        DOORS[name](given)
    flat = given.reshape(-1, *shape[-2:])
    flat[1] = np.nan if name == "lu_factor" else 0
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=reason) as told:
            DOORS[name](given)
        assert "1" in str(told.value)
    flat[1] = flat[0]
    DOORS[name](given)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("door", [batched.lu_factor, batched.cholesky])
def test_info_of_a_remembered_call_is_the_callers(door, shape):
    import cupy

    A = matrices(shape, np.float64)
    A.reshape(-1, *shape[-2:])[1] = -np.inf
    for _ in range(3):
        info = to_host(door(cupy.asarray(A), return_info=True)[-1])
        assert (
            info.shape == shape[:-2]
            and info.dtype == np.int32
            and (info.ravel() < 0).tolist() == [b == 1 for b in range(info.size)]
        )


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", ["inv", "solve, three right"])
def test_factors_that_several_launches_solve_with(name, dtype, monkeypatch):
    """Beyond registers, and right-hand sides as many as trsm is for; a singular matrix is named once all is done."""
    import cupy

    from h2gpu.batched.systems import triangles

    monkeypatch.setattr(triangles, "MUCH", 1)
    A = matrices((2, 40, 40), np.float64) * dtype(1 + 1j if dtype is np.complex128 else 1)
    doors_of(name).cache_clear()
    given = cupy.asarray(A)
    first, second = to_host(DOORS[name](given)), to_host(DOORS[name](given))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(second, DOORS[name](A), rtol=0, atol=1e-10)
    given[1] = 0
    with pytest.raises(np.linalg.LinAlgError, match=r"a zero pivot in matrices 1$"):
        DOORS[name](given)
    doors_of(name).cache_clear()


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["matrix", "shared"])
@pytest.mark.parametrize("n", [7, 24])
def test_every_kernel_that_factors_alone_tells_the_host(n, method):
    import cupy

    A = matrices((3, n, n), np.float64)
    for _ in range(2):  # calls that raise are not remembered, nor is the first of a process
        batched.lu_factor(cupy.asarray(A), method)
    A[2, 0, 0] = np.inf
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=r"NaN or Inf in matrices 2$"):
            batched.lu_factor(cupy.asarray(A), method)
    A[2] = 0  # singular: no reason to refuse
    LU, _ = batched.lu_factor(cupy.asarray(A), method)
    assert not to_host(LU)[2].any()
