"""Squares of measures of blocks, as often as a block occurs in the matrix.

    ‖A‖_F² = Σ_b w_b ‖A_b‖_F²        w_b blocks for which a stored one stands

Sums are made where the blocks are, and come to the host together: a few numbers, where single squares of 2^20 sites are
5 MB that a GPU's host would weigh, add and compare while the GPU waits. Single ones come where they are asked for.
"""

from functools import cached_property

import numpy as np

from h2gpu import batched
from h2gpu.arrays import moved, to_host
from h2gpu.h2matrix.norms import alone, block_measures, multiplicities_of


class Squares:
    """w_b m_b² of a measure m_b of all blocks b: their sum `total`, and each of them.

    measured   (blocks,) m_b, where the blocks are
    alone      as `norms.alone` tells, on the host: w_b is `weight` of these, twice that of others
    """

    def __init__(self, measured, alone, weight):
        self.measured, self.alone, self.weight = measured, alone, weight
        self.total = None  # a float, once `squares_of` has read it

    def enqueued(self, xp):
        """The sum where the blocks are: nothing is waited for."""
        if xp is np:
            return self.each.sum()
        squares = xp.square(self.measured)
        total = squares.sum()
        if self.alone is not None:
            total = 2 * total - squares[moved(self.alone, xp)].sum() if len(self.alone) else 2 * total
        return self.weight * total

    @cached_property
    def each(self):
        """(blocks,) on the host."""
        often = self.weight * multiplicities_of(len(self.measured), self.alone)
        return often * to_host(self.measured) ** 2

    def of(self, chosen):
        """The sum of those that are chosen, (blocks,) bool."""
        return self.total if chosen.all() else self.each[chosen].sum()


def squares_of(asked, weights=(), others=(), meanwhile=None):
    """({name: Squares of some MEASURES of all blocks}, other numbers as floats); a GPU is waited for once.

    asked     {name: (blocks, measures)}
    weights   {name: what its squares are multiplied by besides}, where that is not 1
    others    numbers of the blocks' array module that are wanted on the host as well
    meanwhile called before the host waits
    """
    xp, found, weights = next(iter(asked.values()))[0].xp, {}, dict(weights)
    measures = {name: block_measures(A, *wanted) for name, (A, wanted) in asked.items()}  # enqueued, all
    for name, (A, _) in asked.items():
        once = alone(A)
        found[name] = [Squares(measured, once, weights.get(name, 1.0)) for measured in measures[name]]
    every = [squares for one in found.values() for squares in one]
    sums = [squares.enqueued(xp) for squares in every] + list(others)
    if meanwhile is not None:
        meanwhile()
    numbers = sums if xp is np else to_host(xp.stack(sums)).tolist()
    for squares, total in zip(every, numbers):
        squares.total = float(total)
    return found, [float(number) for number in numbers[len(every) :]]


def worst_rounding(basis):
    """The largest ‖U_t − float32(U_t)‖_F of a basis's leaves, where they are: nothing is waited for."""
    errors = batched.rounding_errors(basis.leaf)
    return errors.max() if len(errors) else errors.sum()
