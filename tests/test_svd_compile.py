"""The kernels of the batched SVD compile for every architecture, without a GPU; the tuned instances hardly spill."""

import re

import numpy as np
import nvrtc
import pytest

from h2gpu.batched import modules

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
SPILL_BYTES = 200  # stores a lane, most of them of 128-row columns at 128 registers
F64, F32 = np.float64, np.float32

pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc")

INSTANCES = (
    ("svd_register", (F64, 32, 32, False, 2)),
    ("svd_register", (F64, 16, 16, True, 2)),
    ("svd_register", (F32, 8, 4, True, 2)),
    ("svd_shared", (F64, 2, False, 4, 8, 2)),
    ("svd_shared", (F64, 4, False, 4, 16, 1)),
    ("svd_shared", (F32, 3, True, 4, 12, 1)),
    ("svd_gram", (F64, 32, False, 8)),
    ("svd_gram", (F32, 32, True, 8)),
    ("svd_round", (F64, 12, False, 2, 256)),
    ("svd_scale", (F64, True, 512)),
    ("svd_enter", (F32, False, 512)),
    ("svd_leave", (F64, True, 512)),
    ("svd_unsort", (F64, 512)),
    ("gaussian", (F64, 256)),
    ("pivoted_qr", (F64, 2, 16, 4, False, 4)),
    ("pivoted_qr", (F64, 2, 16, 4, True, 4)),
    ("pivoted_qr", (F64, 4, 8, 16, False, 1)),
    ("pivoted_qr", (F32, 3, 16, 6, False, 3)),
    ("pivoted_qr_large", (F32, True, 512)),
    ("reflect_columns", (F64, 2, 16, 2, 9)),
    ("reflect_columns", (F64, 3, 8, 4, 5)),
    ("reflect_columns_large", (F64, 512)),
)
HEADERS = {"svd_round": "svd_rounds", "pivoted_qr_large": "pivoted_qr"}
HEADERS |= dict.fromkeys(("reflect_columns", "reflect_columns_large"), "reflectors")
HEADERS |= dict.fromkeys(("svd_scale", "svd_enter", "svd_leave", "svd_unsort"), "svd_blocks")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_instances_compile(architecture):
    chosen = INSTANCES if architecture == "sm_90" else INSTANCES[::4]
    for name, arguments in chosen:
        source = f'#include "batched/{HEADERS.get(name, name)}.cuh"\n'
        options = [*modules.options(), f"-arch={architecture}", "-Xptxas", "-v"]
        size, log = nvrtc.compile_cubin(source, options, [modules.expression(name, *arguments)])
        assert size > 0
        if architecture == "sm_90":
            spills = [int(count) for count in re.findall(r"(\d+) bytes spill stores", log)]
            assert max(spills, default=0) <= SPILL_BYTES, f"{name} {arguments}: {log}"
