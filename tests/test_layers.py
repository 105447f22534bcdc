"""Imports run downhill: a file imports from its own layer and from those below, in batched from its own room."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = [
    "typing",
    "texts",
    "staging",
    "arrays",
    "memory",
    "progress",
    "batched",
    "blocksparse",
    "covariance",
    "clustering",
    "h2matrix",
    "solvers",
    "storage",
    "statistics",
    "distributed",
    "apps",
]
ROOMS = [
    "core",
    "device",
    "copies",
    "products",
    "registers",
    "qr",
    "bidiagonal",
    "svd",
    "systems",
    "least_squares",
    "model",
]
SOURCES = sorted(p for top in ("h2gpu", "apps") for p in (ROOT / top).rglob("*.py") if p != ROOT / "h2gpu/__init__.py")


def height(module):
    """Layer and room of a module "h2gpu.x.…" as numbers, 0 lowest; a package's own public names stand above all."""
    _, *parts = module.split(".")
    if not parts:
        return len(LAYERS), 0
    if parts[0] != "batched":
        return LAYERS.index(parts[0]), 0
    return LAYERS.index("batched"), ROOMS.index(parts[1]) if len(parts) > 1 else len(ROOMS)


def module_name(path):
    """apps/ is mapped to h2gpu.apps."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts if parts[0] == "h2gpu" else ("h2gpu", *parts))
    return name.removesuffix(".__init__")


@cache
def imported(source):
    """The h2gpu modules that a file imports, anywhere in it; "h2gpu" for the package's public names."""
    return list(_imported(source))


def _imported(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "h2gpu")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "h2gpu":
                layers = {name.name for name in node.names} & set(LAYERS)
                yield from (f"h2gpu.{name}" for name in layers)
                yield from ["h2gpu"] * (len(layers) < len(node.names))
            elif node.module.split(".")[0] == "h2gpu":
                yield node.module


def test_nothing_but_commands_imports_distributed():
    """It is an extra, and a room above all others."""
    others = [p for p in (ROOT / "h2gpu").rglob("*.py") if not module_name(p).startswith("h2gpu.distributed")]
    assert not [p for p in others if any(name.startswith("h2gpu.distributed") for name in imported(p.read_text()))]


def uphill(module, source):
    """The imports of a file from layers above its own."""
    if height(module)[0] == len(LAYERS) - 1:
        return []
    return [name for name in imported(source) if height(name) > height(module)]


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_run_downhill(path):
    assert not uphill(module_name(path), path.read_text())


def test_uphill_imports_are_seen_wherever_they_stand():
    assert uphill("h2gpu.batched.copies.cpu", "from h2gpu.covariance import Matern")
    assert uphill("h2gpu.batched.qr.cpu", "from h2gpu.batched.svd import svd")
    assert uphill("h2gpu.batched.qr.cpu", "def f():\n    from h2gpu.batched import qr")
    assert uphill("h2gpu.batched.core.checks", "import h2gpu.batched.device.launch")
    assert not uphill("h2gpu.batched.svd.jacobi", "from h2gpu.batched.qr import blocked")
    assert uphill("h2gpu.covariance.matern", "def f():\n    import h2gpu.clustering.boxes")
    assert uphill("h2gpu.h2matrix.basis", "from h2gpu import batched, storage")
    assert uphill("h2gpu.solvers", "from h2gpu import build")
    assert uphill("h2gpu.solvers.accuracy", "from h2gpu.storage import load")
    assert not uphill("h2gpu.progress", "from h2gpu.arrays import array_module")
    assert not uphill("h2gpu.storage", "import numpy\nfrom h2gpu import batched\nfrom h2gpu.h2matrix import H2Matrix")
    assert not uphill("h2gpu.apps.h2info", "import h2gpu")


def test_importing_the_package_imports_nothing_that_work_alone_needs():
    late = {"cupy", "matplotlib", "sklearn", *(f"scipy.{name}" for name in ("linalg", "sparse", "spatial", "special"))}
    code = f"import sys, h2gpu, h2gpu.distributed; print(sorted({late} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
