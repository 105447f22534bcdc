"""Kernels stand in rooms and on floors, and avoid forms that nvcc 13.0.88 compiles to something else, silently."""

import re
from collections import Counter

import pytest
from places import ROOT

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


# what a room may include besides itself; `common` is open to all
ROOMS = {
    "common": (),
    "copies": (),
    "products": ("copies",),
    "registers": ("copies", "products"),
    "qr": ("copies", "products", "registers"),
    "bidiagonal": ("copies", "products", "registers", "qr"),
    "svd": ("copies", "products", "registers", "qr", "bidiagonal"),
    "systems": ("copies", "products"),
    "blocksparse": ("copies", "products"),
    "covariance": (),
    "clustering": (),
    "interpolation": ("clustering", "covariance"),
    "skeletonization": (),
    "solvers": (),
    "studies": ("copies", "products", "registers", "qr", "bidiagonal", "svd", "systems", "blocksparse", "covariance"),
}
FLOORS = "thread", "warp", "block"  # lowest first; kernels stand above, at the top of their room
MOST_HEADERS = 15  # of a folder
KERNEL = re.compile(r"^(?:__global__ )?void (\w+)\(", re.MULTILINE)
BUILT = "thread_", "block_", "lu_"  # kernels whose names host code puts together


def headers():
    """{path below kernels/: text}"""
    folder = compiler.source_folder()
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.cuh"))}


def place(header):
    """(room, number of the floor) of room/floor/name or room/name."""
    room, *floor, _ = header.split("/")
    return room, FLOORS.index(floor[0]) if floor else len(FLOORS)


def uphill(including):
    """Includes of {header: headers it includes} that lead to a room or a floor above, or to no room."""
    found = []
    for header, included in including.items():
        room, floor = place(header)
        below = {room, "common", *ROOMS[room]}
        found += [(header, other) for other in included if place(other)[0] not in below or place(other)[1] > floor]
    return found


def test_every_folder_is_a_room_or_a_floor():
    files = headers()
    assert {place(header)[0] for header in files} == set(ROOMS)
    assert not [header for header in files if header.count("/") > 2]


def test_includes_lead_downhill():
    assert (
        uphill({header: re.findall(r'^#include "(.+)"', text, re.MULTILINE) for header, text in headers().items()})
        == []
    )


def test_an_include_that_leads_uphill_is_found():
    above = {"qr/tree_qr.cuh": ["svd/warp/lane_qr.cuh"], "qr/warp/row_tile.cuh": ["common/block/reduce.cuh"]}
    assert uphill(above) == [(header, other) for header, (other,) in above.items()]


def test_kernels_stand_at_the_top_of_their_room_and_nothing_else():
    found = {header: "__global__" in text for header, text in headers().items()}
    assert found == {header: place(header)[1] == len(FLOORS) for header in found}


def test_folders_are_small():
    counts = Counter(header.rpartition("/")[0] for header in headers())
    assert {folder: count for folder, count in counts.items() if count > MOST_HEADERS} == {}


def test_a_header_is_read_once_and_its_namespace_is_its_room():
    for header, text in headers().items():
        room = place(header)[0]
        assert text.count("\n#pragma once\n") == 1, header
        assert re.findall(r"^namespace (\w+) \{$", text, re.MULTILINE) == [room], header
        assert text.endswith(f"\n}}  // namespace {room}\n"), header
        code = text.partition(f"\nnamespace {room} {{\n")[0]
        left = [line for line in code.splitlines() if line and not line.startswith(("//", "#"))]
        assert not left, f"{header}: outside of its namespace: {left}"
        used = re.findall(r"^using namespace (\w+);$", text, re.MULTILINE)
        rooms = {place(other)[0] for other in re.findall(r'^#include "(.+)"', text, re.MULTILINE)}
        assert set(used) == rooms - {room}, header


def test_no_kernel_is_left_that_nothing_reaches():
    """Host code asks for each by its name, whole or put together."""
    code = "".join(path.read_text(encoding="utf-8") for top in ("h2gpu", "apps") for path in (ROOT / top).rglob("*.py"))
    kernels = [name for text in headers().values() for name in KERNEL.findall(text)]
    assert len(kernels) > 100
    named = set(re.findall(r'["/](\w+)["<{]', code))
    assert [name for name in kernels if name not in named and not name.startswith(BUILT)] == []


def test_kernels_names_are_theirs_alone():
    """A kernel is found by its name: no other kernel has it, and no function of a room."""
    kernels = Counter()
    for text in headers().values():
        kernels.update(KERNEL.findall(text))
    functions = {
        (place(header)[0], name)
        for header, text in headers().items()
        for name in re.findall(r"^__device__ .*?\b(\w+)\(", text, re.MULTILINE)
    }
    assert [name for name, count in kernels.items() if count > 1] == []
    assert [name for name in kernels for room in ROOMS if (room, name) in functions] == []
