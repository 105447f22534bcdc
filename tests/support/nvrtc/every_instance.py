"""Every instance of the kernels that is launched, from the tuning tables and the constants of the launching modules."""

from itertools import product

import blas_instances
import numpy as np
from decomposition_instances import bidiagonal_instances, complex_instances, qr_instances, tall_instance
from instance_sources import COMPLEX, DTYPES, constants, rows
from product_instances import panel_instances, thin_instances
from register_instances import small_instances
from study_instances import (
    edge_instances,
    gebrd_stage_instances,
    lu_stage_instances,
    microbench_instances,
    watched_instances,
)
from system_instances import linear_instances

from h2gpu.batched.device import compiler
from h2gpu.covariance import (
    Constant,
    Cubic,
    Exponential,
    Gaussian,
    Gneiting,
    Matern,
    Modulated,
    PoweredExponential,
    RationalQuadratic,
    SpaceTime,
    Spherical,
    VaryingLength,
    Wendland,
    on_sphere,
)

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
BEYOND = (1, 2, 3)  # edges of the study, apps/studies/edges.py
TUNED = "sm_90"
EVERY = 8


def instances():
    """(header, name expression, spilled bytes it claims) of everything that is launched."""
    basics = constants("batched/copies/cuda") | constants("covariance/pairs/cuda")
    products, panels = (
        constants("batched/products/gemm"),
        constants("blocksparse/panels") | constants("blocksparse/cuda"),
    )
    yield "copies/owners.cuh", compiler.expression("owners", constants("batched/device/launch")["OWNER_WARPS"]), 0
    yield "copies/table.cuh", compiler.expression("table"), 0
    yield "copies/signs.cuh", compiler.expression("signs"), 0
    yield "svd/shared_ranks.cuh", compiler.expression("discard_threshold"), 0
    yield from cluster_instances(constants("clustering/cuda"))
    warps = constants("solvers/skeletonization/cuda")["WARPS"]
    yield "skeletonization/changes.cuh", compiler.expression("mask_panels", np.float64, warps), 0
    for name, wide in product(("add_blocks", "subtract_updates"), (False, True)):
        yield "skeletonization/changes.cuh", compiler.expression(name, np.float64, wide, warps), 0
    for name in ("pack_triangles", "unpack_triangles"):
        yield "skeletonization/triangles.cuh", compiler.expression(name, np.float64, warps), 0
    yield "skeletonization/parts.cuh", compiler.expression("unpack_parts", np.float64, warps), 0
    for name, size, wide in product(("pick_rows", "pick_columns"), (1, 4, 8), (False, True)):
        yield "skeletonization/along.cuh", compiler.expression(name, size, wide, warps), 0
    sparse = constants("solvers/cuda")
    for dtype in DTYPES:
        for name in ("row_sums", "row_products"):
            yield "solvers/row_products.cuh", compiler.expression(name, dtype, sparse["LANES"], sparse["THREADS"]), 0
        for growing in (False, True):
            name = compiler.expression("last_rows", dtype, sparse["THREADS"], growing)
            yield "solvers/small_factors.cuh", name, 0
        yield "solvers/small_factors.cuh", compiler.expression("find_singular", dtype, sparse["THREADS"]), 0
        yield "copies/diagonals.cuh", compiler.expression("add_to_diagonals", dtype), 0
        for name in ("kept_ranks", "discarded_squares"):
            yield "svd/shared_ranks.cuh", compiler.expression(name, dtype), 0
        for warps, of_rounding in product(basics["NORM_WARPS"], (False, True)):
            norms = compiler.expression("frobenius_norms", dtype, warps, of_rounding)
            yield "copies/frobenius_norms.cuh", norms, 0
        yield "copies/all_finite.cuh", compiler.expression("find_not_finite", dtype), 0
        for name in ("gather", "gather_batches"):
            yield "copies/gather.cuh", compiler.expression(name, dtype, basics["TILE"], basics["LINES"]), 0
        yield "copies/pairs.cuh", compiler.expression("pairs", dtype, basics["PAIR_THREADS"], basics["PAIR_RUN"]), 0
        for name in pairwise_instances(dtype, basics["THREADS"], basics["ROWS"]):
            yield "covariance/pairwise.cuh", name, 0
            knobs = constants("h2matrix/interpolation/cuda")
            yield "interpolation/sampled_errors.cuh", sampled_instance(name, knobs), knobs["SPILL_BYTES"]
        for edge in products["EDGES"]:
            for a, b in ((False, False), (True, False), (False, True), (True, True)):
                yield "products/gemm.cuh", compiler.expression("gemm", dtype, edge, edge, a, b), 0
                yield "products/redirected_gemm.cuh", compiler.expression("redirected_gemm", dtype, edge, a, b, 0), 0
            for beyond in BEYOND:
                name = compiler.expression("redirected_gemm", dtype, edge, False, False, beyond)
                yield "products/redirected_gemm.cuh", name, 0
        for size, *trans in product(products["PACKED"], (False, True), (False, True)):
            yield "products/packed_gemm.cuh", compiler.expression("packed_gemm", dtype, *size, *trans), 0
        yield from panel_instances(dtype, panels)
        for strips, warps in constants("batched/qr/cholesky")["WARPS"].items():
            for name in ("cholesky_qr", "cholesky_basis")[: 2 if dtype == np.float32 else 1]:
                yield "qr/cholesky_qr.cuh", compiler.expression(name, dtype, strips, warps), 450
        yield from thin_instances(dtype, constants("batched/products/thin"))
        sums = constants("batched/qr/product_triangles")
        name = compiler.expression("product_triangles", dtype, sums["EDGE"])
        yield "qr/product_triangles.cuh", name, sums["SPILL_BYTES"]
        yield from linear_instances(dtype)
        triple = constants("batched/products/triple")
        for edge, inner in product(triple["EDGES"], triple["INNER"]):
            yield "products/triple_product.cuh", compiler.expression("triple_product", dtype, edge, inner), 0
    yield from blas_instances.fixed(rows)
    yield from blas_instances.blas(constants, rows)
    for dtype in COMPLEX:
        yield from linear_instances(dtype)
        yield from complex_instances(dtype)
    for dtype in DTYPES:
        yield from bidiagonal_instances(dtype)
    for row in rows("qr"):
        yield from qr_instances(row)
    for row in rows("qr_blocked"):
        if int(row["warps"]):
            knobs = (int(row[key]) for key in ("warps", "tiles", "resident"))
            arguments = compiler.expression("", row["dtype"], *knobs)
            for name in ("blocked_qr", "blocked_q"):
                yield "qr/blocked_qr.cuh", name + arguments, int(row["spill_bytes"])
    for row in rows("qr_tree"):
        if int(row["warps"]):
            knobs = (int(row[key]) for key in ("warps", "tiles", "resident"))
            name = compiler.expression("tree_qr", row["dtype"], *knobs)
            yield "qr/tree_qr.cuh", name, int(row["spill_bytes"])
    for row in rows("qr_tall"):
        yield tall_instance(row)
    yield from small_instances()
    yield from microbench_instances()
    yield from edge_instances()
    yield from lu_stage_instances()
    yield from gebrd_stage_instances()
    yield from watched_instances()


def cluster_instances(knobs):
    """Growing trees, and interpolation on their boxes."""
    header = "clustering/growth.cuh"
    for name in ("narrow_orders", "mark", "retire"):
        yield header, compiler.expression(name), 0
    for name in ("count", "part"):
        yield header, compiler.expression(name, knobs["THREADS"], knobs["EACH"]), 0
    yield header, compiler.expression("before", knobs["SCANNING"]), 0
    for dtype in DTYPES[:2]:
        for name in ("deal", "corners"):
            yield header, compiler.expression(name, dtype), 0
        for name in ("polynomials", "tensor_products", "grids"):
            yield "interpolation/chebyshev.cuh", compiler.expression(name, dtype), 0


def pairwise_instances(dtype, *knobs):
    """Every kind of covariance in every dimension, and compositions of them."""
    for dim in (1, 2, 3):
        radial = (
            Exponential(),
            Matern(),
            Matern(smoothness=2.5),
            Gaussian(),
            Matern(smoothness=1.2),
            Matern(smoothness=30),
        )
        stretched = Matern(length_scale=tuple(range(1, dim + 1)), smoothness=4.5)
        for cov in (*radial, stretched, Exponential() * Constant() + Matern(smoothness=3.5)):
            yield pairwise_instance(cov, dim, dtype, *knobs)
        wendland = [Wendland(order=k) for k in range(4)]
        for cov in (Spherical(), Cubic(), *wendland, PoweredExponential(), RationalQuadratic()):
            yield pairwise_instance(cov, dim, dtype, *knobs)
    yield pairwise_instance(Exponential(1.0, (1, 2), rotation=0.3), 2, dtype, *knobs)
    yield pairwise_instance(Exponential(1.0, (1, 2, 3), rotation=(0.1, 0.2, 0.3)), 3, dtype, *knobs)
    yield pairwise_instance(on_sphere(Exponential()), 3, dtype, *knobs)
    yield pairwise_instance(Modulated(Exponential(), (0.1, 0.2)), 2, dtype, *knobs)
    varying = VaryingLength(Matern(smoothness=1.5), (0.1, 0.2, 0.3), columns=1)
    yield pairwise_instance(Modulated(varying, (0.1, 0.2, 0.3)), 3, dtype, *knobs)
    yield pairwise_instance(Modulated(Exponential(), (0.1, 0.2, 0.3), columns=1), 3, dtype, *knobs)
    yield pairwise_instance(SpaceTime(Matern(smoothness=1.2), Matern(smoothness=0.7)), 3, dtype, *knobs)
    yield pairwise_instance(SpaceTime(on_sphere(Exponential()), Gaussian()), 4, dtype, *knobs)
    yield pairwise_instance(Gneiting(Exponential(1.0, (1, 2))) + Gneiting(Gaussian()), 3, dtype, *knobs)


def pairwise_instance(cov, dim, dtype, threads, rows):
    function = cov.pair_function.on_device(dim, dtype)
    return f"pairwise<{compiler.NAMES[np.dtype(dtype)]}, {threads}, {rows}, {function.type}>"


def sampled_instance(pairwise, knobs):
    """The kernel of sampled errors for the covariance of a pairwise instance, of the same precision."""
    real, _, _, function = pairwise.removeprefix("pairwise<").removesuffix(">").split(", ", 3)
    rows, columns = knobs["SAMPLED"]
    return f"sampled_errors<{real}, {knobs['SAMPLED_WARPS']}, {rows}, {columns}, {function}>"
