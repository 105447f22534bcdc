"""The places of an operation are found by its name, and no room is too full to look around in."""

import ast
import tomllib

import pytest
from places import ROOT

OPERATIONS = ("copies", "products", "registers", "qr", "bidiagonal", "svd", "systems", "least_squares")
NO_KERNELS = {"least_squares"}  # stands on those of others
MOST = 15  # files of a folder
OPTIONAL = {
    "cupy",
    "cupyx",
    "matplotlib",
    "mpi4py",
    "rdata",
    "resource",
    "shapely",
    "sklearn",
}  # asked for where needed
INNER = {  # of our own: kernels that a CPU never asks for, and values that make one another
    ("h2gpu/batched/products/gaussian.py", "h2gpu.batched.device.compiler"),
    ("h2gpu/batched/products/gaussian.py", "h2gpu.batched.device.launch"),
    ("h2gpu/covariance/base.py", "h2gpu.covariance.algebra"),
    ("h2gpu/h2matrix/matrix.py", "h2gpu.h2matrix.algebra"),
    ("h2gpu/h2matrix/matrix.py", "h2gpu.h2matrix.norms"),
    ("h2gpu/h2matrix/matrix.py", "h2gpu.h2matrix.skeletons"),
}
FOLDERS = sorted({p.parent for top in ("h2gpu", "kernels", "apps", "tests") for p in (ROOT / top).rglob("*.[pc]*[yh]")})


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_has_one_name_everywhere(operation):
    room = ROOT / "h2gpu" / "batched" / operation
    assert all((room / name).is_file() for name in ("__init__.py", "cpu.py", "cuda.py"))  # door and twins
    assert any((ROOT / "kernels" / operation).glob("*.cuh")) == (operation not in NO_KERNELS)
    assert any((ROOT / "tests" / "batched" / operation).glob("test_*.py"))


def test_qr_is_found_in_all_its_places():
    assert any((ROOT / "kernels" / "tuning" / "nvidia-h200").glob("qr*.csv"))
    assert '"qr"' in (ROOT / "apps" / "benchmarks" / "cases.py").read_text(encoding="utf-8")


def test_no_folder_is_too_full():
    counts = {p.relative_to(ROOT).as_posix(): sum(f.is_file() for f in p.iterdir()) for p in FOLDERS}
    assert not [folder for folder, count in counts.items() if count > MOST]


def test_every_package_is_installed():
    """Every folder with an __init__.py, and kernels/; the first step of the commands has a name of its own."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = [p.parent.relative_to(ROOT) for top in ("h2gpu", "apps") for p in (ROOT / top).rglob("__init__.py")]
    names = [".".join(folder.parts if folder.parts[0] == "h2gpu" else ("h2gpu", *folder.parts)) for folder in folders]
    names[names.index("h2gpu.apps.start")] = "h2gpu_start"
    assert sorted(config["packages"]) == sorted([*names, "h2gpu.kernels"])


def inner_imports(path):
    """Modules that functions of a file import."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    yield node.module
                elif isinstance(node, ast.Import):
                    yield from (name.name for name in node.names)


def test_functions_import_what_is_optional_alone():
    files = sorted((ROOT / "h2gpu").rglob("*.py"))
    found = {(p.relative_to(ROOT).as_posix(), module) for p in files for module in inner_imports(p)}
    assert {(file, module) for file, module in found if module.split(".")[0] not in OPTIONAL} == INNER


def test_files_of_tests_have_names_of_their_own():
    """Pytest imports them by their names alone, without their folders."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
