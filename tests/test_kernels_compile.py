"""Every instance of the kernels compiles for every architecture, without a GPU, and spills no register.

Instances come from the tuning tables and from the constants of the modules that launch them; instances of one header
are compiled in one program, programs in parallel.
"""

import ast
import csv
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import nvrtc
import pytest

from h2gpu.batched import modules

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
DTYPES = (np.float64, np.float32)
ANY_ROWS = 1 << 20

pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc")


def constants(module):
    """The numbers a launching module is written with, read from its text: it imports CuPy, which may be missing."""
    text = (modules.source_folder().parent / "h2gpu" / "batched" / f"{module}.py").read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            names = [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            try:
                values = ast.literal_eval(node.value)
            except ValueError:
                continue
            found.update(zip(names, values) if isinstance(node.targets[0], ast.Tuple) else [(names[0], values)])
    return found


def instances():
    """(header, name expression) of everything that is ever launched."""
    basics, products, sparse = constants("cuda"), constants("cuda_gemm"), constants("cuda_blocksparse")
    yield "batched/owners.cuh", modules.expression("owners", constants("launch")["OWNER_WARPS"])
    for dtype in DTYPES:
        yield "batched/frobenius_norms.cuh", modules.expression("frobenius_norms", dtype, basics["NORM_WARPS"])
        yield "batched/gather.cuh", modules.expression("gather", dtype, basics["TILE"], basics["LINES"])
        yield "batched/pairs.cuh", modules.expression("pairs", dtype, basics["PAIR_THREADS"], basics["PAIR_RUN"])
        for edge in products["EDGES"]:
            for a, b in ((False, False), (True, False), (False, True), (True, True)):
                yield "batched/gemm.cuh", modules.expression("gemm", dtype, edge, edge, a, b)
        yield "batched/block_multiply.cuh", modules.expression("block_sums", dtype)
        for sides in sparse["SIDES"]:
            for forward, backward in ((True, True), (True, False), (False, True)):
                name = modules.expression("block_products", dtype, forward, backward, sides)
                yield "batched/block_multiply.cuh", name
    yield from qr_instances()


def qr_instances():
    """The instances of every row of every device's qr.csv: teams of all sizes that the row's columns may need."""
    for path in sorted(modules.source_folder().glob("tuning/*/qr.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        least = {}
        for row in rows:
            dtype, columns = row["dtype"], int(row["register_columns"])
            key = dtype, row["max_matrices"], row["max_rows"]
            threads = 1 << (-(-int(row["max_columns"]) // columns) - 1).bit_length()
            for team in (threads >> s for s in range(12) if threads >> s >= max(1, least.get(key, 1))):
                for want_q, shared in ((False, row["shared_r"]), (True, row["shared_q"])):
                    arguments = int(row["register_rows"]), columns, team, int(row["resident"]), shared == "1", want_q
                    yield "batched/householder_qr.cuh", modules.expression("householder_qr", dtype, *arguments)
            least[key] = threads


def reports(architecture, group):
    """{mangled name: spilled bytes} of one header's instances."""
    header, names = group
    options = [*modules.options(), f"-arch={architecture}", "--ptxas-options=-v"]
    _, log = nvrtc.compile_cubin(f'#include "{header}"\n', options, names)
    return dict(re.findall(r"Function properties for (\S+)\n.* (\d+) bytes spill stores", log))


def groups(size):
    """(header, names) with at most `size` names each."""
    by_header = {}
    for header, name in instances():
        names = by_header.setdefault(header, [])
        if name not in names:
            names.append(name)
    return [(header, names[i : i + size]) for header, names in by_header.items() for i in range(0, len(names), size)]


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_instance_compiles_and_none_spills(architecture):
    with ThreadPoolExecutor() as pool:
        spills = {
            name: int(s) for part in pool.map(lambda g: reports(architecture, g), groups(8)) for name, s in part.items()
        }
    assert len(spills) == sum(len(names) for _, names in groups(8))
    assert not {name: s for name, s in spills.items() if s}
