"""The host's formulas of shared memory agree with what kernels lay out: their own constants, compiled for the CPU."""

import platform
import subprocess
import sys

import pytest
from places import EMULATOR, LAYOUTS
from translate import COMPILER, translated

from h2gpu.batched.device import compiler

SPARE = {"qr/blocked_qr.cuh": 8, "qr/tree_qr.cuh": 8, "qr/householder_qr.cuh": 12}  # bytes more than needed, at most:
# rounded up, the last so that the next team begins at a multiple of 16
EXCEPTIONS = {  # of kernels that ask for shared memory: one array, which nothing of a header measures
    "bidiagonal/bidiagonal_values.cuh": "2 n numbers for 2 n - 1 entries",
    "interpolation/sampled_errors.cuh": "polynomials of each coordinate of a box and of the rows, of each warp",
    "products/gemv.cuh": "a sum of each column of a strip, of each warp",
    "qr/pivoted_qr.cuh": "columns as of qr/reflectors.cuh, by the same function of the host",
    "studies/edge_gemm.cuh": "slabs as of products/gemm.cuh",
    "studies/gebrd_stages.cuh": "tiles as of systems/lu_update.cuh, by the same function of the host",
    "studies/lu_stages.cuh": "likewise",
}
PROGRAM = """\
#include "ptx.h"
#include <cstdio>
{program}
int main() {{
{lines}
}}
"""


@pytest.fixture(scope="module")
def asked():
    """{header: [(expression, bytes that the host asks for)]}"""
    program = LAYOUTS / "shared_memory.py"
    lines = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for line in lines:
        header, expression, host = line.split("\t")
        found.setdefault(header, []).append((expression, int(host)))
    return found


HEADERS = (
    "bidiagonal/bidiagonal_svd.cuh",
    "bidiagonal/bidiagonalize_large.cuh",
    "blocksparse/block_multiply.cuh",
    "products/fixed_gemm.cuh",
    "products/gemm.cuh",
    "products/gemv_run.cuh",
    "products/packed_gemm.cuh",
    "products/redirected_gemm.cuh",
    "products/streamed_gemm.cuh",
    "products/symv.cuh",
    "products/syrk.cuh",
    "products/thin_parts.cuh",
    "products/thin_product.cuh",
    "products/triple_product.cuh",
    "qr/blocked_chain.cuh",
    "qr/blocked_qr.cuh",
    "qr/cholesky_qr.cuh",
    "qr/complex_qr.cuh",
    "qr/householder_qr.cuh",
    "qr/product_triangles.cuh",
    "qr/reflectors.cuh",
    "qr/tree_qr.cuh",
    "qr/triangle_chain.cuh",
    "svd/complex_svd.cuh",
    "svd/svd_blocks.cuh",
    "svd/svd_gram.cuh",
    "svd/svd_register.cuh",
    "svd/svd_rounds.cuh",
    "svd/svd_shared.cuh",
    "svd/svd_triangle.cuh",
    "systems/cholesky_panel.cuh",
    "systems/cholesky_register.cuh",
    "systems/cholesky_shared.cuh",
    "systems/lu_panel.cuh",
    "systems/lu_register.cuh",
    "systems/lu_shared.cuh",
    "systems/lu_update.cuh",
    "systems/lu_warp.cuh",
    "systems/solve_register.cuh",
    "systems/solve_small.cuh",
    "systems/solve_triangles.cuh",
    "systems/trsm.cuh",
)


def laid_out(header, expressions, folder):
    """The values of C++ expressions in a header's room."""
    for name, text in compiler.sources(header).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(translated(text), encoding="utf-8")
    lines = "\n".join(f'    std::printf("%lld\\n", static_cast<long long>({each}));' for each in expressions)
    source, binary = folder / "layouts.cpp", folder / "layouts"
    source.write_text(PROGRAM.format(program=compiler.program(header), lines=lines), encoding="utf-8")
    options = ["-std=c++20", "-O0", "-w", f"-I{EMULATOR}", f"-I{folder}"]
    done = subprocess.run(
        [COMPILER, *options, str(source), "-o", str(binary)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:3000]
    return [int(line) for line in subprocess.run([str(binary)], capture_output=True, check=True).stdout.split()]


def test_every_header_is_looked_at(asked):
    assert set(asked) == set(HEADERS)


def test_every_kernel_with_dynamic_shared_memory_is_looked_at():
    folder = compiler.source_folder()
    texts = {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in folder.rglob("*.cuh")}
    asking = {header for header, text in texts.items() if "extern __shared__" in text}
    assert asking - set(HEADERS) == set(EXCEPTIONS)


@pytest.mark.slow
@pytest.mark.skipif(
    COMPILER is None or platform.machine() not in ("x86_64", "AMD64"),
    reason="no compiler of C++20 (give its path as CXX), or no x86-64",
)
@pytest.mark.parametrize("header", HEADERS)
def test_the_host_asks_for_what_the_kernel_lays_out(header, asked, tmp_path):
    expressions, host = zip(*asked[header])
    needed = laid_out(header, expressions, tmp_path)
    spare = SPARE.get(header, 0)
    assert [case for case in zip(expressions, host, needed) if not case[2] <= case[1] <= case[2] + spare] == []
