"""Launches laid out once give the driver what CuPy gives it: the same arguments, bit by bit, grid and stream."""

import ctypes
import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.gpu


class Function:
    """A kernel of the driver's, and what CuPy was asked to launch it with."""

    kernel = SimpleNamespace(ptr=77)

    def __init__(self):
        self.launches = []

    def __call__(self, grid, block, arguments, shared_mem=0):
        words = [a if isinstance(a, (np.generic, np.ndarray)) else np.int64(a.data.ptr) for a in arguments]
        self.launches.append(((*grid, 1, 1), (*block, 1, 1), shared_mem, [word.tobytes() for word in words]))


@pytest.fixture
def driver(monkeypatch):
    """What the driver was asked for, read from where the addresses of arguments lie; `sizes` of them in bytes."""
    import cupy

    from h2gpu.batched.device.driver import thread

    calls = SimpleNamespace(sizes=(), launches=[])

    def launch(function, *rest):
        *size, shared, stream, places, extra = rest
        assert (function, extra, stream) == (Function.kernel.ptr, 0, cupy.cuda.get_current_stream().ptr)
        at = list((ctypes.c_void_p * len(calls.sizes)).from_address(places))
        assert all(place % 8 == 0 for place in at)
        arguments = [ctypes.string_at(place, count) for place, count in zip(at, calls.sizes)]
        calls.launches.append((tuple(size[:3]), tuple(size[3:]), shared, arguments))

    monkeypatch.setattr(cupy.cuda, "driver", SimpleNamespace(launchKernel=launch), raising=False)
    monkeypatch.setattr(thread, "layouts", {})
    return calls


NUMBERS = np.int64(2**40), 7, np.bool_(True), -3  # of a launch


def prepared(function, dtype, blocks=5, numbers=NUMBERS):
    from h2gpu.batched.device.direct import Direct
    from h2gpu.batched.device.launch import NULL, Ready

    one = np.dtype(dtype).type
    ready = Ready(function, blocks, 64, 1024, numbers)
    return Direct(ready, (2, 3), np.dtype(dtype), (None, NULL, None), (NULL, NULL), (one(1.5), one(-0.0)))


def arrays(dtype):
    import cupy

    return [cupy.asarray(np.ones(size, dtype)) for size in (4, 5)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_the_driver_gets_what_cupy_gives_it(dtype, driver):
    """But for the addresses of results, which are new each time."""
    function, (A, B) = Function(), arrays(dtype)
    work = prepared(function, dtype)
    results = [work(A, B)]
    driver.sizes = [len(word) for word in function.launches[0][-1]]
    results += [work(A, B), work(B, A)]
    assert len(function.launches) == 1 and len(driver.launches) == 2  # the first of a thread is CuPy's
    expected = function.launches[0]
    for given, result, (*how, words) in zip(((A, B), (B, A)), results[1:], driver.launches):
        addresses = [np.int64(M.data.ptr).tobytes() for M in (*given, result)]
        right = list(expected[-1])
        right[0], right[2], right[3] = addresses
        assert tuple(how) == expected[:-1] and words == right
        assert result.shape == (2, 3) and result.dtype == dtype


def test_the_first_launch_of_every_thread_is_cupys(driver):
    function, (A, B) = Function(), arrays(np.float32)
    work = prepared(function, np.float32)
    for count in (1, 2):
        thread = threading.Thread(target=lambda: [work(A, B) for _ in range(3)])
        thread.start()
        thread.join()
        assert (len(function.launches), len(driver.launches)) == (count, 2 * count)


def test_recorded_launches_are_cupys(driver):
    from h2gpu.batched.device.launch import recorded_launches

    function, (A, B) = Function(), arrays(np.float32)
    work = prepared(function, np.float32)
    work(A, B)
    with recorded_launches() as launches:
        work(A, B)
    assert len(launches) == 1 and launches[0].function is function and not driver.launches


def test_launches_that_were_kept_run_again(driver):
    from h2gpu.batched.device.launch import recorded_launches

    function, (A, B) = Function(), arrays(np.float32)
    work = prepared(function, np.float32)
    for keep in (True, False):
        with recorded_launches(keep) as launches:
            work(A, B)
        assert any(argument is A for argument in launches[0].arguments) == keep
        if keep:
            driver.sizes = [len(word) for word in function.launches[-1][-1]]
            launches[0].again()
            assert driver.launches == function.launches and len(launches) == 1


@pytest.mark.parametrize(("options", "launches"), [
    ({"blocks": 0}, (0, 0)), ({"numbers": (np.zeros(1, [("words", "i8", 3)])[0],)}, (1, 1)),
])  # fmt: skip
def test_what_is_not_laid_out_beforehand_is_launched_as_all_else(options, launches, driver):
    """No blocks at all; a struct larger than any number."""
    function, (A, B) = Function(), arrays(np.float32)
    work = prepared(function, np.float32, **options)
    driver.sizes = [8] * 5 + [24 if options.get("numbers") else 8] + [4] * 2
    assert [work(A, B).shape for _ in range(2)] == [(2, 3)] * 2
    assert (len(function.launches), len(driver.launches)) == launches


STRUCTS = np.array([(1, 2.5, 3)] * 2, [("a", "i4"), ("b", "f8"), ("c", "i2")])
ONE_OF_EACH = np.int64(-(2**40)), np.uint64(2**63), 7, -3, np.int32(-9), np.float64(0.1), np.float32(0.1), STRUCTS[0]
ONE_OF_EACH += np.bool_(True), np.complex64(1 - 2j), np.complex128(1 + 3j), np.int16(-4), np.bool_(False), STRUCTS[:1]


def test_any_launch_gives_the_driver_what_cupy_gives_it(driver):
    """Arrays or none, numbers of all types, structs; the first launch of a kernel in a thread is CuPy's."""
    from h2gpu.batched.device.launch import NULL, launch

    function, (A, B), expected = Function(), arrays(np.float64), Function()
    for first, second in ((A, NULL), (B, A), (NULL, B)):
        launch(function, 5, 64, (first, *ONE_OF_EACH, second, 4), 1024)
        plain = (np.int32(a) if type(a) is int else a for a in (first, *ONE_OF_EACH, second, 4))
        expected((5,), (64,), tuple(plain), 1024)
        driver.sizes = [len(word) for word in expected.launches[0][-1]]
    assert function.launches == expected.launches[:1] and driver.launches == expected.launches[1:]


def test_ints_that_are_none_in_c_are_refused(driver):
    from h2gpu.batched.device.launch import launch

    function = Function()
    for _ in range(2):
        with pytest.raises(OverflowError):
            launch(function, 1, 32, (2**31,))
        launch(function, 1, 32, (2**31 - 1,))
    assert len(function.launches) == len(driver.launches) == 1


@pytest.mark.parametrize("arguments", [[None, None], [0.5, 0.5], [3, np.int64(2**40)], [3, None]])
def test_arguments_that_are_cupys_business_stay_so(arguments, driver):
    """Nothing at all, numbers of Python's with a fraction, other types than at first."""
    from h2gpu.batched.device.launch import launch

    function, seen = Function(), []
    function.__class__ = type("Seeing", (Function,), {"__call__": lambda *asked, **_: seen.append(asked[3])})
    for argument in arguments:
        launch(function, 1, 32, (argument,))
    assert seen == [(argument,) for argument in arguments] and not driver.launches
