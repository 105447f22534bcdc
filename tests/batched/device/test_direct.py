"""A launch laid out once gives the driver what CuPy gives it: the same arguments, bit by bit, grid and stream."""

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
        words = [a if isinstance(a, np.generic) else np.int64(a.data.ptr) for a in arguments]
        self.launches.append(((*grid, 1, 1), (*block, 1, 1), shared_mem, [word.tobytes() for word in words]))


@pytest.fixture
def driver(monkeypatch):
    """What the driver was asked for, read from where the addresses of arguments lie; `sizes` of them in bytes."""
    import cupy

    from h2gpu.batched.device import direct

    calls = SimpleNamespace(sizes=(), launches=[])

    def launch(function, *rest):
        *size, shared, stream, places, extra = rest
        assert (function, extra, stream) == (Function.kernel.ptr, 0, cupy.cuda.get_current_stream().ptr)
        at = (ctypes.c_void_p * len(calls.sizes)).from_address(places)
        arguments = [ctypes.string_at(place, count) for place, count in zip(at, calls.sizes)]
        calls.launches.append((tuple(size[:3]), tuple(size[3:]), shared, arguments))

    monkeypatch.setattr(cupy.cuda, "driver", SimpleNamespace(launchKernel=launch), raising=False)
    monkeypatch.setattr(direct, "_devices", direct._Devices())
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
        before = list(function.launches)
        if keep:
            launches[0].again()
            assert function.launches == [*before, before[-1]] and len(launches) == 1


@pytest.mark.parametrize("options", [{"blocks": 0}, {"numbers": (np.zeros(1, [("words", "i8", 3)])[0],)}])
def test_what_the_driver_cannot_take_so_goes_through_cupy(options, driver):
    """No blocks at all; a struct larger than any number."""
    function, (A, B) = Function(), arrays(np.float32)
    work = prepared(function, np.float32, **options)
    assert [work(A, B).shape for _ in range(2)] == [(2, 3)] * 2
    assert len(function.launches) == 2 * bool(options.get("blocks", 1)) and not driver.launches
