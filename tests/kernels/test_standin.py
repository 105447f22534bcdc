"""The host code of the GPU path, where there is no GPU: tests marked gpu, on the stand-in for CuPy.

What runs is all that Python does for the device: sizes there and here, uploads, launches, ranks that stay there, the
layers above. Numbers are the CPU's, so that nothing is said about kernels. In a process of its own, so that nothing of
the stand-in stays behind in that of the tests.
"""

import os
import subprocess
import sys

import pytest
from places import ROOT, STANDIN, TESTS

MATRICES = [
    "distributed/test_distributed_gpu.py",
    "h2matrix/test_compression.py",
    "h2matrix/test_compression_promise.py",
    "h2matrix/test_construction.py",
    "h2matrix/test_covariance_matrix.py",
    "h2matrix/test_h2matrix.py",
    "h2matrix/test_h2matrix_products.py",
    "h2matrix/test_norms.py",
    "h2matrix/test_orthogonalization.py",
    "h2matrix/test_precision.py",
    "h2matrix/test_truncation.py",
    "storage/test_storage.py",
    "solvers/test_solvers_cg.py",
    "solvers/test_skeletonization_certificate.py",
    "solvers/test_skeletonization_variances.py",
    "solvers/test_solvers_lanczos.py",
    "solvers/test_solvers_skeletonization.py",
    "solvers/test_solvers_vecchia.py",
    "statistics/test_statistics_kriging.py",
    "statistics/test_statistics_likelihood.py",
    "statistics/test_statistics_simulation.py",
    "statistics/systems/test_direct_kriging.py",
]
ROUTINES = [
    "test_staging.py",
    "batched/device/test_direct.py",
    "batched/test_batched_gpu.py",
    "apps/benchmarks/test_bench_peers.py",
    "apps/benchmarks/test_bench_routines.py",
    "batched/products/test_blas.py",
    "batched/systems/test_cholesky.py",
    "clustering/test_cluster_tree_gpu.py",
    "covariance/test_covariance.py",
    "batched/systems/test_lu.py",
    "batched/systems/test_systems.py",
    "blocksparse/test_multiply_gpu.py",
    "covariance/test_pairs_gpu.py",
    "batched/qr/test_product_triangles.py",
    "batched/qr/test_qr_cholesky.py",
    "batched/svd/test_randomized.py",
    "batched/svd/test_samples.py",
    "batched/svd/test_triangles.py",
    "apps/studies/test_study_cycles.py",
    "batched/products/test_thin_product_gpu.py",
    "batched/products/test_triple_product.py",
    "batched/svd/test_truncated_svd.py",
]
LEFT_OUT = {
    "h2matrix/test_h2matrix.py::test_cupys_linear_operators_take_it_too": "CuPy's own solvers",
    "covariance/test_pairs_gpu.py::test_more_blocks_than_a_grid_dimension_and_two_sets_of_points": "takes 2 seconds",
    "covariance/test_pairs_gpu.py::test_extreme_distances_vanish": "the CPU warns of overflow",
    "h2matrix/test_precision.py::test_a_matrix_in_two_precisions_does_what_others_do[cupy-None]": "takes 6 seconds",
    "batched/qr/test_qr_cholesky.py::test_bases_of_nearly_parallel_columns": "the CPU's reflections leave no triangle",
    "batched/qr/test_qr_cholesky.py::test_what_has_no_basis_is_named": "the CPU's reflections never fail",
    "batched/qr/test_qr_cholesky.py::test_what_is_not_orthonormal_is_named": "the CPU's reflections never fail",
    "batched/svd/test_triangles.py::test_small_values_of_graded_triangles_are_right_relatively": "LAPACK differs",
    "apps/studies/test_study_cycles.py::test_a_routine_that_reads_back_is_timed_by_the_same_launches_again": "launches",
    "batched/products/test_thin_product_gpu.py::test_entries_of_products_with_samples": "launches a kernel itself",
    "batched/svd/test_truncated_svd.py::test_ranks_may_stay_where_the_matrices_are": "the CPU raises instead",
}


def start(files):
    """The tests marked gpu of some files, on the stand-in, as a process."""
    left_out = [word for node in LEFT_OUT for word in ("--deselect", f"tests/{node}")]
    options = ["-q", "--tb=short", "-m", "gpu", "-p", "routines", "-p", "no:cacheprovider", *left_out]
    paths = os.pathsep.join(filter(None, [str(STANDIN), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{file}" for file in files)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},  # matrices are small
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def runs():
    """Both at once, as there are mostly two cores."""
    started = {"matrices": start(MATRICES), "routines": start(ROUTINES)}
    yield started
    for process in started.values():
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matrices", "routines"])
def test_host_code_of_the_gpu_runs_without_one(name, runs):
    report, _ = runs[name].communicate()
    assert runs[name].returncode == 0, report
    assert " passed" in report


@pytest.mark.parametrize("node", LEFT_OUT)
def test_what_is_left_out_exists(node):
    file, _, test = node.partition("::")
    assert file in MATRICES + ROUTINES
    assert f"def {test.partition('[')[0]}(" in (TESTS / file).read_text()
