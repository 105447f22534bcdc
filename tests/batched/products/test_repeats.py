"""Doors that remember calls: what differs in anything that counts is checked, what does not gives the same bits."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from h2gpu import arrays, batched
from h2gpu.arrays import to_host
from h2gpu.batched.core import dispatch
from h2gpu.batched.device import tuning


class Elsewhere(np.ndarray):
    """Arrays of a device that a test chooses, in the place of CuPy's."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def placed(values, beyond=0):
    """On that device, `beyond` bytes after a multiple of 16."""
    values = np.asarray(values)
    memory = np.zeros(values.nbytes + 32, np.uint8)
    first = -memory.ctypes.data % 16 + beyond
    array = memory[first : first + values.nbytes].view(values.dtype).reshape(values.shape).view(Elsewhere)
    array[...] = values
    return array


@pytest.fixture
def door(monkeypatch):
    """A repeated door that counts its checks, and says on which device it is."""
    room = SimpleNamespace(checks=0, device=0, planned=[])

    def total(A, B=None, factor=1.0, flag=False):
        room.checks += 1
        if A.ndim != 2:
            raise ValueError(f"total: expected a matrix, got shape {A.shape}")
        return factor * A.sum() + (0 if B is None else B.sum())

    def again(A, B, factor, flag):
        room.planned.append((A.shape, A.dtype, factor, flag))
        return lambda A, *B: factor * A.sum() + sum(b.sum() for b in B)

    total.__module__ = "room_of_test"
    monkeypatch.setitem(sys.modules, "room_of_test.repeats", SimpleNamespace(total=again))
    device = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDevice=lambda: room.device)))
    monkeypatch.setitem(arrays._modules, Elsewhere, device)
    room.total = dispatch.repeated(total)
    return room


def test_a_call_like_an_earlier_one_goes_without_checks(door):
    A, B = placed(np.eye(3)), placed(np.ones((2, 2)))
    assert [door.total(A, B, 2.0) for _ in range(3)] == [10.0] * 3
    assert door.total(placed(3 * np.eye(3)), B, factor=2.0) == 22.0  # by name: another call
    assert (door.checks, len(door.planned)) == (2, 2)


@pytest.mark.parametrize("other", [
    lambda A, *rest: (placed(A.astype(np.float32)), *rest), lambda A, *rest: (placed(A[:3]), *rest),
    lambda A, *rest: (placed(A.view(np.int64)), *rest), lambda A, *rest: (turned(A), *rest),
    lambda A, *rest: (placed(A, 8), *rest), lambda A, B, *rest: (A, A, *rest),
    lambda A, B, factor, flag: (A, B, 2.0, flag), lambda A, B, factor, flag: (A, B, 1, flag),
    lambda A, B, factor, flag: (A, B, -1.0, flag), lambda A, B, factor, flag: (A, B, factor, True),
    lambda A, B, factor, flag: (A, B, np.float64(1.0), flag), lambda A, B, factor, flag: (A, B, factor),
])  # fmt: skip
def test_what_differs_is_checked(door, other):
    """dtype, shape, strides, place, further arrays, values and types of numbers: each alone."""
    first = placed(np.arange(16.0).reshape(4, 4)), None, 1.0, False
    for arguments in (first, other(*first)):
        expected = dispatch.inspect.unwrap(door.total)(*arguments)
        before = door.checks
        assert door.total(*arguments) == expected and door.checks == before + 1


def turned(A):
    """The same entries, columns behind one another."""
    return placed(A.T).T


def test_arrays_with_gaps_are_checked_each_time(door):
    for _ in range(3):
        door.total(turned(placed(np.eye(3))))
    assert door.checks == 3 and not door.planned


def test_zeros_of_both_signs_differ(door):
    A = placed(np.eye(2))
    for zero in (0.0, -0.0, 0.0, -0.0):
        door.total(A, None, zero)
    assert np.copysign(1, [factor for *_, factor, _ in door.planned]).tolist() == [1, -1]


def test_another_device_has_calls_of_its_own(door):
    A = placed(np.eye(2))
    for device, checks in ((0, 1), (1, 2), (0, 2), (1, 2)):
        door.device = device
        door.total(A)
        assert door.checks == checks


def test_what_fails_is_not_remembered(door):
    for _ in range(2):
        with pytest.raises(ValueError, match=r"expected a matrix, got shape \(3,\)"):
            door.total(placed(np.ones(3)))
    assert door.checks == 2 and not door.planned


def test_a_forked_child_remembers_nothing(door):
    """Its parent's device is lost: arrays are unknown again, and the door's own check comes first."""
    A = placed(np.eye(2))
    door.total(A)
    del arrays._modules[Elsewhere]
    door.total(A)
    assert door.checks == 2


def test_no_more_than_so_many_calls_are_remembered(door, monkeypatch):
    monkeypatch.setattr(dispatch, "CALLS", 2)
    for size in (1, 2, 3, 3, 1):
        door.total(placed(np.eye(size)))
    assert door.checks == 4  # the third began anew
    door.total.cache_clear()
    door.total(placed(np.eye(1)))
    assert door.checks == 5


def test_arrays_of_the_host_are_not_remembered(door):
    assert [door.total(np.eye(2)) for _ in range(2)] == [2.0, 2.0] and door.checks == 2 and not door.planned


CASES = {
    "gemm": [((5, 7, 3), (5, 3, 4)), ((2, 3, 4, 4), (2, 3, 4, 4)), ((6, 33, 33), (6, 33, 33)), ((3, 2, 2), (2, 2))],
    "gemv": [((5, 7, 3), (5, 3)), ((2, 3, 4, 8), (2, 3, 8)), ((2, 150, 130), (2, 130))],
    "symv": [((5, 7, 7), (5, 7)), ((2, 3, 4, 4), (2, 3, 4)), ((2, 130, 130), (2, 130))],
    "syrk": [((5, 7, 3),), ((2, 3, 4, 4),), ((2, 90, 90),)],
    "axpy": [((5, 7, 3), (5, 7, 3)), ((2, 3, 4, 4), (2, 3, 4, 4)), ((9, 3), (9, 3))],
    "trsm": [((5, 7, 7), (5, 7, 3)), ((2, 3, 4, 4), (2, 3, 4, 1)), ((3, 40, 40), (3, 40, 40))],
    "cholesky_solve": [((5, 7, 7), (5, 7)), ((2, 3, 4, 4), (2, 3, 4, 5)), ((3, 40, 40), (3, 40, 40))],
    "frobenius_norms": [((5, 7, 3),), ((2, 3, 4, 4),), ((9, 3),)],
}
OPTIONS = {
    "gemm": [{}, {"alpha": -0.5}, {"beta": 2.0}],
    "gemv": [{}, {"alpha": 3}, {"beta": 2.0}],
    "symv": [{}, {"lower": False, "alpha": 0.5}, {"beta": 2.0}],
    "syrk": [{}, {"trans": True}, {"lower": False, "alpha": -2.0}],
    "axpy": [{}, {"alpha": -0.0}, {"alpha": 2}],
    "trsm": [{}, {"alpha": -0.5, "lower": False}, {"trans": True, "unit": True}],
    "cholesky_solve": [{}],
    "frobenius_norms": [{}],
}
CALLS = [(name, shapes, options) for name in CASES for shapes in CASES[name] for options in OPTIONS[name]]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, shapes, options", CALLS)
def test_the_same_call_gives_the_same_bits(name, shapes, options, dtype):
    """As the first time, and as on the CPU up to rounding; other numbers of the same shape are other results."""
    import cupy

    door, rng = getattr(batched, name), np.random.default_rng(0)
    numbers = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    if name in ("trsm", "cholesky_solve"):  # well conditioned
        numbers[0] = numbers[0] / shapes[0][-1] + 2 * np.eye(shapes[0][-1], dtype=dtype)
    given = [cupy.asarray(a) for a in numbers]
    door.cache_clear()
    first, second = (to_host(door(*given, **options)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    given[0] *= 2
    third, right = to_host(door(*given, **options)), door(2 * numbers[0], *numbers[1:], **options)
    assert third.shape == right.shape and third.dtype == right.dtype
    np.testing.assert_allclose(third, right, rtol=0, atol=200 * np.finfo(dtype).eps * abs(right).max())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("b_shape", [(5, 7), (5, 7, 1), (5, 7, 3), (3, 40), (3, 40, 40)])
def test_solutions_from_factors_are_the_same_at_every_call(b_shape, dtype):
    """Other pivots and factors of the same shape are other solutions; pivots of 64 bits are taken too."""
    import cupy

    rng, order = np.random.default_rng(3), b_shape[1]
    A, b = rng.standard_normal((b_shape[0], order, order)).astype(dtype), rng.standard_normal(b_shape).astype(dtype)
    sides, close = b.reshape(*b_shape[:2], -1).astype(float), 2e4 * np.finfo(dtype).eps
    for matrices in (A, A, A[:, ::-1].copy(), A):
        LU, piv = batched.lu_factor(cupy.asarray(matrices))
        right = np.linalg.solve(matrices.astype(float), sides).reshape(b_shape)
        for pivots in (piv, piv.astype(np.int64), piv):
            found = to_host(batched.lu_solve((LU, pivots), cupy.asarray(b)))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, right, rtol=0, atol=close * abs(right).max())
        inverse = to_host(batched.inv(cupy.asarray(matrices)))
        right = np.linalg.inv(matrices.astype(float))
        np.testing.assert_allclose(inverse, right, rtol=0, atol=close * abs(right).max())


@pytest.mark.gpu
def test_turned_factors_are_remembered_as_such():
    import cupy

    rng = np.random.default_rng(1)
    for transa in (False, True):
        for transb in (False, True):
            A = rng.standard_normal((4, 6, 5) if transa else (4, 5, 6))
            B = rng.standard_normal((4, 7, 6) if transb else (4, 6, 7))
            right = batched.gemm(A, B, transa=transa, transb=transb)
            for _ in range(3):
                found = batched.gemm(cupy.asarray(A), cupy.asarray(B), transa=transa, transb=transb)
                np.testing.assert_allclose(to_host(found), right, atol=1e-13)


@pytest.mark.gpu
def test_a_remembered_call_checks_what_is_new():
    """Arrays with gaps, of other precisions, sizes and places are read as they are, or refused as ever."""
    import cupy

    A = np.random.default_rng(2).standard_normal((4, 6, 6))
    at, longer = cupy.asarray(A), cupy.asarray(np.concatenate([A, A], axis=2))
    for _ in range(2):
        batched.gemm(at, at)
    turned = at.swapaxes(1, 2)
    np.testing.assert_allclose(to_host(batched.gemm(turned, at)), A.swapaxes(1, 2) @ A, atol=1e-13)
    np.testing.assert_allclose(
        to_host(batched.gemm(longer[:, :, 1:7], at)), np.dstack([A, A])[:, :, 1:7] @ A, atol=1e-13
    )
    with pytest.raises(ValueError, match="expected matching inner dimensions and precisions"):
        batched.gemm(at, at.astype(np.float32))
    with pytest.raises(ValueError, match="expected matching inner dimensions and precisions"):
        batched.gemm(at, cupy.asarray(A[:, :5]))


@pytest.mark.gpu
@pytest.mark.parametrize("name, arrays", [("gemm", "AA"), ("gemv", "Ax"), ("symv", "Ax"), ("axpy", "AA")])
def test_whole_numbers_are_turned_into_others_each_time(name, arrays):
    import cupy

    numbers = {"A": np.arange(18.0).reshape(2, 3, 3), "x": np.arange(6.0).reshape(2, 3)}
    door, (A, B) = getattr(batched, name), (numbers[letter] for letter in arrays)
    for _ in range(3):
        found = door(cupy.asarray(A), cupy.asarray(B.astype(np.int32)))
        np.testing.assert_allclose(to_host(found), door(A, B))


@pytest.mark.gpu
@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_the_vendors_products(dtype, transa, transb, blas):
    """Matrices by rows of a library that has them by columns, factors read by it where they are, and no sizes 0."""
    import cupy

    rng = np.random.default_rng(3)
    blas(dtype)
    for m, n, k in ((3, 4, 5), (1, 6, 1), (0, 2, 3), (2, 3, 0)):
        A, B, C = (rng.standard_normal((4, *shape)).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        right, given = A @ B, [A.swapaxes(1, 2) if transa else A, B.swapaxes(1, 2) if transb else B]
        given = [cupy.asarray(np.ascontiguousarray(M)) for M in given]
        for _ in range(2):
            found = batched.gemm(*given, transa=transa, transb=transb, method="vendor")
            np.testing.assert_allclose(to_host(found), right, atol=20 * np.finfo(dtype).eps)
        found = batched.gemm(*given, cupy.asarray(C), -0.5, 2.0, transa, transb, method="vendor")
        np.testing.assert_allclose(to_host(found), 2 * C - 0.5 * right, atol=20 * np.finfo(dtype).eps)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_vendors_transposed_product_with_a_vector(dtype, blas, monkeypatch):
    """Where the table says so, at the door and when a call is remembered; with y it is ours."""
    import cupy

    vendor = blas(dtype)
    rng, calls = np.random.default_rng(4), []
    A, x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 9, 6), (3, 9), (3, 6)))
    given, right = [cupy.asarray(M) for M in (A, x)], np.einsum("bij,bi->bj", A, x)
    call = vendor.Strided.__call__
    monkeypatch.setattr(vendor.Strided, "__call__", lambda self, *M: calls.append(self) or call(self, *M))
    batched.gemv(*given, trans=True)
    assert not calls
    with tuning.trial("gemv_t_way", method="vendor"):
        for count in (1, 2, 3):
            found = batched.gemv(*given, alpha=-0.5, trans=True)
            np.testing.assert_allclose(to_host(found), -0.5 * right, atol=20 * np.finfo(dtype).eps)
            assert len(calls) == count
        found = batched.gemv(*given, cupy.asarray(y), 1, 2, trans=True)
        np.testing.assert_allclose(to_host(found), right + 2 * y, atol=20 * np.finfo(dtype).eps)
        assert len(calls) == 3


@pytest.mark.gpu
def test_which_transposed_products_are_the_vendors(blas):
    """Those of the published table that it is ahead in, and no small, odd, complex or empty ones."""
    suits = blas(np.float64).suits_columns
    for batch, m, n in ((22369, 100, 30), (4096, 128, 128), (1024, 256, 256), (256, 512, 512)):
        assert suits(np.dtype(np.float64), batch, m, n) and not suits(np.dtype(np.float64), 10, m, n)
        assert not suits(np.dtype(np.float32), 2 * batch, m, n) and not suits(np.dtype(np.complex128), batch, m, n)
    for batch, m, n in (
        (262144, 16, 16),
        (22369, 30, 100),
        (16384, 64, 64),
        (15883, 65, 65),
        (4096, 128, 129),
        (0, 512, 512),
    ):
        assert not suits(np.dtype(np.float64), batch, m, n)
