"""Files that contradict themselves, with checksums in order, are one ValueError."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored import matrix, refused, tampered

import h2gpu
from h2gpu.storage.layout import arrays_of


def put(name, value, index=0):
    def change(arrays):
        arrays[name][index] = value

    return change


def drop(name, count=1):
    return lambda arrays: {**arrays, name: arrays[name][:-count]}


def reordered(part):
    def change(arrays):
        for side in ("rows", "columns"):
            arrays[f"{part}/{side}"] = arrays[f"{part}/{side}"][::-1].copy()

    return change


def other_child(arrays):
    child = arrays["row_tree/first_child"]
    first, second = np.flatnonzero(child >= 0)[-2:]
    child[first], child[second] = child[second], child[first]


def mixed_precision(arrays):
    arrays["nearfield/entries"] = arrays["nearfield/entries"].astype(np.float32)


LARGE = 2**62
CONTRADICTIONS = {
    "not a permutation": (put("row_tree/permutation", 1, slice(0, 2)), "permutation: expected every point once"),
    "point out of range": (put("row_tree/permutation", 300), "permutation: expected points 0 to 299"),
    "negative point": (put("row_tree/permutation", -1), "permutation: expected points 0 to 299"),
    "cyclic tree": (put("row_tree/first_child", 0), "first_child: expected level order"),
    "children out of range": (put("row_tree/first_child", LARGE), "first_child: expected level order"),
    "two parents": (put("row_tree/first_child", -1), "first_child: expected two clusters for every parent"),
    "children swapped": (other_child, "first_child: expected level order"),
    "wrong parent": (put("row_tree/parent", 0, -1), "parent: expected the inverse"),
    "parent of the root": (put("row_tree/parent", 0), "parent: expected the inverse"),
    "range beyond the points": (put("row_tree/stop", 301), "start: expected a root of all points"),
    "empty cluster": (put("row_tree/start", 300, -1), "stop: expected ranges of points"),
    "overlapping siblings": (put("row_tree/stop", 200, 1), "start: expected children that share out"),
    "levels out of range": (put("row_tree/level_offsets", LARGE, 2), "level_offsets: expected growing numbers"),
    "levels shifted": (put("row_tree/level_offsets", 2, 2), "level_offsets: expected the children of the level"),
    "no levels": (drop("row_tree/level_offsets", 6), "level_offsets: expected"),
    "box inside out": (put("row_tree/lower", 9.0), "lower: expected boxes with lower"),
    "box not a number": (put("row_tree/lower", np.nan), "lower: expected boxes with lower"),
    "box infinite": (put("row_tree/upper", np.inf), "upper: expected finite numbers"),
    "a cluster short": (drop("row_tree/stop"), "stop: expected .* clusters, got"),
    "a box short": (drop("row_tree/upper"), "upper: expected .* clusters, got"),
    "negative rank": (put("row_basis/ranks", -1, -1), "ranks: expected ranks from 0"),
    "absurd rank": (put("row_basis/ranks", LARGE), "ranks: expected ranks from 0"),
    "rank of no entries": (put("row_basis/ranks", 400), "ranks: expected parents' ranks within"),
    "rank too large": (put("row_basis/ranks", 9, -1), "leaf: expected .* entries"),
    "a rank short": (drop("row_basis/ranks"), "ranks: expected .* clusters"),
    "leaf short": (drop("row_basis/leaf"), "leaf: expected .* entries"),
    "transfer short": (drop("row_basis/transfer"), "transfer: expected .* entries"),
    "entry not a number": (put("row_basis/transfer", np.nan), "transfer: expected finite"),
    "couplings short": (drop("couplings/entries"), "couplings/entries: expected .* entries"),
    "nearfield short": (drop("nearfield/entries"), "nearfield/entries: expected .* entries"),
    "row out of range": (put("couplings/rows", LARGE), "couplings/rows: expected clusters 0"),
    "column out of range": (put("nearfield/columns", -2), "nearfield/columns: expected clusters 0"),
    "coupling of a cluster with itself": (put("couplings/columns", 0, slice(0, 1)), "couplings/"),
    "dense inner cluster": (put("nearfield/rows", 0), "nearfield/rows: expected pairs of leaves"),
    "unsorted couplings": (reordered("couplings"), "couplings/rows: expected blocks sorted"),
    "unsorted nearfield": (reordered("nearfield"), "nearfield/rows: expected blocks sorted"),
    "blocks of unequal number": (drop("nearfield/columns"), "nearfield/columns: expected .* blocks"),
    "mixed precision": (mixed_precision, "nearfield/entries: expected float64"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_refused(name, tmp_path):
    change, words = CONTRADICTIONS[name]
    tampered(tmp_path / "matrix.h5", change)
    if name == "coupling of a cluster with itself":
        words = "couplings/|cover"
    refused(tmp_path / "matrix.h5", words)


def test_a_hole_in_the_matrix_is_refused(tmp_path):
    def hole(arrays):
        last = int(np.argmax(arrays["nearfield/rows"] != arrays["nearfield/columns"]))
        t, s = arrays["nearfield/rows"][last], arrays["nearfield/columns"][last]
        sizes = arrays["row_tree/stop"] - arrays["row_tree/start"]
        for side in ("rows", "columns"):
            arrays[f"nearfield/{side}"] = np.delete(arrays[f"nearfield/{side}"], last)
        arrays["nearfield/entries"] = arrays["nearfield/entries"][: -sizes[t] * sizes[s]]

    tampered(tmp_path / "matrix.h5", hole)
    refused(tmp_path / "matrix.h5", "blocks that cover 300 × 300")


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_integer_of_a_file_can_make_a_product_read_outside(data, tmp_path):
    """Any change of the structure is refused, or leaves a matrix that multiplies."""
    case = data.draw(st.sampled_from(["2D", "rectangular", "one leaf", "two precisions"]))
    A, path = matrix(case), tmp_path / "matrix.h5"
    names = [name for name, array in arrays_of(A).items() if array.dtype == np.int64 and array.size]
    values = st.one_of(st.integers(-3, 400), st.sampled_from([-(2**63), 2**63 - 1, 2**31, 2**32 + 1]))

    def change(arrays):
        for _ in range(data.draw(st.integers(1, 3))):
            array = arrays[data.draw(st.sampled_from(names))]
            array[data.draw(st.integers(0, len(array) - 1))] = data.draw(values)

    tampered(path, change, A.symmetric, case)
    try:
        B = h2gpu.load(path)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        assert np.isfinite(B @ np.ones(A.shape[1])).all() and np.isfinite(B.T @ np.ones(A.shape[0])).all()
