"""The benchmark of the batched routines without a GPU: what is reported, written and drawn."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from h2gpu.apps.autotune import kernel_report
from h2gpu.apps.benchmarks import batched as bench_batched
from h2gpu.apps.benchmarks import cases as bench_cases
from h2gpu.apps.benchmarks.peers import peers
from h2gpu.apps.benchmarks.report import plots as bench_plots
from h2gpu.apps.benchmarks.report import profiles as bench_profiles
from h2gpu.apps.benchmarks.report import tables

CASES = list(bench_cases.chosen(bench_cases.GROUPS, bench_cases.DTYPES, False))


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# What the profiles say


def test_kernels_by_their_mangled_names():
    assert kernel_report.name("_ZN3svd8svd_gramIdLi32ELb0ELi8EEEvPKxii") == "svd_gram"
    assert kernel_report.instance("_ZN3svd8svd_gramIdLi32ELb0ELi8EEEvPKxii") == "svd_gram<double, 32, false, 8>"
    assert kernel_report.instance("_ZN2qr10blocked_qrIdLi1ELi4EEEvPKT_PS1_S4_PKxxiiS4_xb") == "blocked_qr<double, 1, 4>"
    assert kernel_report.instance("_ZN7studies4holdEy") == "hold"
    assert kernel_report.name("_Z8svd_gramIdLi32ELb0ELi8EEvPKxii") == "svd_gram"
    assert kernel_report.instance("_Z8svd_gramIdLi32ELb0ELi8EEvPKxii") == "svd_gram<double, 32, false, 8>"
    assert kernel_report.instance("_Z4holdy") == "hold" and kernel_report.instance("something") == "something"
    assert kernel_report.instance("_Z5pairsIfLin3E3SumIdEEvv") == "pairs<float, -3, …>"
    assert {bench_profiles.phase_of(kernel) for kernel in ("gemm", "thin_product", "thin_parts")} == {"products"}
    assert (
        bench_profiles.phase_of("householder_qr") == "QR" and bench_profiles.phase_of("gather") == bench_profiles.REST
    )


def test_q_takes_what_r_alone_does_not():
    case = next(c for c in CASES if c.figure == "4a" and c.batch == 200 and c.routine == "qr" and c.shape == (64, 64))
    alone = next(c for c in CASES if (c.routine, c.batch, c.shape, c.dtype) == ("qr_r", 200, (64, 64), case.dtype))
    rows = [bench_batched.described(case) | {"ms": 4.0}, bench_batched.described(alone) | {"ms": 1.0}]
    assert [(r["phase"], r["ms"], r["share"]) for r in bench_profiles.of_qr(rows)] == [("R", 1, 0.25), ("Q", 3, 0.75)]
    assert bench_profiles.of_qr(rows[:1]) == []
    assert bench_profiles.of_qr([rows[0] | {"ms": 0.5}, rows[1]]) == []  # another kernel: no share of R's


def test_phases_and_rest_add_up_to_the_wall(rng):
    """Every moment of a call is somebody's: of the phases that run then, in equal parts, or the rest's."""
    spans = [(str(rng.choice(["gemm", "svd_gram", "gather"])), *sorted(rng.integers(0, 100, 2))) for _ in range(30)]
    phases = [(bench_profiles.phase_of(kernel), *times) for kernel, *times in spans if times[0] < 40 or times[0] > 60]
    spent, expected = bench_profiles.shared_out(phases, 110.0), dict.fromkeys([name for name, *_ in phases], 0.0)
    for moment in range(110):
        running = [name for name, begin, end in phases if begin <= moment < end] or [bench_profiles.OUTSIDE]
        for name in running:
            expected[name] = expected.get(name, 0) + 1 / len(running)
    assert spent == pytest.approx(expected) and sum(spent.values()) == pytest.approx(110)
    case = next(c for c in CASES if c.figure == "10")
    rows = bench_profiles.rows(case, (spans, 110.0), 90.0)
    assert sum(r["ms"] for r in rows) == pytest.approx(110) and sum(r["share"] for r in rows) == pytest.approx(1)
    assert {(r["wall ms"], r["alone ms"]) for r in rows} == {(110.0, 90.0)}
    assert bench_profiles.shared_out([], 2.0) == {bench_profiles.OUTSIDE: 2.0}


# What is compared and reported


def test_odd_products_are_compared_with_their_neighbours():
    def row(n, rate):
        return {"routine": "gemm", "dtype": "float64", "shape": f"{n}³", "GFLOP/s": rate}

    rows = bench_batched.with_neighbours([row(32, 10.0), row(33, 5.0), row(63, 9.0), row(64, 12.0), row(127, 3.0)])
    assert [r.get("of even size") for r in rows] == [None, 0.5, 0.75, None, None]
    rows = bench_batched.with_neighbours([row(5, 1.0), row(6, 1.0), row(7, 3.0)])
    assert [r.get("of neighbours") for r in rows] == [None, 0.5, None]
    assert bench_batched.dips(rows) == {"float64": "6³"}
    target = [row(n, 10.0) | {"figure": bench_cases.GEMM_TARGET} for n in (32, 33)]
    assert [r.get("target of even size") for r in bench_batched.with_neighbours(target)] == [None, 0.85]
    sizes = {case.shape[0] for case in bench_cases.targets("float64") if case.routine == "gemm"}
    assert sizes == {32, 33, 64, 65, 127, 128}


def test_failing_rows_are_told(monkeypatch, capsys):
    bench = bench_batched.Bench(with_peers=False)
    gpu = FakeCupy(monkeypatch)
    monkeypatch.setattr(bench, "measured", lambda case: 1 / 0)
    bench.add(CASES[0])
    (row,) = bench.tables["targets"]
    assert bench.failed == 1 and row["note"].startswith("ZeroDivisionError") and row["ms"] is None
    assert "ZeroDivisionError" in capsys.readouterr().out
    gpu.broken = True
    with pytest.raises(bench_batched.FailureError, match="the device failed after qr float64"):
        bench.add(CASES[0])
    monkeypatch.setattr(bench, "measured", lambda case: None)  # a method that this size does not admit
    gpu.broken = False
    bench.add(CASES[0])
    assert len(bench.tables["targets"]) == 2


class FakeCupy:
    """As much of CuPy as Bench.add asks."""

    broken = False

    def __init__(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupy", self)
        self.cuda = self

    def Device(self):
        return self

    def synchronize(self):
        if self.broken:
            raise RuntimeError("illegal address")

    def get_default_memory_pool(self):
        return self

    def free_all_blocks(self):
        pass


# What is written and drawn


def test_tables_keep_their_circumstances(tmp_path):
    rows = [{"a": 1, "b": 2.0, "c": None}, {"a": 3, "c": "", "d": "x,y"}]
    assert tables.columns(rows) == ["a", "b", "d"]
    tables.write(tmp_path / "t.csv", rows, "Some GPU")
    about, read = tables.read(tmp_path / "t.csv")
    assert "device: Some GPU" in about and any(line.startswith("commit: ") for line in about)
    assert read == [{"a": "1", "b": "2", "d": ""}, {"a": "3", "b": "", "d": "x,y"}]
    assert tables.markdown(rows).splitlines()[2:] == ["| 1 | 2 |  |", "| 3 |  | x,y |"]
    assert tables.text([]) == ""


@pytest.mark.parametrize("module", ["h2gpu.apps.benchmarks.defaults.__main__", "h2gpu.apps.benchmarks.defaults"])
def test_the_command_that_a_table_records_is_what_one_types(module, monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=SimpleNamespace(name=module)))
    monkeypatch.setattr(sys, "argv", ["defaults", "--log2", "17"])
    assert tables.circumstances("x")[-1] == "command: python -m h2gpu.apps.benchmarks.defaults --log2 17"


def measured(case, ms):
    """A row as of a run."""
    row = bench_batched.described(case) | {"ms": ms, "call ms": 2 * ms, "GFLOP/s": 5.0 / ms, "occupancy": 0.25}
    return row | bench_batched.compared(case, ms, [peers.Peer("gesvdj", 9 * ms, 9 * ms, 4)])


@pytest.mark.slow
def test_pages_and_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    found = {name: [] for name in bench_batched.ABOUT}
    for case in CASES:
        found[case.table].append(measured(case, 1e-6 * case.shape[0] ** 2 * case.shape[1]))
    found["qr"][0] |= {"ms": None, "GFLOP/s": None, "note": "failed"}
    for n in (64, 128):
        row = {"figure": "9", "routine": "svd", "method": "block-gram", "dtype": "float64", "n": n}
        found["profiles"] += [row | {"phase": phase, "ms": 1.0, "share": 0.5} for phase in ("QR", "products")]
    bench_batched.write(tmp_path, found, "Some GPU")
    page = (tmp_path / "batched.md").read_text(encoding="utf-8")
    assert page.count("- device: Some GPU") == len([rows for rows in found.values() if rows])
    assert "## QR (figure 4)" in page and "| failed |" in page and "measured elsewhere on an H200" in page
    assert bench_plots.main([str(tmp_path)]) == 0
    pictures = {path.name for path in tmp_path.glob("*.png")}
    kinds = ("qr", "svd_small", "svd_large", "gebrd", "lu", "peers", "profiles", "sizes")
    assert pictures == {f"batched_{kind}.png" for kind in kinds}


def test_profiles_without_methods_are_drawn(tmp_path):
    """Randomized SVDs alone: a column that is empty in all rows is not in the file."""
    pytest.importorskip("matplotlib")
    row = {"figure": "11", "routine": "rsvd", "method": "", "dtype": "float64", "n": 64}
    found = {name: [] for name in bench_batched.ABOUT}
    profiles = [row | {"phase": phase, "ms": 1.0, "share": 0.5} for phase in ("QR", "products")]
    bench_batched.write(tmp_path, found | {"profiles": profiles}, "Some GPU")
    assert bench_plots.main([str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.glob("*.png")] == ["batched_profiles.png"]


def test_a_part_of_the_tables_leaves_the_others(tmp_path):
    found = {name: [] for name in bench_batched.ABOUT}
    bench_batched.write(tmp_path, found | {"qr": [measured(CASES[0], 1.0)]}, "First GPU")
    bench_batched.write(tmp_path, found | {"svd": [measured(CASES[0], 1.0)]}, "Second GPU")
    page = (tmp_path / "batched.md").read_text(encoding="utf-8")
    assert "- device: First GPU" in page and "- device: Second GPU" in page


def of_svd(count=None):
    """Rows of so many cases of the SVDs' table, as a run writes them; all for None."""
    cases = [case for case in CASES if case.table == "svd"][:count]
    return {name: [] for name in bench_batched.ABOUT} | {"svd": [measured(case, 1.0) for case in cases]}, cases


def test_a_part_replaces_no_table_that_has_more_cases(tmp_path):
    found, cases = of_svd()
    assert bench_batched.write(tmp_path, found, "First GPU", bench_batched.whole(cases)) == []
    part, few = of_svd(5)
    beside = tmp_path / ".unfinished" / "batched_svd.csv"
    waiting = bench_batched.write(tmp_path, part, "Second GPU", bench_batched.whole(few))
    assert waiting == [(beside, len(cases) - 5)]
    (line,) = bench_batched.told_of(waiting)
    assert line.startswith(f"{beside}: not published") and f" {len(cases) - 5} published rows" in line
    head, rows = tables.read(tmp_path / "batched_svd.csv")
    assert len(rows) == len(cases) and "device: First GPU" in head
    assert "Second GPU" not in (tmp_path / "batched.md").read_text(encoding="utf-8")
    assert len(tables.read(beside)[1]) == 5
    assert bench_batched.write(tmp_path, found, "Third GPU", bench_batched.whole(few)) == []  # it lacks none
    assert "device: Third GPU" in tables.read(tmp_path / "batched_svd.csv")[0] and not beside.exists()


def test_all_cases_replace_a_table_with_cases_that_are_no_more(tmp_path):
    older, cases = of_svd()
    older["svd"].append(older["svd"][0] | {"shape": "7×7"})
    bench_batched.write(tmp_path, older, "First GPU")
    assert bench_batched.write(tmp_path, of_svd()[0], "Second GPU", bench_batched.whole(cases)) == []
    assert len(tables.read(tmp_path / "batched_svd.csv")[1]) == len(cases)


def test_a_table_of_several_groups_is_whole_with_all_of_them():
    assert bench_batched.whole(CASES) == set(bench_batched.ABOUT)
    lacks = set(bench_batched.ABOUT) - bench_batched.whole([case for case in CASES if case.table != "rsvd"])
    assert lacks == {"rsvd", "profiles", "kernels"}
    assert "svd" not in bench_batched.whole([case for case in CASES if case.table != "svd"] + of_svd(5)[1])


@pytest.mark.parametrize("count", [3, None], ids=["cut short", "whole"])
def test_a_run_that_is_cut_short_leaves_the_table_and_tells(tmp_path, monkeypatch, capsys, count):
    """The table that is there has a case that is no more, too."""

    class Measured(bench_batched.Bench):
        def add(self, case):
            self.tables["svd"].append(measured(case, 1.0))
            if len(self.tables["svd"]) == count:
                raise KeyboardInterrupt

    found, cases = of_svd()
    found["svd"].append(found["svd"][0] | {"shape": "7×7"})
    bench_batched.write(tmp_path, found, "First GPU")
    monkeypatch.setattr(bench_batched, "Bench", Measured)
    monkeypatch.setattr(bench_batched, "compute_capability", lambda device: "90")
    monkeypatch.setattr(bench_batched.timing, "gpu_name", lambda: "Second GPU")
    monkeypatch.setattr(bench_batched.timing, "side_by_side", lambda work, items, processes: None)
    assert bench_batched.main(["svd", "--compilers", "7", "-o", str(tmp_path)]) == bool(count)
    out, beside = capsys.readouterr().out, tmp_path / ".unfinished" / "batched_svd.csv"
    assert "by 7 processes, none ahead" in out or "by 7 processes, some ahead" in out
    lost = f"batched_svd.csv: not published, for want of cases that {len(cases) - 2} published rows"
    assert (lost in out) == beside.exists() == bool(count)
    head, rows = tables.read(tmp_path / "batched_svd.csv")
    assert ("device: First GPU" in head, len(rows)) == ((True, len(cases) + 1) if count else (False, len(cases)))
    assert len(tables.read(beside)[1]) == 3 if count else "not published" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lud"], "GROUP: expected some of targets"),
        (["--dtypes", "float16"], "--dtypes: expected"),
        (["--bogus"], "see benchmarks.batched --help"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, words, capsys):
    assert bench_batched.main(arguments) == 2
    err = capsys.readouterr().err
    assert re.search(words, err) and err.startswith("benchmarks.batched: error: ") and err.count("\n") == 1
