"""Studies of cycles: predicted parts make up the whole, tables and pictures, and on a GPU what the clocks say."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.peers import small as small_peers
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import gebrd as study_gebrd
from h2gpu.apps.studies import panels as study_panels
from h2gpu.apps.studies import small as study_small
from h2gpu.apps.studies import small_plots
from h2gpu.batched import model
from h2gpu.batched.model import bidiagonal as bidiagonal_counts
from h2gpu.batched.model import counts
from h2gpu.batched.model import registers as register_counts
from h2gpu.batched.registers.layouts import layout

DEVICE = "nvidia-h200"
PUBLISHED = Path(__file__).parents[3] / "benchmarks" / "batched" / "study_gebrd.csv"
PANELS = [case for case in study_small.cases() if case.figure == "8"]
SANITIZED = "SANITIZED" in os.environ  # a tool's instructions stand between the clocks
READING = 1e-3  # of all cycles: clocks are read some instructions before or after where the source says
REDUCTIONS = [(dtype, batch, n) for dtype in bench_cases.DTYPES for batch, n in bench_cases.GEBRD_ORDERS]


@pytest.mark.parametrize("routine", ["lu", "qr", "lstsq", "gauss-jordan", "solve"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_predicted_parts_add_up_to_the_whole(routine, dtype):
    k = int(routine in ("lstsq", "gauss-jordan", "solve"))
    grid = layout(dtype, 56, 56 + k, "2d")
    *_, parts = zip(*register_counts.block_parts(routine, dtype, 56, 56, k, grid))
    whole, constants = counts.added(*parts), model.Constants.of(DEVICE)
    assert register_counts.small(routine, dtype, 56, 56, k, grid) == whole
    problems = int(model.resident(whole) * constants("multiprocessors"))
    together = model.seconds(whole, problems, dtype, constants) - constants("launch")
    apart = sum(model.wave(parts, dtype, constants)) * (1 + 1e-9)
    assert (
        together <= apart <= (1.1 if (routine, dtype) in (("lu", "float32"), ("qr", "float32")) else 1.3) * together
    )  # what parts share cannot overlap


@pytest.mark.parametrize("case", PANELS, ids=lambda case: case.routine)
def test_panels_become_cheaper(case):
    found = study_panels.foretold(case.routine, case.dtype, case.n, case.batch, DEVICE)
    parts = ("publish", "update") if case.routine == "lu" else study_panels.PARTS[:-1]
    assert set(found) == {("load", ""), ("store", ""), *((panel, part) for panel in range(7) for part in parts)}
    for part in parts:
        times = [found[panel, part] for panel in range(7)]
        assert times == sorted(times, reverse=True) and times[-1] > 0
    assert sum(study_panels.summed(found).values()) == pytest.approx(sum(found.values()))


@pytest.mark.parametrize("dtype, batch, n", REDUCTIONS)
def test_predicted_reduction(dtype, batch, n):
    parts = list(bidiagonal_counts.parts(dtype, n, n, study_gebrd.SHARED_LIMIT))
    flops = sum(work.flops for _, work in parts)
    assert 1 < flops / (8 / 3 * n**3) < 3  # lanes beyond the edge compute too
    found = study_gebrd.foretold(dtype, batch, n, DEVICE)
    put_off = study_gebrd.kind(np.dtype(dtype).itemsize, n) == "device memory"
    assert [part for part, number in found.items() if number == 0] == ([] if put_off else ["products with V X Y U"])
    alone = study_gebrd.foretold(dtype, 1, n, DEVICE)
    assert all(alone[part] <= number for part, number in found.items())


def test_predictions_are_those_of_the_published_table():
    _, rows = tables.read(PUBLISHED)
    for dtype, batch, n in REDUCTIONS:
        measured = {
            r["part"]: float(r["cycles"])
            for r in rows
            if (r["dtype"], r["batch"], r["n"]) == (dtype, str(batch), str(n))
        }
        found = study_gebrd.foretold(dtype, batch, n, DEVICE)
        assert 0.6 < sum(found.values()) / measured["kernel"] < 1.4, (dtype, n)
        assert 0.75 < found["W r"] / measured["W r"] < 1.35, (dtype, n)


@pytest.mark.parametrize("case", PANELS, ids=lambda case: case.routine)
def test_loading_computing_and_storing_are_foretold(case):
    """Table V, as published."""
    _, rows = tables.read(PUBLISHED.with_name("study_panels.csv"))
    measured = {r["part"]: float(r["cycles"]) for r in rows if (r["routine"], r["figure"]) == (case.routine, "V")}
    found = study_panels.summed(study_panels.foretold(case.routine, case.dtype, case.n, case.batch, DEVICE))
    assert all(0.75 < number / measured[part] < 1.35 for part, number in found.items()), found


@pytest.mark.parametrize("case", PANELS, ids=lambda case: case.routine)
def test_loads_of_the_first_wave_and_of_later_ones_are_told_apart(case):
    """Their mean is that of all; later ones wait a third to a half as long, however many they are."""
    name, loads = (case.routine, case.dtype, case.n, DEVICE), np.repeat([9.0, 3.0], [1000, 7000])
    (_, ours, first), (_, others, later) = study_panels.by_wave(loads, *name)
    assert 3 == others < ours <= 9 and first / 4 < later < first / 2
    of_all = study_panels.foretold(*name[:3], len(loads), DEVICE)["load", ""]
    assert later < of_all < first
    assert study_panels.by_wave(np.ones(80_000), *name)[1][2] == pytest.approx(later)
    assert study_panels.by_wave(loads[:1000], *name) == study_panels.by_wave(loads, *name[:3], "abacus") == []


def test_tables_and_pictures(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(study_panels.timing, "device_ms", lambda *_: 2.0)
    monkeypatch.setattr(study_panels, "cycles", lambda routine, A: (invented(routine), 1e5, np.ones(len(A))))
    panels = [r for c in PANELS for r in study_panels.rows(c.routine, np.zeros((2, 56, 56), np.float32), DEVICE)]
    of_qr = [r for r in panels if (r["figure"], r["routine"]) == ("8", "qr")]
    assert len(of_qr) == 7 * 5 and {r["predicted / measured"] for r in of_qr if r["part"] != "clock"} == {0.5}
    assert [r["paper"] for r in panels if r.get("paper")] == [8800, 68250, 8740, 9120, 150203, 9762]
    peers = [small_peers.Peer(name, ms, ms, 1) for name, ms in (("others", 9.0), ("cpu", 90.0))]
    monkeypatch.setattr(small_peers, "times", lambda *_: peers)
    cases = [case for case in study_small.cases() if case.figure in study_small.PEERED]
    rates = [
        study_small.row(c, 1.0, 2.0) | small_peers.columns(c.routine, None, 1e-6 * study_small.flops(c)) for c in cases
    ]
    assert {(r["LAPACK"], r["peer"]) for r in rates} == {("cpu", "others")}
    assert all(r["peer GFLOP/s"] == pytest.approx(10 * r["LAPACK GFLOP/s"]) for r in rates)
    study_small.write(tmp_path, rates, panels, "Some GPU")
    assert not (tmp_path / "study_small.csv").exists()
    lines = [
        {"dtype": d, "n": n, "part": part, "share": 1 / 6, "predicted share": 1 / 6}
        for d, _, n in REDUCTIONS
        for part in bidiagonal_counts.PARTS
    ]
    tables.write(tmp_path / "study_gebrd.csv", lines, "Some GPU")
    assert small_plots.main([str(tmp_path)]) == 0
    for name in ("study_panels", "study_small_peers", "study_gebrd"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_rates_are_drawn_from_the_published_table():
    """Every row of a figure that has a time is a point, the model's beside it where there is one."""
    pytest.importorskip("matplotlib")
    _, rows = tables.read(PUBLISHED.with_name("study_small.csv"))
    figure = small_plots.rates(rows)
    lines = [line for axes in figure.axes for line in axes.lines]
    drawn = [r for r in rows if r["figure"] in ("4", "7", "9", "12") and r["ms"]]
    assert sum(len(line.get_xdata()) for line in lines[::2]) == len(drawn)
    assert sum(len(line.get_xdata()) for line in lines[1::2]) == sum(bool(r["predicted ms"]) for r in drawn)
    pytest.importorskip("matplotlib.pyplot").close(figure)


def test_the_design_space_is_drawn():
    """LU by a thread, by a block, by panels; a barrier of 1024 threads takes longer than one of 32."""
    pytest.importorskip("matplotlib")
    small, large = (tables.read(PUBLISHED.with_name(f"{name}.csv"))[1] for name in ("study_small", "batched_lu"))
    figure = small_plots.space(small, large, model.Constants.of(DEVICE))
    (barriers,), lines = (axes.lines for axes in figure.axes)
    assert barriers.get_ydata()[-1] > barriers.get_ydata()[0] and len(lines) == 3
    assert [max(line.get_xdata()) for line in lines] == [16, 128, 1024]
    pytest.importorskip("matplotlib.pyplot").close(figure)


def invented(routine):
    """Twice what is predicted, and clocks."""
    found = {place: 2 * number for place, number in study_panels.foretold(routine, "float32", 56, 2, DEVICE).items()}
    return found | {(panel, "clock"): 10.0 for panel in range(7)}


@pytest.mark.gpu
@pytest.mark.parametrize("case", PANELS, ids=lambda case: case.routine)
def test_cycles_of_panels(case):
    A, _ = study_small.problems(case._replace(batch=50))
    found, whole, loads = study_panels.cycles(case.routine, A)
    assert {panel for panel, _ in found} == {"load", "store", *range(7)}
    assert all(number > 0 for number in found.values()) and sum(found.values()) < whole
    assert loads.shape == (50,) and loads.mean() == pytest.approx(found["load", ""])


@pytest.mark.gpu
@pytest.mark.parametrize("n", [16, 64, 128, 160, 256, 512])
@pytest.mark.parametrize("dtype", bench_cases.DTYPES)
def test_cycles_of_reductions(dtype, n):
    found, whole = study_gebrd.cycles(study_gebrd.problems(dtype, 3, n))
    assert list(found) == list(study_gebrd.PARTS)
    assert sum(found.values()) > 0
    assert SANITIZED or sum(found.values()) < whole * (1 + READING)
    needed = study_gebrd.PARTS[: 6 if study_gebrd.kind(np.dtype(dtype).itemsize, n) == "device memory" else 5]
    assert all(found[part] > 0 for part in needed)


@pytest.fixture
def few(monkeypatch):
    """Small batches, nothing timed and nothing compiled beforehand."""
    monkeypatch.setattr(study_small, "BLOCK_BATCH", 20)
    monkeypatch.setattr(bench_cases, "GEBRD_ORDERS", ((4, 16), (2, 160), (2, 256)))
    monkeypatch.setattr(timing, "device_ms", lambda *_: 1.0)
    monkeypatch.setattr(timing, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(timing, "side_by_side", lambda *_: None)


@pytest.mark.gpu
def test_the_study_of_reductions(few, tmp_path):
    study_gebrd.main(["--output", str(tmp_path)])
    _, rows = tables.read(tmp_path / "study_gebrd.csv")
    assert {r["plan"] for r in rows} == {"registers", "shared memory", "device memory"}
    for dtype in bench_cases.DTYPES:
        shares = [float(r["share"]) for r in rows if (r["dtype"], r["n"]) == (dtype, "160") and r["share"]]
        assert sum(shares) == pytest.approx(1, abs=1e-3)


@pytest.mark.gpu
def test_the_study_of_panels(few, tmp_path):
    study_small.main(["--figures", "8", "--output", str(tmp_path)])
    _, rows = tables.read(tmp_path / "study_panels.csv")
    assert [r["part"] for r in rows[-4:]] == ["load", "compute", "store", "kernel, beginning to end"]
    assert not (tmp_path / "study_small.csv").exists()


@pytest.mark.gpu
def test_cublas_factorizes():
    pytest.importorskip("cupy_backends")
    A, _ = study_small.problems(PANELS[0]._replace(batch=5))
    torch = importlib.util.find_spec("torch") is not None
    for routine, count in (("lu", 3), ("gauss-jordan", 1 + torch), ("lstsq", 1 + torch)):
        assert [peer.ms > 0 for peer in small_peers.times(routine, [A])] == [True] * count


@pytest.mark.gpu
def test_a_routine_that_reads_back_is_timed_by_the_same_launches_again():
    case = study_small.Case("library", "pivoted_qr", "", "float32", 3, 8, 8)
    A, b = study_small.problems(case)
    factored, formed = launches = study_small.launches_of(study_small.calls(case, b), A)
    Q, R = (launch.arguments[3] for launch in (formed, factored))
    before = Q.get(), R.get()
    Q[...], R[...] = 0, 0
    study_small.relaunched(launches)
    assert all((now.get() == then).all() and then.any() for now, then in zip((Q, R), before))
