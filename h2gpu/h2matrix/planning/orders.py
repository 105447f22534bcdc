"""Which interpolation order on which level: least work for an accuracy.

    min Σ_l work_l(p_l)   where   Σ_l e_l(p_l)² ≤ wanted²   and   p_l ≥ p_{l−1} − 1

The few large clusters make most of the error, the many small ones most of the work. From the smallest orders on, the
level goes up that loses most error for the work it adds. Orders fall by one a level at most, as the theory assumes.

Reference: Börm, Löhndorf & Melenk (2005), Approximation of integral operators by variable-order interpolation,
Numerische Mathematik 99.
"""

import numpy as np

LARGEST_RANK = {1: 64, 2: 400, 3: 729}  # order^dim that may be tried; more is slower than dense blocks
LEAST_ORDER = 2
STEPS = 1, 2  # by which an order may go up: odd ones may gain nothing
FREE = 1 << 30
NEGLIGIBLE = 0.3  # of the wanted error: beyond it no order is larger than it must be (0.03: the same 100 plans)


def largest_order(dim):
    """The largest order that may be tried."""
    return int(max(LARGEST_RANK.get(dim, 729) ** (1 / dim) + 1e-9, LEAST_ORDER))


def sampled_orders(squared_errors, wanted, dim):
    """Squared errors (orders, levels) from LEAST_ORDER on, up to the order whose error is negligible on all levels.

    squared_errors   function of an order: (levels,)
    """
    rows = []
    for order in range(LEAST_ORDER, largest_order(dim) + 1):
        rows.append(squared_errors(order))
        if rows[-1].sum() <= (NEGLIGIBLE * wanted) ** 2:
            break
    return np.minimum.accumulate(rows, axis=0)  # no order is worse than a smaller one, whatever samples say


def cheapest_orders(errors, work, wanted):
    """Orders from the root on, a tuple, whose error is at most `wanted`; None where the largest ones miss it.

    errors   (orders, levels) squared errors, of orders from LEAST_ORDER on, falling
    work     (orders, levels), rising
    """
    most, levels = errors.shape
    if errors[-1].sum() > wanted**2:
        return None
    tables, lifts = _Tables(errors, work), np.concatenate([_lifts(levels, step) for step in STEPS])
    chosen, raised = least_orders(errors, wanted**2), np.tile(np.arange(levels), len(STEPS))
    error, cost = tables.sums(chosen)
    while error > wanted**2:
        higher = np.maximum(chosen, chosen.take(raised)[:, None] + lifts)
        higher = higher.take(np.flatnonzero(higher.max(axis=1) < most), axis=0)
        left, costs = tables.sums(higher)
        best = np.argmax((error - left) / np.maximum(costs - cost, 1))
        chosen, error, cost = higher[best], left[best], costs[best]
    chosen = _lowered(chosen, tables, wanted**2)
    first = int(np.argmax(errors[0] > 0))  # above it are no samples, but there may be clusters that larger leaves of
    # another tree meet
    chosen[:first] = chosen[first]
    return tuple((chosen + LEAST_ORDER).tolist())


def least_orders(errors, allowed):
    """What all sufficient orders are at least (levels,): on its own no level may err by more, nor fall below what
    those above it need. Beginning there takes a fifth of the time."""
    deeper = np.arange(errors.shape[1]) - np.arange(errors.shape[1])[:, None]
    return np.where(deeper >= 0, np.argmax(errors <= allowed, axis=0)[:, None] - deeper, 0).max(axis=0)


class _Tables:
    """Errors and work (orders, levels), looked up for choices (…, levels): `take` of a flat table is soonest done."""

    def __init__(self, errors, work):
        self._tables, self._level = (errors.ravel(), work.ravel()), np.arange(errors.shape[1])

    def sums(self, chosen):
        """Sums over levels of the errors and of the work of choices."""
        cells = chosen * len(self._level) + self._level
        return [table.take(cells).sum(axis=-1) for table in self._tables]


def _lifts(levels, step):
    """What each level's order, and those that may follow it, are at least above its own when it goes up by so many.

    (levels, levels): an order falls by one a level at most, and those above it are free.
    """
    level = np.arange(levels)
    deeper = level - level[:, None]
    return np.where(deeper >= 0, step - deeper, -FREE)


def _lowered(chosen, tables, allowed):
    """Orders lowered one by one where that keeps the error: the last one raised is often more than was needed."""
    one = np.eye(len(chosen), dtype=np.int64)
    while True:
        may = chosen > 0
        may[1:] &= np.diff(chosen) >= 0  # one lower, it is one below the level above at most
        lower = chosen - one[may]
        errors, costs = tables.sums(lower)
        saved = np.where(errors <= allowed, tables.sums(chosen)[1] - costs, 0)
        if saved.max(initial=0) <= 0:
            return chosen
        chosen = lower[np.argmax(saved)]
