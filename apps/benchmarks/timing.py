"""Times on the device: medians of CUDA events, over inputs that no cache holds, with and without the host's share.

Small kernels are over before the host has asked for the next one. Calls are therefore queued behind a kernel that only
waits (kernels/studies/hold.cuh): the device then finds all its work ready, and events tell the device's time alone.
Routines that read something back in between keep the host's share, whatever is done.
"""

import statistics
import time
from multiprocessing import get_context

import numpy as np

from h2gpu.apps.command.command import FailureError
from h2gpu.apps.command.devices import CudaDevice

CACHE_BYTES = 128 << 20  # inputs in rotation hold at least so much; the L2 of an H200 is 50 MiB
COPIES = 128  # in rotation at most
REPEATS = 5
SPAN_MS, CALLS = 3, (3, 100)  # of one measurement, at least, and calls in it
QUEUED_MS = 5  # calls that take longer hide the host's share by themselves
ONCE_MS = 300  # calls that take longer are timed once
FIRST_HOLD_NS, LONGEST_HOLD_NS = 1_000_000, 64_000_000
LATE = 2  # longest holds that may end before all calls are queued, then none is asked for
PATIENCE = 4  # times the calls' own time: a longer hold that they do not end behind, they never will


def gpu_name():
    """What the current GPU calls itself. Raises FailureError where there is none."""
    try:
        return CudaDevice().name
    except FailureError as error:
        reason = str(error).removeprefix("--device cuda: ").partition(";")[0]
        raise FailureError(f"{reason}; this command measures a GPU") from None


def device_ms(work, inputs, repeats=REPEATS):
    """Median milliseconds of work(input) on the device, inputs taken in turn; `work` returns before it is done."""
    work(inputs[0])  # compiles
    once, _ = _span(work, inputs, 1)
    if once > QUEUED_MS:
        return once if once > ONCE_MS else statistics.median([once] + [_span(work, inputs, 1)[0] for _ in range(2)])
    calls, held = _calls(once, inputs), FIRST_HOLD_NS
    longest, late = min(LONGEST_HOLD_NS, PATIENCE * calls * once * 1e6), 0
    while not _span(work, inputs, calls, held)[1]:
        late += held >= longest  # once may be a pause of the host: one made a GEMV of 12 µs take 57
        if late == LATE:  # the calls wait themselves: a hold would only let the device cool down
            held = FIRST_HOLD_NS
            break
        held = held if late else 4 * held
    spans = [_span(work, inputs, calls, held) for _ in range(repeats)]
    return statistics.median([ms for ms, ahead in spans if ahead] or [ms for ms, _ in spans])


def call_ms(work, inputs, repeats=REPEATS):
    """The same with what the host adds: calls one after the other, by the clock on the wall."""
    work(inputs[0])
    once = _wall(work, inputs, 1)
    if once > ONCE_MS:
        return once
    return statistics.median(
        _wall(work, inputs, _calls(once, inputs)) for _ in range(repeats if once < QUEUED_MS else 2)
    )


def hold(nanoseconds):
    """Keep the current stream busy."""
    from h2gpu.batched.device.compiler import kernel
    from h2gpu.batched.device.launch import launch

    launch(kernel("studies/hold.cuh", "hold"), 1, 1, (np.uint64(nanoseconds),))


def once_ms(work, one):
    """Milliseconds of a single call, by the clock on the wall."""
    return _wall(work, [one], 1)


def rotation(array, copy=None):
    """As many copies of an input as exceed the cache together, the input among them."""
    count = min(COPIES, -(-CACHE_BYTES // max(1, array.nbytes)))
    copy = copy or (lambda array: array.copy())
    return [array] + [copy(array) for _ in range(count - 1)]


def side_by_side(work, items, processes):
    """work(item) for all items in so many processes: what they compile is then on disk for all. Errors are left out."""
    if processes > 1 and items:
        with get_context("spawn").Pool(min(processes, len(items))) as pool:
            for _ in pool.imap_unordered(_Attempt(work), items):
                pass


class _Attempt:
    """A call whose error is somebody else's to report."""

    def __init__(self, work):
        self.work = work

    def __call__(self, item):
        try:
            self.work(item)
        except Exception:  # will come again where it can be told
            return False
        return True


def _calls(once, inputs):
    """Calls of one measurement: all inputs once, and SPAN_MS of work."""
    least, most = CALLS
    wanted = max(len(inputs) if once * len(inputs) < SPAN_MS else 0, SPAN_MS / max(once, 1e-3))
    return int(min(most, max(least, wanted)))


def _wall(work, inputs, calls):
    """Milliseconds a call from the first to the end of the last."""
    import cupy

    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    for i in range(calls):
        work(inputs[i % len(inputs)])
    cupy.cuda.Device().synchronize()
    return 1e3 * (time.perf_counter() - begin) / calls


def _span(work, inputs, calls, held=0):
    """Milliseconds a call between two events, and whether the device was still held when all calls were queued."""
    import cupy

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    if held:
        hold(held)
    start.record()
    for i in range(calls):
        work(inputs[i % len(inputs)])
    ahead = not start.done
    stop.record()
    stop.synchronize()
    return cupy.cuda.get_elapsed_time(start, stop) / calls, ahead
