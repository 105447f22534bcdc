"""Ranks that are threads of one process: the protocol of communicators, for fast tests of what stands on it."""

import contextvars
import queue
import threading

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.distributed.communicators import communicator
from h2gpu.distributed.communicators.communicator import Communicator

communicator.BRIEF = 0.0  # threads that look again and again keep the interpreter from those that work


def finished(array):
    """Wait until what the current stream was given is done, with an array of a device."""
    xp = array_module(array)
    if xp is not np:
        xp.cuda.get_current_stream().synchronize()


def settled(array):
    """A copy that is done: another thread reads it on another stream."""
    copy = array.copy()
    finished(copy)
    return copy


class Threads(Communicator):
    """One of `size` threads; arrays are copied into mailboxes."""

    def __init__(self, rank, boxes, alarms, limit, xp):
        super().__init__(rank, len(alarms), xp, limit)
        self._boxes, self._alarms = boxes, alarms

    def _start(self, sends, receives, name):
        for q, array in sends.items():
            self._boxes[self.rank, q].put(settled(array))
        waiting = dict(receives)

        def done():
            for q in list(waiting):
                if not self._boxes[q, self.rank].empty():
                    array = self._boxes[q, self.rank].get()
                    assert (array.shape, array.dtype) == (waiting[q].shape, waiting[q].dtype), name
                    target = waiting.pop(q)
                    target[...] = array
                    finished(target)  # before the memory of `array` is the other stream's again
            return not waiting

        return lambda: self._until(done, name)

    def _gather(self, value, name):
        for q in range(self.size):
            self._boxes["gather", self.rank, q].put(value)
        found = {}

        def done():
            for q in range(self.size):
                if q not in found and not self._boxes["gather", q, self.rank].empty():
                    found[q] = self._boxes["gather", q, self.rank].get()
            return len(found) == self.size

        self._until(done, name)
        return [found[q] for q in range(self.size)]

    def _start_sum(self, values, name):
        total = sum(self._gather(settled(values), name), start=array_module(values).zeros_like(values))
        finished(total)
        return lambda: total

    def _tell(self, failure):
        for q, alarm in enumerate(self._alarms):
            if q != self.rank:
                alarm.put(failure)

    def _heard(self):
        return None if self._alarms[self.rank].empty() else self._alarms[self.rank].get()


def on_ranks(size, work, limit=20.0, xp=np):
    """The results of work(comm) of all ranks; the exceptions of those that raise. xp: where their numbers are."""
    pairs = [(p, q) for p in range(size) for q in range(size)]
    boxes = {key: queue.SimpleQueue() for pair in pairs for key in (pair, ("gather", *pair))}
    alarms, results = [queue.SimpleQueue() for _ in range(size)], [None] * size

    def run(rank):
        try:
            results[rank] = work(Threads(rank, boxes, alarms, limit, xp))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(run, r)) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def all_of(size, work, **rest):
    """The same, raising the first exception."""
    results = on_ranks(size, work, **rest)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
