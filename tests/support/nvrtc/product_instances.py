"""Instances of products with few columns and of block-sparse matrices."""

from itertools import product

import numpy as np
from instance_sources import DTYPES

from h2gpu.batched.device import compiler


def thin_instances(dtype, thin):
    """Products with few columns: plain, transposed, turned, with samples."""
    turns = (False, False), (True, False), (False, True)
    for strips in thin["STRIPS"]:
        if dtype == np.float64:
            for flags in turns:
                yield "products/thin_product.cuh", compiler.expression("thin_product", dtype, strips, *flags), 0
            continue
        for flags, parts in (*product(turns, (thin["FINE"], thin["COARSE"])), ((False, False), thin["SHORT"])):
            name = compiler.expression("thin_parts", strips, *flags, parts)
            yield "products/thin_parts.cuh", name, thin["SPILL_BYTES"]


def panel_instances(dtype, knobs):
    """Products of sparse matrices of blocks, which are made forward, backward or both ways, and of nested ones."""
    header = "blocksparse/block_multiply.cuh"
    sums = knobs["SUM_WARPS"], knobs["SUM_ENTRIES"], knobs["SUM_TERMS"]
    yield header, compiler.expression("block_sums", dtype, *sums), 0
    ways = (True, True, False), (True, False, False), (False, True, False), (True, False, True)
    for way, stored in product(ways, DTYPES[DTYPES.index(dtype) :]):
        for tiles in knobs["GROUPS"]:
            name = compiler.expression("panel_products", stored, dtype, *way, tiles, knobs["WARPS"])
            yield header, name, knobs["SPILL_BYTES"][tiles]
