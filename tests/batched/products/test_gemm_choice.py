"""The method that products of one shape take by themselves: the tables of the H200, without a GPU."""

import csv

import numpy as np
import pytest
from places import ROOT

from h2gpu.batched.device import tuning
from h2gpu.batched.products import choice, fixed_plans

MANY = 1 << 30
SLOWER = 0.9  # of the vendor's rate, beyond what measurements of two days differ
MEASURED = ROOT / "benchmarks" / "batched" / "batched_sizes.csv"


@pytest.fixture(autouse=True)
def table(monkeypatch):
    monkeypatch.setattr(tuning, "_device_folder", lambda routine: tuning.FALLBACK)


def chosen(dtype, n, batch=MANY, transposed=False):
    return choice.chosen(np.dtype(dtype), batch, (n, n, n), transposed)


def measured(dtype):
    """(size, the vendor's time over that of the kernel compiled for it)."""
    with MEASURED.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = [row for row in rows if (row["routine"], row["method"], row["dtype"]) == ("gemm", "fixed", dtype)]
    return [(int(row["shape"].removesuffix("³")), float(row["peer / ms"])) for row in rows]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sizes_are_compiled_where_that_was_measured_faster(dtype):
    sizes = dict(measured(dtype))
    assert set(sizes) == set(range(1, fixed_plans.LARGEST + 1))
    for n, gain in sizes.items():
        assert chosen(dtype, n) in ("fixed", "vendor")
        if chosen(dtype, n) == "fixed":
            assert gain >= SLOWER
        elif n in (32, 64, 128):
            assert gain <= 1 / SLOWER
    taken = sum(chosen(dtype, n) == "fixed" for n in sizes)
    assert taken >= 0.65 * len(sizes)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_size_is_compiled_where_that_does_not_pay(dtype):
    real = np.dtype(dtype)
    for n in range(1, 200):
        assert chosen(dtype, n, (choice.WORTH - 1) // n**3) in ("tiles", "vendor")
        assert chosen(dtype, n, transposed=True) == "tiles"
    assert chosen(dtype, 65, -(-choice.WORTH // 65**3)) == "fixed"
    assert choice.chosen(real, MANY, (65, 66, 67), False) == "fixed"
    assert choice.chosen(real, MANY, (65, 2, 65), False) != "fixed"
    assert all(chosen(dtype, n) in ("tiles", "vendor") for n in (fixed_plans.LARGEST + 1, 1000))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nobody_asks_the_vendor_for_products_that_are_done_sooner(dtype):
    for n in range(1, choice.TILE + 1):
        assert chosen(dtype, n, (choice.ASKED - 1) // n**3) == "tiles"
    assert chosen(dtype, 32, -(-choice.ASKED // 32**3)) == "vendor"
    assert chosen(dtype, 128, 1) == "vendor"


def test_rows_in_whole_pieces_are_the_vendors_where_it_is_faster():
    assert [chosen("float64", n) for n in (63, 64, 111, 112, 159, 160)] == ["fixed", "vendor"] * 3
    assert choice.chosen(np.dtype(np.float64), MANY, (64, 63, 64), False) == "fixed"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_have_kernels_for_their_size_alone(dtype):
    assert chosen(dtype, 5, 1) == "fixed" and chosen(dtype, 300) == "fixed"
