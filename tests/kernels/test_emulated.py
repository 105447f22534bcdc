"""Tests marked gpu whose kernels run where there is no GPU: on the emulator, where a compiler is.

A sample, some minutes, most of them the compiler's. Any other test of the GPU runs so too:

    export PYTHONPATH=tests/support/standin EMULATED=/tmp/emulated
    python -m pytest -m gpu -p emulated -p no:cacheprovider tests/…

With RACES=1 before it every race in dynamic shared memory is an error too (GCC alone tells of every access).

In processes of their own, so that nothing of the stand-in for CuPy stays behind in that of the tests.
"""

import os
import platform
import re
import subprocess
import sys

import pytest
from places import EMULATOR, ROOT, STANDIN, TESTS
from translate import COMPILER, translated

from h2gpu.batched.device import compiler

SAMPLES = {
    "emulator": ["kernels/test_emulator.py"],
    "races": [
        "kernels/test_races.py",
        "batched/systems/test_lu.py::test_of_equal_candidates_the_first_is_the_pivot[cupy-column]",
        "batched/systems/test_lu.py::test_of_equal_candidates_the_first_is_the_pivot[cupy-shared]",
        "batched/systems/test_lu.py::test_every_method_for_every_shape_and_type[cupy-shared-float64]",
        "batched/systems/test_lu.py::test_half_of_the_columns_at_a_time[cupy]",
    ],
    "products": [
        "batched/products/test_gemm_sizes.py::test_misaligned_matrices[33]",
        "batched/products/test_gemm_sizes.py::test_misaligned_matrices[65]",
        "batched/products/test_gemm_sizes.py::test_last_rows_and_columns_by_themselves[34-float64]",
        "batched/products/test_gemm_sizes.py::test_last_rows_and_columns_by_themselves[65-float32]",
        "batched/products/test_gemm_sizes.py::test_last_rows_and_columns_by_themselves[129-float64]",
        "batched/copies/test_copies.py::test_norms_whose_squares_leave_the_range",
        "batched/products/test_blas.py::test_gemv_of_misaligned_matrices[64-3-True]",
        "batched/products/test_thin_product_gpu.py::test_entries[True-shape3-False-float64]",
        "batched/products/test_thin_product_gpu.py::test_entries[False-shape1-False-float32]",
        "batched/products/test_thin_product_gpu.py::test_entries[True-shape4-True-float32]",
        "batched/products/test_thin_product_gpu.py::test_entries_of_products_with_samples[True-shape1-float32]",
    ],
    "covariance": [
        "covariance/test_pairs_gpu.py::test_empty_blocks_beside_others",
        "covariance/test_pairs_gpu.py::test_shapes[shape5]",
    ],
    "trees": [
        "clustering/test_cluster_tree_gpu.py::test_trees_of_all_point_sets_are_those_of_the_cpu[clustered-2-median]",
        "clustering/test_cluster_tree_gpu.py::test_zeros_of_either_sign_are_equal[median]",
        "h2matrix/test_chebyshev.py::test_all_boxes_at_once_are_boxes_one_by_one[cupy-2-float64]",
        "h2matrix/test_chebyshev.py::test_errors_at_samples_are_those_of_interpolation[cupy-2-6-3-Matern]",
    ],
    "matrices": [
        "h2matrix/test_compression.py::test_evaluated_couplings_compress_to_the_same_matrix[cupy-auto-None]",
    ],
    "systems": [
        "batched/systems/test_lu.py::test_of_equal_candidates_the_first_is_the_pivot[cupy-panel]",
        "batched/systems/test_lu.py::test_nan_and_infinity_are_refused_and_neighbours_untouched[cupy-shared]",
        "batched/systems/test_systems.py::test_solutions[cupy-31-complex128]",
        "batched/systems/test_systems.py::test_determinants_of_what_is_not_finite",
        "batched/systems/test_cholesky.py::test_what_has_no_cholesky_factor_is_reported[cupy-32]",
        "batched/products/test_blas.py::test_trsm[cupy-float64-left-True-False-True]",
        "batched/registers/test_registers.py::test_lu_and_systems[cupy-7-complex64]",
    ],
    "decompositions": [
        "batched/qr/test_qr_tree_gpu.py::test_singular_values_and_norms_of_columns[65-513-float64]",
        "batched/qr/test_qr_cholesky.py::test_any_condition[cupy-shape1-float64]",
        "batched/qr/test_qr_cholesky.py::test_bases_of_any_condition[cupy-shape3-float32]",
        "batched/qr/test_qr_complex.py::test_every_place_gives_the_same_to_rounding[outside-complex128]",
        "batched/qr/test_pivoted_qr.py::test_scaling_changes_nothing_but_the_scale[cupy]",
        "batched/svd/test_svd_complex.py::test_spectra_and_scales[cupy-shape2-complex64]",
        "batched/svd/test_svd_complex.py::test_columns_in_device_memory_some_matrices_at_a_time[complex128]",
        "batched/svd/test_randomized.py::test_ranks_do_not_depend_on_the_scale[cupy-1e-200]",
        "batched/svd/test_randomized.py::test_more_triplets_than_the_rank[cupy-float64]",
        "batched/svd/test_svd_panels_gpu.py::test_deficient_ranks[True-block-direct-float64]",
        "batched/svd/test_svd_panels_gpu.py::test_values_below_rounding_cost_no_sweeps[shape0-block-gram-float64]",
        "batched/svd/test_svd_gpu.py::test_singular_values_of_scaled_columns_are_relatively_accurate[60-auto-float64]",
    ],
}
UNKNOWN = {"studies/hold.cuh", "studies/microbench.cuh", "bidiagonal/block/cluster.cuh"}  # clocks, and blocks that meet


def compiles():
    """Whether there is a compiler of C++20, for the machine whose stacks the emulator switches."""
    if COMPILER is None or platform.machine() not in ("x86_64", "AMD64"):
        return False
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=b"#include <vector>\n", capture_output=True, check=False).returncode == 0


runs = pytest.mark.skipif(not compiles(), reason="no compiler of C++20 (give its path as CXX), or no x86-64")


@pytest.mark.slow
@runs
@pytest.mark.parametrize("sample", SAMPLES)
def test_kernels_run_without_a_gpu(sample, tmp_path_factory):
    options = ["-q", "--tb=short", "-m", "gpu", "-p", "emulated", "-p", "no:cacheprovider"]
    paths = os.pathsep.join(filter(None, [str(STANDIN), os.environ.get("PYTHONPATH")]))
    compiled = {"EMULATED": str(tmp_path_factory.getbasetemp() / "emulated"), "OMP_NUM_THREADS": "1"}
    if sample == "races":
        compiled["RACES"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in SAMPLES[sample])],
        cwd=ROOT,
        env=os.environ | compiled | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and " passed" in done.stdout and "skipped" not in done.stdout, done.stdout[-5000:]


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_is_run_exists(sample):
    for node in SAMPLES[sample]:
        file, _, test = node.partition("::")
        assert f"def {test.partition('[')[0]}" in (TESTS / file).read_text(encoding="utf-8")


def test_every_instruction_has_its_like():
    """All `asm` becomes calls of functions that there are, line by line where it was."""
    known = set(re.findall(r"^(?:inline )?void (\w+)\(", (EMULATOR / "ptx.h").read_text(), re.MULTILINE))
    folder = compiler.source_folder()
    for path in sorted(folder.rglob("*.cuh")):
        if path.relative_to(folder).as_posix() in UNKNOWN:
            continue
        text = path.read_text(encoding="utf-8")
        result = translated(text)
        assert not re.search(r"\basm\b|extern __shared__", re.sub(r"//.*", "", result)), path
        called = set(re.findall(r"\b((?:mma|cp_async|cvt|mov|ld|st|bar|unknown)_\w+)\(", result))
        assert called - set(re.findall(r"\b(\w+)\(", text)) <= known, path
