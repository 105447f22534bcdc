"""Expressions: random ones against a C++ compiler, texts of any kind against the parser, headers against the reader.

The parser spells an expression as C++ for the GPU and evaluates it by arrays on the CPU: the two must agree. What is
no expression is one ValueError, in time, whatever it is.
"""

import ctypes
import re
import shutil
import subprocess

import numpy as np
from battery import battery, expect, one_line
from cases_matrices import covariance

from h2gpu.covariance import Expression, formula, from_parameters

COMPILER = shutil.which("g++")
PIECES = (
    "r", "x[0]", "y[0]", "x", "y[", "]", "(", ")", "+", "-", "*", "/", "?", ":", "<", "<=", "==", "&&", "||", "!", ",",
    "1", ".5", "1e3", "1e400", "exp", "pow", "sqrt(", "fmin(", "atan2", "a", " ", "\n", "//", "/*", "#", "__asm__", '"',
    "\\", "p[0]", "0x1p3", "1f", "Real", "sizeof", ";", "{", "}", "é", "\0", "eval", "__import__", "r" * 300,
    "(" * 40, "-" * 40,
)  # fmt: skip
HEAD = "#include <cmath>\nusing namespace std; typedef double Real;\n"


def sentence(rng, depth=0):
    """A random number of the grammar, of any shape."""
    kind = rng.integers(9) if depth < 4 else rng.integers(3)
    inner = lambda: sentence(rng, depth + 1)  # noqa: E731
    if kind <= 1:
        return str(rng.choice(["r", "x[0]", "y[1]", "a", "b"]))
    if kind == 2:
        return f"{rng.uniform(0, 10):.{rng.integers(1, 17)}g}"
    if kind == 3:
        return f"{rng.choice(['-', '+'])} {inner()}"
    if kind == 4:
        return f"({inner()} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {inner()} ? {inner()} : {inner()})"
    if kind == 5:
        name = str(rng.choice(sorted(formula.FUNCTIONS)))
        return f"{name}({', '.join(inner() for _ in range(formula.FUNCTIONS[name][1]))})"
    return f"({inner()}) {rng.choice(list('+-*/'))} {inner()}"


@battery("expressions: against a C++ compiler")
def compiled(rng, folder):
    if COMPILER is None:
        return "no compiler"
    parsed = []
    while len(parsed) < 25:
        try:
            parsed.append(formula.parse(sentence(rng), ("a", "b")))
        except ValueError as error:
            one_line(error)
    body = "".join(
        f'extern "C" Real f{i}(Real r, const Real* x, const Real* y, const Real* p) {{ return {f.spelled}; }}\n'
        for i, f in enumerate(parsed)
    )
    (folder / "all.cpp").write_text(HEAD + body)
    command = [COMPILER, "-O0", "-ffp-contract=off", "-w", "-shared", "-fPIC", "all.cpp", "-o", "all.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    expect(done.returncode == 0, f"C++ that does not compile: {done.stderr:.200}")
    library = ctypes.CDLL(str(folder / "all.so"))
    pointer = ctypes.POINTER(ctypes.c_double)
    for i, f in enumerate(parsed):
        function = getattr(library, f"f{i}")
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double, pointer, pointer, pointer]
        for _ in range(5):
            r, x, y, p = rng.exponential(), rng.standard_normal(2), rng.standard_normal(2), rng.uniform(0, 3, 2)
            theirs = function(r, *(v.ctypes.data_as(pointer) for v in (x, y, p)))
            names = {"r": np.array([r]), "x": [x[:1], x[1:]], "y": [y[:1], y[1:]], "a": p[0], "b": p[1]}
            with np.errstate(all="ignore"):
                ours = float(np.broadcast_to(f.value(formula.Values(np, np.float64, names)), 1)[0])
                near = _neighbours(f, names)
            same = (np.isnan(ours) and np.isnan(theirs)) or ours == theirs
            expect(same or abs(ours - theirs) <= near, f"{f.spelled:.200}: {ours!r} for {theirs!r}")
    return "lists of 25 that agree"


def _neighbours(f, names):
    """How much the value moves when its arguments move by rounding: libraries of functions differ by as much."""
    values = []
    for shift in (-4e-16, -1e-16, 1e-16, 4e-16, 1e-13, -1e-13):
        moved = {k: [c * (1 + shift) for c in v] if isinstance(v, list) else v * (1 + shift) for k, v in names.items()}
        values.append(float(np.broadcast_to(f.value(formula.Values(np, np.float64, moved)), 1)[0]))
    spread = max(values) - min(values)
    return np.inf if not np.isfinite(spread) else 100 * spread + 1e-12 * max(map(abs, values)) + 1e-300


@battery("expressions: any text")
def texts(rng, folder):
    if rng.random() < 0.5:
        text = "".join(PIECES[rng.integers(len(PIECES))] for _ in range(rng.integers(1, 30)))
    else:
        text = list(sentence(rng))
        for _ in range(rng.integers(1, 4)):
            text[rng.integers(len(text))] = PIECES[rng.integers(len(PIECES))]
        text = "".join(text)
    return read(text)


def read(text):
    """Refused with one line, or a covariance that has a value and comes back from its parameters."""
    try:
        cov = Expression(text, a=1.0) if "a" in text else Expression(text)
    except ValueError as error:
        one_line(error)
        return "refused"
    points = np.random.default_rng(0).random((3, cov.dimension or 2))
    cov.values(points[:, None], points)
    expect(from_parameters(cov.parameters()) == cov, f"{text!r:.200} does not come back")
    expect(
        re.fullmatch(r"[\w\s.+*/<>=!?:&|(),\[\]-]*", formula.parse(text, tuple(dict(cov.numbers))).spelled),
        "other signs",
    )
    return "a covariance"


@battery("expressions: parameters of a file")
def parameters(rng, folder):
    """What stands for a covariance in a file's header: refused with one line, or a covariance."""
    values = (
        1.0,
        -1.0,
        0,
        10**9,
        10**400,
        "r",
        "exp(-r)",
        None,
        [],
        {},
        True,
        float("inf"),
        [1.0, 2.0],
        "x" * 5000,
        {"name": "Matern"},
    )
    names = (
        "Exponential",
        "Matern",
        "Gaussian",
        "Expression",
        "Sum",
        "Product",
        "OnSphere",
        "Nugget",
        "Spherical",
        "os.system",
    )
    keys = (
        "variance",
        "length_scale",
        "smoothness",
        "text",
        "dimension",
        "numbers",
        "terms",
        "covariance",
        "radius",
        "rotation",
    )
    given = {"name": names[rng.integers(len(names))]}
    if rng.random() < 0.7:
        given = covariance(rng, 1.0, 2).parameters()
    if rng.random() < 0.1:
        given["\x1b[31m\n"] = 1
    for key in rng.choice(keys, rng.integers(3), replace=False):
        given[str(key)] = values[rng.integers(len(values))]
    if rng.random() < 0.2:
        given["terms"] = [{"name": "Exponential"}, given.copy()]
    try:
        cov = from_parameters(given)
    except ValueError as error:
        one_line(error)
        return "refused"
    cov.parameters()
    return "a covariance"
