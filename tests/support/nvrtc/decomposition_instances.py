"""Instances of QR, of bidiagonal reductions, and of QR and SVD of complex matrices."""

from itertools import product

import numpy as np
from instance_sources import SHARED_LIMIT, constants

from h2gpu.batched.bidiagonal import plans as bidiagonal_plans
from h2gpu.batched.device import compiler

TURNED_SPILLS = 8  # of what finds singular values of a bidiagonal matrix


def bidiagonal_instances(dtype):
    """Reductions of squares and of tall matrices up to every limit of columns, and what finds their singular values."""
    limits = [8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 512, bidiagonal_plans.LARGEST]
    for n, times in product(limits, (1, 2, 6)):
        plan = bidiagonal_plans.plan(np.dtype(dtype).itemsize, times * n, n, SHARED_LIMIT)
        name = "bidiagonalize_large" if isinstance(plan, bidiagonal_plans.Rows) else "bidiagonalize"
        yield f"bidiagonal/{name}.cuh", compiler.expression(name, dtype, *plan), bidiagonal_plans.SPILL_BYTES
        for each in bidiagonal_plans.CLUSTERS if getattr(plan, "held", 0) and times == 1 else ():
            name = compiler.expression("bidiagonalize_cluster", dtype, *plan, each)
            yield "bidiagonal/bidiagonalize_large.cuh", name, bidiagonal_plans.SPILL_BYTES
    launched = constants("batched/svd/bidiagonal")
    for name, threads in (("bidiagonal_values", "VALUE_THREADS"), ("bidiagonal_svd", "TURN_THREADS")):
        for number in launched[threads]:
            yield f"bidiagonal/{name}.cuh", compiler.expression(name, dtype, number), TURNED_SPILLS


def complex_instances(dtype):
    """QR of complex matrices wherever they lie; SVD by every layout, and of large ones in device memory."""
    knobs = constants("batched/qr/complex_panels")
    for place in range(len(knobs["PLACES"])):
        name = compiler.expression("complex_qr", dtype, knobs["WIDTH"], place)
        yield "qr/complex_qr.cuh", name, knobs["SPILL_BYTES"][np.dtype(dtype).name]
    knobs = constants("batched/svd/complex_jacobi")
    for layout, inside in (*((layout, True) for layout in knobs["LAYOUTS"]), (knobs["LAYOUTS"][-1], False)):
        name = compiler.expression("complex_svd", dtype, *layout, inside)
        yield "svd/complex_svd.cuh", name, knobs["SPILL_BYTES"][np.dtype(dtype).name]


def tall_instance(row):
    """The instance of a row for R alone of tall matrices, by panels or by columns."""
    spills = int(row["spill_bytes"])
    if int(row["ways"]):
        tiles = int(row["max_columns"]) // constants("batched/qr/tall")["TILE"]
        knobs = int(row["strips"]), tiles, *(int(row[key]) for key in ("ways", "warps", "resident"))
        return "qr/blocked_chain.cuh", compiler.expression("blocked_chain", *knobs), spills
    knobs = (int(row[key]) for key in ("register_rows", "register_columns", "lanes", "warps", "resident"))
    return "qr/triangle_chain.cuh", compiler.expression("triangle_chain", row["dtype"], *knobs), spills


def qr_instances(row):
    """The instances of a row with the widest team, with and without Q."""
    columns = int(row["register_columns"])
    threads = 1 << (-(-int(row["max_columns"]) // columns) - 1).bit_length()
    for want_q, shared in ((False, row["shared_r"]), (True, row["shared_q"])):
        knobs = int(row["register_rows"]), columns, threads, int(row["resident"]), shared == "1", want_q
        name = compiler.expression("householder_qr", row["dtype"], *knobs)
        yield "qr/householder_qr.cuh", name, int(row["spill_bytes"])
