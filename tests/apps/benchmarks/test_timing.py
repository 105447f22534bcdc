"""Times of the device: a pause of the host does not become the device's time."""

import pytest

from h2gpu.apps.benchmarks import timing

DEVICE_MS, HOST_MS = 0.01, 0.05  # of a call


class Host:
    """Spans of calls by a host that asks for one every HOST_MS, and pauses at some of the spans."""

    def __init__(self, pauses, waits=False):
        self.pauses, self.waits, self.spans = set(pauses), waits, 0

    def span(self, work, inputs, calls, held=0):
        self.spans += 1
        asking = calls * HOST_MS + (1000 if self.spans in self.pauses else 0)
        ahead = held * 1e-6 > asking and not self.waits
        return max(DEVICE_MS, 0 if ahead else (asking - held * 1e-6) / calls, DEVICE_MS), ahead


@pytest.mark.parametrize("pauses", [(), (2,), (5,), (3, 4), (3, 4, 7)])
def test_pauses_do_not_count(pauses, monkeypatch):
    monkeypatch.setattr(timing, "_span", Host(pauses).span)
    assert timing.device_ms(lambda _: None, [None]) == DEVICE_MS


def test_calls_that_wait_are_timed_with_their_host(monkeypatch):
    host = Host((), waits=True)
    monkeypatch.setattr(timing, "_span", host.span)
    assert timing.device_ms(lambda _: None, [None]) >= HOST_MS * 0.6
    assert host.spans < 15


@pytest.mark.gpu
def test_a_stream_is_held_as_long_as_is_asked_for():
    cp = pytest.importorskip("cupy")
    timing.hold(1000)  # compiles
    start, stop = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    timing.hold(5_000_000)
    stop.record()
    stop.synchronize()
    assert cp.cuda.get_elapsed_time(start, stop) >= 5
