"""Every public function, method and property is annotated wholly, and what it is annotated with exists."""

import functools
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import api_reference
import pytest

ROOT = Path(__file__).parents[1]
MODULES = [*api_reference.MODULES, "h2gpu.storage"]
OPERATORS = (
    "__init__",
    "__call__",
    "__matmul__",
    "__rmatmul__",
    "__add__",
    "__sub__",
    "__mul__",
    "__rmul__",
    "__neg__",
)


def functions(value):
    """What a public name calls: the function itself; of a class its public methods, properties and operators."""
    if not inspect.isclass(value):
        return [value] if callable(value) else []
    ours = [base for base in value.__mro__ if base.__module__.startswith("h2gpu")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_") or name in OPERATORS}
    return [f for name in sorted(names) if (f := plain(inspect.getattr_static(value, name))) is not None]


def plain(member):
    """The function behind a method, property or cached property, written by us; None for anything else."""
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, functools.cached_property):
        member = member.func
    member = inspect.unwrap(getattr(member, "__func__", member))
    written = inspect.isfunction(member) and not member.__code__.co_filename.startswith("<")
    return member if written and member.__module__.startswith("h2gpu") else None


def gaps(function):
    """Names of the parameters that lack an annotation, and "return"."""
    signature = inspect.signature(function)
    bare = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name not in ("self", "cls")]
    return bare + ["return"] * (signature.return_annotation is inspect.Signature.empty)


NAMES = [
    (module, name)
    for module in MODULES
    for name, value in api_reference.public(module).items()
    if inspect.isclass(value) or callable(value)
]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_is_annotated_wholly(module, name):
    value = getattr(importlib.import_module(module), name)
    found = {function.__qualname__: gaps(function) for function in functions(value)}
    assert not {name: missing for name, missing in found.items() if missing}


def test_a_gap_is_seen():
    def half(A: int, b, *rest: int):
        return A, b, rest

    class Holder:
        """With a property of no type."""

        @property
        def n(self):
            return 0

    assert gaps(half) == ["b", "return"]
    Holder.n.fget.__module__ = "h2gpu.x"
    assert [gaps(f) for f in functions(type("Public", (Holder,), {"__module__": "h2gpu.x"}))] == []
    Holder.__module__ = "h2gpu.x"
    assert [gaps(f) for f in functions(Holder)] == [["return"]]


@pytest.mark.slow
def test_the_typed_program_holds_for_mypy():
    pytest.importorskip("mypy", reason="mypy is a development tool")
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_wrong_use_is_told_by_mypy(tmp_path):
    pytest.importorskip("mypy", reason="mypy is a development tool")
    program = tmp_path / "wrong.py"
    program.write_text("import h2gpu\nh2gpu.covariance_matrix([[0.0]], 'exponential')\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and 'incompatible type "str"; expected "Covariance"' in done.stdout
