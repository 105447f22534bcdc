"""Forms in the kernels' text that nvcc 13.0.88 compiles to something else, silently."""

import re

import pytest

from h2gpu.batched.device import compiler

# a loop without braces as a branch of `if constexpr`: behind a discarded one whose own body ends in }, the next
# "#pragma unroll" is dropped, its loop with it. Under such a pragma also without, since an edit may give it braces.
LOOSE_LOOP = re.compile(
    r"(?<!#)\b(?:if constexpr \([^;{]*?\)|else(?: if \([^;{]*?\))?)\s+"
    r"(?:#pragma unroll.*\s+(?:for|while)\b|(?:for|while|switch) \(.*\) \{)"
)


def loose_loops(text):
    """Lines on which such a branch begins."""
    text = re.sub(r"//.*", "", text)
    return [text.count("\n", 0, found.start()) + 1 for found in LOOSE_LOOP.finditer(text)]


def test_loops_under_if_constexpr_stand_in_braces():
    paths = sorted(compiler.source_folder().rglob("*.cuh"))
    assert paths
    assert {path.name: lines for path in paths if (lines := loose_loops(path.read_text()))} == {}


NEXT = "\n#pragma unroll\nfor (int i = 0; i < N; i++) y[i] = x[i];"


@pytest.mark.parametrize(
    "branch",
    [
        "if constexpr (uses(Warp, 1))  // why\n#pragma unroll\n    for (int i = 0; i < N; i++) x[i] = 0;",
        "if constexpr (N > 1)\n    for (int i = 0; i < N; i++) { x[i] = 0; }",
        "if constexpr (N > 1) if (n > 1)\n#pragma unroll 1\n    for (int i = 0; i < n; i++) x[i] = 0;",
        "if constexpr (N > 1) x[0] = 0;\nelse\n#pragma unroll\n    for (int i = 0; i < N; i++) x[i] = 0;",
        "if constexpr (N > 1) { x[0] = 0; } else if constexpr (N > 0) while (next(x)) {\n}",
    ],
)
def test_one_without_is_found(branch):
    assert loose_loops("int n = 1;\n" + branch + NEXT)[0] in (2, 3)


@pytest.mark.parametrize(
    "branch",
    [
        "if constexpr (N > 1) {\n#pragma unroll\n    for (int i = 0; i < N; i++) { x[i] = 0; }\n}",
        "if constexpr (N > 1) x[0] = 0;",
        "#else",
    ],
)
def test_others_pass(branch):
    assert loose_loops(branch + NEXT) == []
