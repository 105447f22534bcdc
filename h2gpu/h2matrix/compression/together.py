"""Levels of a tree whose couplings are evaluated together: small ones cost the host of a GPU as much as large ones."""

import numpy as np

ROOMY = 1.25  # times the room of levels apart that they may take together,
SMALL = 8  # or one part in so many of the room there is


def levels_together(counts, sides, limit):
    """Slices of consecutive levels, each level in one.

    counts   (levels,) couplings of each
    sides    (2, levels) the largest rows and columns of each; there is as much room for a coupling as for the largest
    limit    entries for which there is room; a level that needs more is alone
    """
    apart, slices, first = counts * np.prod(sides, axis=0), [], 0
    for l in range(1, len(counts)):
        levels = slice(first, l + 1)
        room = counts[levels].sum() * np.prod(sides[:, levels].max(axis=1))
        if room > min(limit, max(ROOMY * apart[levels].sum(), limit / SMALL)):
            slices.append(slice(first, l))
            first = l
    return [*slices, slice(first, len(counts))]
