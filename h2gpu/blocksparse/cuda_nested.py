"""Products with nested matrices on the GPU: see h2gpu.blocksparse.nested.

One launch for the outer matrices and one for every step of the inner ones, which asks for its entries while the step
before ends.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.batched.device.chains import launch_behind
from h2gpu.blocksparse.panels import (
    PANEL_ENTRIES,
    STRIP,
    TILE_ROWS,
    PanelList,
    Product,
    cut_rows,
    numbered,
    panel_table,
    planned_here,
    sides_of,
)

MANY = 1024  # matrices of a step that keep the device busy in one piece each

UP, DOWN = Product(False, True), Product(True, False, add=True)


@dataclass(frozen=True)
class Plan:
    """Panels of the outer matrices, and of the inner ones of each step in the order of the work."""

    outer: PanelList
    inner: list


def up(N, x, c):
    """See Nested.up."""
    plan = planned_here(N, "up", lambda: _plan_up(N))
    for x_part, c_part in sides_of(x, c):
        UP(plan.outer, N.outer.buffer, x_part, c_part, start=launch_behind)
        for panels in plan.inner:
            UP(panels, N.inner.buffer, c_part, c_part, start=launch_behind)
    return c


def down_inner(N, c):
    """See Nested.down_inner."""
    plan = planned_here(N, "down", lambda: _plan_down(N))
    for c_part, _ in sides_of(c, c):
        for panels in plan.inner:
            DOWN(panels, N.inner.buffer, c_part, c_part, start=launch_behind)
    return c


def down_outer(N, c, y):
    """See Nested.down_outer."""
    plan = planned_here(N, "down", lambda: _plan_down(N))
    for c_part, y_part in sides_of(c, y):
        DOWN(plan.outer, N.outer.buffer, c_part, y_part, start=launch_behind)
    return y


def _plan_up(N):
    return _plan(N, _strips)


def _plan_down(N):
    plan = _plan(N, _row_runs)
    return Plan(plan.outer, plan.inner[::-1])


def _plan(N, panels):
    """The panels of the outer matrices and of each step, upwards, where there are any."""
    steps = [slice(a, b) for a, b in zip(N.bounds[:-1], N.bounds[1:])]
    tables = [panels(N.inner[s], N.inner_rows[s], N.inner_columns[s]) for s in steps]
    outer, *inner = PanelList.of(panels(N.outer, N.outer_rows, N.outer_columns), *filter(len, tables))
    return Plan(outer, inner)


def _strips(P, rows, columns):
    """Panels of Pᵀ v: strips of columns, narrower where there are few matrices."""
    most = STRIP if len(P) >= MANY else TILE_ROWS
    panel, strip = numbered(-(-P.columns // most))
    pitch, column = P.columns[panel], strip * most
    return panel_table(
        P.rows[panel],
        np.minimum(most, pitch - column),
        pitch=pitch,
        entry=P.offsets[panel] + column,
        z=rows[panel],
        backward=columns[panel] + column,
    )


def _row_runs(P, rows, columns):
    """Panels of P c: runs of rows, shorter where there are few matrices."""
    panel, first, count = cut_rows(P.rows, P.columns, PANEL_ENTRIES if len(P) >= MANY else 1)
    width = P.columns[panel]
    entry, target = P.offsets[panel] + first * width, rows[panel] + first
    return panel_table(count, width, entry=entry, x=columns[panel], forward=target)
