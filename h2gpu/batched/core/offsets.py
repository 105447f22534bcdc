"""Where pieces of differing sizes begin in one buffer, and the order of numbers of pieces."""

import numpy as np

from h2gpu.arrays import array_module


def offsets_of(sizes):
    """Where each of consecutive pieces begins, and the end of the last: (batch + 1,), where the sizes are."""
    xp = array_module(sizes)
    first = xp.zeros(len(sizes) + 1, np.int64)
    if xp is np:
        np.add.accumulate(sizes, out=first[1:])  # half the time of cumsum for few
    else:
        xp.cumsum(sizes, out=first[1:])
    return first


def runs_of(numbers):
    """Where each run of equal numbers begins, and the end of the last: (runs + 1,)."""
    if not len(numbers):
        return np.zeros(1, np.int64)
    return np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1], [True]]))


def sums_of_runs(values, runs):
    """Sum of the values of each of `runs_of`, (runs,)."""
    return np.add.reduceat(values, runs[:-1]) if len(runs) > 1 else values[:0]


def rounded_up(count):
    """The next number of four binary digits and zeros: at most an eighth more."""
    step = 1 << max(0, count.bit_length() - 4)
    return -(-count // step) * step


def ranges(starts, counts):
    """The concatenation of arange(starts[b], starts[b] + counts[b]) over b, without a loop."""
    counts = np.asarray(counts, dtype=np.int64)
    firsts = offsets_of(counts)[:-1]
    return np.arange(counts.sum()) + np.repeat(np.asarray(starts) - firsts, counts)


def consecutive(index):
    """Ascending indices as a slice where none is left out."""
    return slice(index[0], index[-1] + 1) if len(index) and index[-1] - index[0] == len(index) - 1 else index


def stable_order(numbers):
    """Indices in ascending order of whole numbers ≥ 0, equals by index.

    16 bits at a time, which NumPy sorts by counting: 280,000 of 15 bits take a fifth of the time of 64 bits.
    """
    order, shift = np.argsort(numbers.astype(np.uint16), kind="stable"), 16
    while int(numbers.max(initial=0)) >> shift:
        order = order.take(np.argsort((numbers >> shift).astype(np.uint16).take(order), kind="stable"))
        shift += 16
    return order
