"""python tests/fuzz/guided.py expression|covariance|matrix [libFuzzer's options]: fuzzing guided by coverage.

The parser of expressions, the reader of covariances in a header, and the checks of a matrix file get bytes that
libFuzzer (atheris) changes, keeping what reaches new code. What they may raise is one ValueError of one line; anything
else ends the run with the input in a file. Needs the extra `fuzz`; -max_total_time=60 and -seed=1 are libFuzzer's.
"""

import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["h2gpu.covariance", "h2gpu.storage"]):
    import cases_expressions
    import cases_files
    from battery import one_line

    from h2gpu.covariance import from_parameters


def expression(data):
    cases_expressions.read(data.decode("latin-1"))


def covariance(data):
    try:
        given = json.loads(data)
    except ValueError:  # json refuses bytes and depth itself
        return
    except RecursionError:
        return
    try:
        from_parameters(given)
    except ValueError as error:
        one_line(error)


def matrix(data):
    """The first byte chooses a file; of the others two are a place and one is exclusive-ored to what is there."""
    whole = bytearray(cases_files.saved("2D" if data[:1] < b"\x80" else "factors"))
    for place in range(1, len(data) - 2, 3):
        at = int.from_bytes(data[place : place + 2]) % len(whole)
        whole[at] ^= data[place + 2]
    PATH.write_bytes(cases_files.repaired(bytes(whole)))
    cases_files.judged(PATH, "2D" if data[:1] < b"\x80" else "factors")


TARGETS = {"expression": expression, "covariance": covariance, "matrix": matrix}
SEEDS = {
    "expression": [b"r > 0 ? sin(r) / r : 1", b"a * exp(-pow(fabs(x[0] - y[0]), 1.5))", b"fmin(atan2(r, 2.5e-3), 1)"],
    "covariance": [b'{"name": "Matern", "variance": 1, "length_scale": [1, 2], "smoothness": 0.5}'],
    "matrix": [bytes(31), b"\x80" + bytes(30)],
}

if __name__ == "__main__":
    target = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if target not in TARGETS:
        sys.exit(f"expected one of {', '.join(TARGETS)}, got {target!r}")
    with tempfile.TemporaryDirectory() as folder:
        PATH, corpus = Path(folder) / "changed.h5", Path(folder) / "corpus"
        corpus.mkdir()
        for number, seed in enumerate(SEEDS[target]):
            (corpus / str(number)).write_bytes(seed)
        atheris.Setup([*sys.argv, str(corpus)], TARGETS[target])
        atheris.Fuzz()
