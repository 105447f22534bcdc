"""What `tune` tries for products compiled for their size; fixed_gemm.csv has a row for each size that was measured.

Of the plans that products/fixed_plans.py counts, those come first that are fast by its model and unlike those
before them: the model is 5 % off, at single sizes more, and neighbours of one plan are all as far off as it is.
"""

from functools import cache
from itertools import zip_longest

import numpy as np

from h2gpu.apps.benchmarks.cases import gemm_sizes
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import source_folder
from h2gpu.batched.products import fixed_plans
from h2gpu.batched.products.fixed_layout import BY_LANES, BY_TENSOR

ROUTINE = "fixed_gemm"
KNOBS = {ROUTINE: fixed_plans.KNOBS}
DTYPES = "float64", "float32"
UNMEASURED = {"rate": "0", "unit": "GFLOP/s", "device": "", "date": ""}
LIKE = 0.3  # of its clocks that a plan shall save to come before one that differs in everything
WEIGHTS = 0.6, 0.15, 0.15, 0.1  # of tiles, slab, blocks of a multiprocessor, the rest in that
EITHER = range(13, 65)  # sizes of float32 that both pipes may multiply
MOST, LOOKED_AT = 24, 150  # plans of a size that are tried at all; of a kernel's, the fastest


def rows(own):
    """The table of a device's folder, and for all other sizes the model's plan, with a rate of 0."""
    there = (source_folder() / "tuning" / own / f"{ROUTINE}.csv").is_file()
    found = {(row["dtype"], row["size"]): row for row in (tuning.rows(ROUTINE, own) if there else [])}
    sizes = [(dtype, str(n)) for dtype in DTYPES for n in range(1, fixed_plans.LARGEST + 1)]
    return [found.get(key) or _unmeasured(*key) for key in sizes]


def measured(rows):
    """Those rows whose rate is known."""
    return [row for row in rows if row["rate"] != "0"]


def _unmeasured(dtype, size):
    n = int(size)
    plan = fixed_plans.plan(np.dtype(dtype), n, n, n, False, False)
    knobs = {knob: str(value) for knob, value in plan.knobs(dtype, n).items()}
    return {"dtype": dtype, "size": size, **knobs, **UNMEASURED}


def _space(row, hardware):
    n, dtype = int(row["size"]), np.dtype(row["dtype"])
    for plan in unlike(dtype, n):
        if plan.shared <= hardware.shared_bytes and plan.threads(n) <= hardware.threads:
            yield plan.knobs(dtype, n)


@cache
def unlike(dtype, n):
    """MOST plans of n × n × n; every beginning of the list has fast ones of all kernels, unlike each other."""
    sizes = n, n, n, False, False
    first, *others = (_spread(family[:LOOKED_AT], dtype, n) for family in fixed_plans.families(dtype, *sizes))
    if dtype == np.float32 and n in EITHER:
        method = BY_LANES if first[0].method == BY_TENSOR else BY_TENSOR
        others.append(_spread(fixed_plans.families(dtype, *sizes, method)[0], dtype, n))
    rounds = zip_longest(first[::2], first[1::2], *others)
    return list(dict.fromkeys(plan for plans in rounds for plan in plans if plan))[:MOST]


def _spread(family, dtype, n):
    """Of (clocks, plan) of a kernel, the fastest first: MOST plans, each the best by its clocks and how new it is."""
    best, like, found = max(family[0][0], 1), [0.0] * len(family), []
    known = [_parts(plan.knobs(dtype, n)) for _, plan in family]
    while len(found) < min(MOST, len(family)):
        costs = [clocks / best + LIKE * alike for (clocks, _), alike in zip(family, like)]
        chosen = min((i for i in range(len(family)) if family[i][1] not in found), key=costs.__getitem__)
        found.append(family[chosen][1])
        like = [max(was, _likeness(parts, known[chosen])) for was, parts in zip(like, known)]
    return found


def _parts(knobs):
    """What makes plans unlike: first the warps' tiles."""
    tiles = knobs["band"], knobs["warp_rows"], knobs["warp_columns"]
    return tiles, knobs["slab"], knobs["resident"], (knobs["group"], knobs["stages"])


def _likeness(some, others):
    """From 0 to 1."""
    return sum(weight * (a == b) for weight, a, b in zip(WEIGHTS, some, others))


def _problems(dtype, size, free):
    return [case for case in gemm_sizes(dtype) if case.shape[0] == size["size"]]


SPACES, PROBLEMS = {ROUTINE: _space}, {ROUTINE: _problems}
