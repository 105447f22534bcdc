"""Every instance of the kernels compiles for every architecture, and spills no more than its row claims: no GPU."""

import nvrtc
import ptx
import pytest
from every_instance import ARCHITECTURES, EVERY, TUNED, instances

from h2gpu.batched.device.compiler import source_folder

pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc")


def test_instances_are_of_kernels_that_are_there_and_are_named_by_constants_that_their_modules_have():
    """What the tests of minutes compile: a constant that moved to another module is missed here, in seconds."""
    cases = set(instances())
    headers = {header for header, _, _ in cases}
    assert not [header for header in headers if not (source_folder() / header).is_file()]
    assert {"gemv_columns", "gemv_rows"} <= {name.split("<")[0].rsplit("::")[-1] for _, name, _ in cases}


@pytest.mark.slow
def test_a_sample_of_the_instances_compiles(request):
    """The quick part of the next test: one instance in EVERY."""
    cases = sorted(set(instances()))[::EVERY]
    nvrtc.all_spilled(nvrtc.unoptimized(TUNED, [case[:2] for case in cases]), request.config)


@pytest.mark.parametrize(
    ("value", "lost"),
    (
        ("min(min(a, -b), c)", True),
        ("max(c, max(0 - b, a))", True),
        ("min(c, min(a, d - (b + d)))", True),
        ("max(min(a, -b), c)", False),
        ("min(min(a, b), -c)", False),
        ("min(min(a, d - b), c)", False),
    ),
)
def test_code_whose_sign_ptxas_loses_is_found(value, lost):
    source = f"__global__ void extreme(int* r, int a, int b, int c, int d) {{ *r = {value}; }}"
    code = nvrtc.compiled(source, [f"-arch={TUNED}"], ["extreme"]).ptx
    assert bool(ptx.lost_signs(code)) == lost


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_instance_compiles_and_spills_no_more_than_it_claims(architecture, request):
    cases = sorted(set(instances()))
    if architecture != TUNED:  # rows claim what their device's compiler spills
        nvrtc.all_spilled(nvrtc.unoptimized(architecture, [case[:2] for case in cases]), request.config)
        return
    spills = nvrtc.all_spilled([(TUNED, header, (name,), ()) for header, name, _ in cases], request.config)
    assert not [(name, s, claim) for (_, name, claim), s in zip(cases, spills) if s > claim]
