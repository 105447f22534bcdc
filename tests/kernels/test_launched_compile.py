"""Every instance that SVD and QR by columns launch compiles for every architecture, and the widest of each row of
svd.csv spills no more than the row claims. No GPU needed: nvrtc/instances.py finds the instances. Truncated and
randomized SVD have no table: a sample of theirs. Others: test_kernels_compile.py.
"""

import csv
import re
import subprocess
import sys

import numpy as np
import nvrtc
import pytest
from places import NVRTC

from h2gpu.batched.device import compiler

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
TUNED = "sm_90"  # of the device that the tables are of: kernels/tuning/nvidia-h200

F64, F32 = np.float64, np.float32
SAMPLE_SPILLS = 362  # bytes that these may spill, with the registers of many columns
SAMPLE = (
    ("products/gaussian.cuh", "gaussian", F64, 256),
    ("svd/svd_triangle.cuh", "svd_triangle", F64, True, 5, 2),
    ("svd/svd_triangle.cuh", "svd_triangle", F64, False, 4, 3),
    ("svd/svd_triangle.cuh", "svd_triangle", F32, True, 8, 2),
    ("svd/svd_triangle.cuh", "svd_triangle", F32, True, 3, 5),
    ("svd/svd_triangle.cuh", "svd_triangle", F32, True, 5, 2),
    ("svd/svd_triangle.cuh", "svd_triangle", F32, True, 4, 2),
    ("svd/svd_triangle.cuh", "svd_triangle", F64, True, 4, 2),
    ("qr/pivoted_qr.cuh", "pivoted_qr", F64, 2, 16, 4, False, 4),
    ("qr/pivoted_qr.cuh", "pivoted_qr", F64, 2, 16, 4, True, 4),
    ("qr/pivoted_qr.cuh", "pivoted_qr", F64, 4, 8, 16, False, 1),
    ("qr/pivoted_qr.cuh", "pivoted_qr", F32, 3, 16, 6, False, 3),
    ("qr/pivoted_qr.cuh", "pivoted_qr_large", F32, True, 512),
    ("qr/reflectors.cuh", "reflect_columns", F64, 2, 16, 2, 9),
    ("qr/reflectors.cuh", "reflect_columns", F64, 3, 8, 4, 5),
    ("qr/reflectors.cuh", "reflect_columns_large", F64, 512),
)
ROUNDS = "svd_gram", "svd_round", "svd_scale", "svd_clean", "svd_enter", "svd_leave", "svd_unsort"
KERNELS = {"register": ["svd_register"], "shared": ["svd_shared"], "block-gram": ROUNDS, "block-direct": ROUNDS}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc"),
]


@pytest.fixture(scope="module")
def launched():
    """(header, name expression, whether it is the widest of a row of svd.csv) of every instance."""
    program = NVRTC / "instances.py"
    lines = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [(header, name, widest == "1") for header, name, widest in (line.split("\t") for line in lines)]


def claims():
    """{kernel<precision: the largest spill that a row of svd.csv claims for it}"""
    found = {}
    for path in compiler.source_folder().glob("tuning/*/svd.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                for kernel in KERNELS[row["method"]]:
                    key = f"{kernel}<{compiler.NAMES[np.dtype(row['dtype'])]}"
                    found[key] = max(found.get(key, 0), int(row["spill_bytes"]))
    return found


def test_instances_of_every_kernel_are_found(launched):
    """The stand-in for a GPU leads to every method, both precisions, with and without vectors."""
    names = [name for _, name, _ in launched]
    for kernel in ("householder_qr", "svd_register", "svd_shared", "svd_gram", "svd_round"):
        found = [name for name in names if name.startswith(f"{kernel}<")]
        assert len({re.match(r"\w+<(\w+)", name)[1] for name in found}) == 2, kernel
        assert len(found) >= 4, kernel


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_instance_compiles(architecture, launched, request):
    instances = [(header, name) for header, name, widest in launched if not (widest and architecture == TUNED)]
    cases = nvrtc.unoptimized(architecture, instances)  # the test below compiles those of TUNED
    assert len(nvrtc.all_spilled(cases, request.config)) == len(cases)


def test_the_widest_of_each_row_spills_no_more_than_the_row_claims(launched, request):
    cases = [(TUNED, header, (name,), ()) for header, name, widest in reversed(launched) if widest]
    spills = nvrtc.all_spilled(cases, request.config)  # the longest first
    claimed = claims()
    found = [(name, spill, claimed[name.partition(",")[0]]) for (_, _, (name,), _), spill in zip(cases, spills)]
    assert not [(name, spill, claim) for name, spill, claim in found if spill > claim]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_sample_of_what_has_no_table_compiles(architecture, request):
    instances = [(header, compiler.expression(*name)) for header, *name in SAMPLE]
    if architecture != TUNED:
        nvrtc.all_spilled(nvrtc.unoptimized(architecture, instances), request.config)
        return
    spills = nvrtc.all_spilled([(TUNED, header, (name,), ()) for header, name in instances], request.config)
    assert max(spills) <= SAMPLE_SPILLS
