"""The pages of the API reference: one a public module, one a public name, written from `__all__` before Sphinx reads.

    pages(folder)    module page: docstring, table of names     name page: autofunction, autoclass with its methods

A name that a module adds to its `__all__` comes in by itself.
"""

import importlib
import inspect
import sys
from pathlib import Path

from docstrings import blocks, converted, is_example, prose

MODULES = {
    "h2gpu": "Matrices",
    "h2gpu.covariance": "Covariances",
    "h2gpu.solvers": "Solvers",
    "h2gpu.statistics": "Statistics",
    "h2gpu.batched": "Batched linear algebra",
    "h2gpu.batched.registers": "Small problems in registers",
    "h2gpu.distributed": "Many processes",
    "h2gpu.distributed.solvers": "Solvers of many processes",
    "h2gpu.distributed.statistics": "Kriging by many processes",
}


def public(module):
    """{name: object} of what a module's `__all__` lists, modules apart."""
    owner = importlib.import_module(module)
    names = owner.__all__ if hasattr(owner, "__all__") else [n for n in vars(owner) if own_function(owner, n)]
    found = {name: getattr(owner, name) for name in sorted(names, key=str.lower)}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def own_function(owner, name):
    """Whether a public function of this name was written in the module itself."""
    value = getattr(owner, name)
    return inspect.isfunction(value) and not name.startswith("_") and value.__module__ == owner.__name__


def methods(cls):
    """Public methods and properties of a class that classes of this project define and say something of."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("h2gpu")]
    names = dict.fromkeys(name for base in ours for name in vars(base) if not name.startswith("_"))
    return [name for name in names if described(inspect.getattr_static(cls, name))]


def described(member):
    """Whether it is a method or property with a docstring of its own."""
    member = getattr(member, "__func__", member)
    return (inspect.isfunction(member) or isinstance(member, property) or hasattr(member, "func")) and bool(
        inspect.getdoc(member)
    )


def page_name(module, name, value):
    """The page's file, without suffix: classes apart from functions, also where case does not count."""
    return f"{module}.{name}" + ("-class" if inspect.isclass(value) else "")


def module_page(module, title):
    """The text of a module's page."""
    names = public(module)
    pages = [page_name(module, name, value) for name, value in names.items()]
    rows = [f"   * - :py:obj:`~{module}.{name}`\n     - {summary(value)}" for name, value in names.items()]
    return "\n".join(
        [
            f"{title}\n{'=' * len(title)}\n",
            f".. automodule:: {module}\n   :no-members:\n",
            ".. list-table::\n   :widths: 30 70\n   :class: names\n",
            *rows,
            "\n.. toctree::\n   :hidden:\n",
            *(f"   {name} <{page}>" for name, page in zip(names, pages)),
            "",
        ]
    )


def summary(value):
    """The first sentence of its docstring."""
    return prose(" ".join(inspect.getdoc(value).split("\n\n")[0].split()))


def name_page(module, name, value):
    """The text of a name's page."""
    head = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: {module}\n\n"
    return head + directive(module, name, value) + head_of_file(value)


def head_of_file(value):
    """What its file says at its head: the equation and the reference, examples apart."""
    if value.__module__ in MODULES:
        return ""  # the module's page has it
    text = inspect.getdoc(sys.modules[value.__module__]) or ""
    said = "\n\n".join(converted(block) for block in blocks(text) if not is_example(block))
    return f"\n.. rubric:: At the head of its file, {value.__module__}\n\n{said}\n"


def directive(module, name, value):
    """What documents it."""
    if not inspect.isclass(value):
        return f".. autofunction:: {module}.{name}\n"
    members = ", ".join(methods(value))
    options = f"   :members: {members}\n   :member-order: bysource\n" if members else "   :no-members:\n"
    return f".. autoclass:: {module}.{name}\n" + options


def write(folder):
    """Writes all pages into the folder; those that say the same already are left untouched."""
    texts = {f"{module}.rst": module_page(module, title) for module, title in MODULES.items()}
    for module in MODULES:
        for name, value in public(module).items():
            texts[page_name(module, name, value) + ".rst"] = name_page(module, name, value)
    save(Path(folder), texts)


def save(folder, texts):
    """Files of these names and texts in a folder, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
