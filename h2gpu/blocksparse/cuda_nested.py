"""Products with nested matrices on the GPU: see h2gpu.blocksparse.nested.

One launch for the outer matrices, one for every step of many inner ones, and one for all steps of few that follow one
another: by themselves they take as long as a launch does, a panel less than it takes to wait for its turn.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

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
FEW = 1024  # matrices of steps that are made by one launch, below so many each

UP, DOWN = Product(False, True), Product(True, False, add=True)


@dataclass(frozen=True)
class Plan:
    """Panels of the outer matrices, and of the inner ones, a list for each launch, in the order of the work."""

    outer: PanelList
    inner: list


def up(N, x, c):
    """See Nested.up."""
    plan = planned_here(N, "up", lambda: _plan_up(N))
    for x_part, c_part in sides_of(x, c):
        UP(plan.outer, N.outer.buffer, x_part, c_part)
        for panels in plan.inner:
            UP(panels, N.inner.buffer, c_part, c_part)
    return c


def down(N, c, y):
    """See Nested.down."""
    plan = planned_here(N, "down", lambda: _plan_down(N))
    for c_part, y_part in sides_of(c, y):
        for panels in plan.inner:
            DOWN(panels, N.inner.buffer, c_part, c_part)
        DOWN(plan.outer, N.outer.buffer, c_part, y_part)
    return y


def _plan_up(N):
    return _plan(N, _strips, 1)


def _plan_down(N):
    return _plan(N, _row_runs, -1)


def _plan(N, panels, way):
    """The panels of the outer matrices and of the steps, upwards or, with −1, downwards, where there are any."""
    steps = [slice(a, b) for a, b in zip(N.bounds[:-1], N.bounds[1:])][::way]
    tables = [panels(N.inner[s], N.inner_rows[s], N.inner_columns[s]) for s in steps]
    some = [(table, s.stop - s.start >= FEW) for table, s in zip(tables, steps) if len(table)]
    inner = []
    for many, group in groupby(some, lambda step: step[1]):
        group = [table for table, _ in group]
        inner += [PanelList.of(table) for table in group] if many else [PanelList.of_steps(group)]
    return Plan(PanelList.of(panels(N.outer, N.outer_rows, N.outer_columns)), inner)


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
