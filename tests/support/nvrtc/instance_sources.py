"""Where instances are read from: the tuning tables and the constants of the launching modules."""

import ast
import csv

import numpy as np

from h2gpu.batched.device import compiler

DTYPES = (np.float64, np.float32)
COMPLEX = (np.complex128, np.complex64)
SHARED_LIMIT = 223 << 10  # bytes of a thread block on sm_90


def constants(*names):
    """The numbers launching modules are written with, read from their texts: they import CuPy, which may be missing."""
    folder, found = compiler.source_folder().parent / "h2gpu", {}
    texts = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in names]
    for node in (node for text in texts for node in ast.parse(text).body):
        if isinstance(node, ast.Assign):
            names = [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            try:
                values = ast.literal_eval(node.value)
            except ValueError:
                continue
            found.update(zip(names, values) if isinstance(node.targets[0], ast.Tuple) else [(names[0], values)])
    return found


def rows(routine):
    """The rows of a routine's tables of all devices."""
    for path in sorted(compiler.source_folder().glob(f"tuning/*/{routine}.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)
