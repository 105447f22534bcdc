"""Small problems in registers compile as HIP for AMD's devices, where hipcc is at hand: waves of 64 lanes and of 32."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from h2gpu.batched.device import compiler

HIPCC = os.environ.get("HIPCC") or shutil.which("hipcc")
ARCHITECTURES = ("gfx90a", "gfx1030")
DTYPES = (np.float32, np.float64, np.complex64)
WARPS = 4
THREAD = [("lu", 5), ("cholesky", 6), ("qr", 6, 4), ("solve", 4, 2, True), ("solve", 6, 1, False)]
BLOCK = [("lu", 20, 8, 4), ("qr", 80, 16, 8, 8), ("solve", 17, 1, True, 8, 4), ("solve", 17, 2, False, 16, 8)]
BLOCK += [("least_squares", 20, 13, 1, 8, 8), ("qr", 40, 10, 64, 1)]
KERNELS = {
    "small_thread": [(f"thread_{name}", *sizes, WARPS) for name, *sizes in (*THREAD, ("least_squares", 7, 4, 1))],
    "small_block": [(f"block_{name}", *sizes) for name, *sizes in BLOCK],
    "small_block_cycles": [(f"block_{name}_cycles", *sizes) for name, *sizes in BLOCK[:2]],
}


@pytest.mark.skipif(HIPCC is None, reason="no hipcc: give its path as HIPCC")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("header", KERNELS)
def test_small_problems_compile(header, architecture, tmp_path):
    names = [compiler.expression(name, dtype, *sizes) for name, *sizes in KERNELS[header] for dtype in DTYPES]
    lines = [f'#include "batched/{header}.cuh"']
    lines += [f"static const void* volatile use{i} = (const void*)&{name};" for i, name in enumerate(names)]
    source, assembly = tmp_path / "instances.hip", tmp_path / "instances.s"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [HIPCC, f"--offload-arch={architecture}", "--cuda-device-only", "-S", "-O1", compiler.STANDARD]
    command += [f"-I{compiler.source_folder()}", str(source), "-o", str(assembly)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-3000:]
    assert len(re.findall(r"^\s*\.amdhsa_kernel ", assembly.read_text(encoding="utf-8"), re.M)) == len(names)
