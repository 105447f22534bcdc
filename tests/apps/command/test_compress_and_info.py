"""What h2compress and h2info write and tell."""

import json

import h5py
import numpy as np
import pytest
from commands import FAST

import h2gpu
from h2gpu.apps import h2compress, h2info
from h2gpu.apps.command import structure_plot
from h2gpu.apps.command.report import aligned
from h2gpu.covariance import Exponential, Matern, Nugget
from h2gpu.storage import read_header


def test_compress_writes_matrix_report_and_picture(source, points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, report, plot = (tmp_path / name for name in ("out.h5", "report.json", "picture.png"))
    arguments = [source, "-o", out, "--report", report, "--plot", plot, "--nugget", "0.1", "--rtol", "1e-4"]
    assert h2compress.main([*map(str, arguments), "--covariance", "matern", "--length-scale", "0.3,0.6"]) == 0
    told, err = capsys.readouterr()
    assert err == ""
    B, cov = h2gpu.load(out), Matern(1.0, (0.3, 0.6), 1.5) + Nugget(0.1)
    exact = cov(points)
    error = np.linalg.norm(B.to_dense() - exact) / np.linalg.norm(exact)
    said = json.loads(report.read_text(encoding="utf-8"))
    assert error <= 1e-4 and said["error"]["exact"] <= 1e-4 and said["error"]["uncompressed"] <= 1e-4
    assert (said["n"], said["dim"], said["shape"], said["rtol"]) == (500, 2, [500, 500], 1e-4)
    assert h2gpu.covariance.from_parameters(said["covariance"]) == cov
    assert said["parameters"].keys() >= {"leaf_size", "eta", "order", "split", "method", "svd"}
    assert said["device"]["kind"] in ("cpu", "cuda") and {"plan", "weights", "write"} <= said["seconds"].keys()
    assert said["memory"]["after"] == B.memory and said["memory"]["before"]["total"] >= B.nbytes
    assert len(said["ranks"]) == len(B.ranks) and said["peak_memory"]["process"] > said["memory"]["after"]["total"]
    assert {"h2gpu", "numpy", "python"} <= said["versions"].keys()
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "estimated peak memory" in told and "times smaller than dense" in told and str(out) in told
    assert h2gpu.read_header(out).attributes["covariance"] == said["covariance"]


def test_the_output_stands_beside_the_input(source, capsys):
    assert h2compress.main([str(source), "--quiet", *FAST]) == 0
    assert capsys.readouterr() == ("", "")
    assert h2gpu.load(source.with_name("places-h2.h5")).shape == (500, 500)


def test_columns_groups_integers_and_precisions(source, points, tmp_path, capsys):
    out = tmp_path / "out.h5"

    def compressed(*arguments):
        assert h2compress.main([str(source), "-o", str(out), "--quiet", *FAST, *arguments]) == 0
        return h2gpu.load(out)

    whole = compressed("--points", "points")
    np.testing.assert_array_equal(compressed("--points", "x,y") @ np.ones(500), whole @ np.ones(500))
    single = compressed("--dtype", "float32", "--order", "5")
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ np.ones(500), whole @ np.ones(500), rtol=1e-2)
    rounded = compressed("--points", "survey/sites", "--length-scale", "1000")
    np.testing.assert_allclose(rounded @ np.ones(500), whole @ np.ones(500), rtol=1e-2)
    assert compressed("--points", "x", "--covariance", "gaussian", "--nugget", "1").shape == (500, 500)
    for options_ in (("--method", "basis"), ("--svd", "randomized"), ("--split", "mean"), ("--device", "cpu")):
        np.testing.assert_allclose(compressed(*options_) @ np.ones(500), whole @ np.ones(500), rtol=1e-2)


def test_a_matrix_file_is_compressed_further(matrix_file, capsys):
    report = matrix_file.with_name("again.json")
    assert h2compress.main([str(matrix_file), "--rtol", "1e-2", "--report", str(report)]) == 0
    A, B = h2gpu.load(matrix_file), h2gpu.load(matrix_file.with_name("matrix-h2.h5"))
    assert B.nbytes < A.nbytes and A.relative_error(B) <= 1e-2
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["covariance"]["length_scale"] == 0.5 and said["error"]["exact"] is None
    assert said["rtol"] == pytest.approx(1e-3 + 1e-2 * 1.001)  # the two errors add up
    assert h2compress.main([str(matrix_file), "--rtol", "1e-2", "--quiet", "--dtype", "float32"]) == 0
    assert h2gpu.load(matrix_file.with_name("matrix-h2.h5")).dtype == np.float32


def test_what_an_order_misses_is_not_promised(source, capsys):
    first, second = (source.with_name(name) for name in ("first.h5", "second.h5"))
    coarse = ("--order", "1", "--rtol", "1e-4", "--leaf-size", "16", "--eta", "1", "--length-scale", "0.5")
    assert h2compress.main([str(source), "-o", str(first), *coarse]) == 0
    assert "asked 0.0001, which the given order does not reach" in capsys.readouterr().out
    assert h2compress.main([str(first), "-o", str(second), "--rtol", "1e-3"]) == 0
    found = [read_header(path).attributes for path in (first, second)]
    missed = found[0]["error"]["exact"]
    assert found[0]["rtol"] == missed > 1e-3 and found[1]["rtol"] == pytest.approx(missed + 1e-3 * (1 + missed))
    capsys.readouterr()
    assert h2info.main([str(first)]) == 0 and f"promised {missed:.3g}" in capsys.readouterr().out


def test_info_tells_what_a_file_holds(matrix_file, capsys):
    assert h2info.main([str(matrix_file)]) == 0
    told = capsys.readouterr().out
    for words in ("500 × 500, symmetric, float64", "Exponential", "promised 0.001", "ranks", "nearfield", "order"):
        assert words in told
    assert "in order" not in told
    assert h2info.main([str(matrix_file), "--check"]) == 0
    assert "all checksums and the structure are in order" in capsys.readouterr().out


def test_info_draws_the_structure(matrix_file, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "p.png"
    assert h2info.main([str(matrix_file), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG") and f"written       {picture}" in capsys.readouterr().out
    for wrong, words in ((matrix_file, "is the file too"), (tmp_path / "p.gif", "ends in .png, .pdf or .svg")):
        assert h2info.main([str(matrix_file), "--plot", str(wrong)]) == 2
        err = capsys.readouterr().err
        assert words in err and err.count("\n") == 1 and not (tmp_path / "p.gif").exists()


def test_tables_are_aligned():
    lines = list(
        aligned(("memory", "before", "after"), [("  nearfield", "1 MB", "20 kB"), ("  a long name indeed", 1, 2)])
    )
    assert lines[0] == "memory                before  after" and lines[1] == "  nearfield             1 MB  20 kB"
    assert {len(line) for line in lines} == {len(lines[0])}


def test_storage_in_one_precision_or_two(source, capsys):
    out = source.with_name("places-h2.h5")
    for storage, version in (("full", 1), ("auto", 2)):
        assert h2compress.main([str(source), "--quiet", *FAST, "--storage", storage]) == 0
        header = h2gpu.read_header(out)
        assert (header.version, header.dtype) == (version, np.float64) and header.memory == h2gpu.load(out).memory
        assert header.in_float32["nearfield"] == version - 1 and header.in_float32["transfer"] == 0
        assert h2info.main([str(out)]) == 0
        told = capsys.readouterr().out
        assert ("in float32    nearfield 1" in told) == (version == 2) and f"h2gpu-h2matrix {version}," in told


def test_info_of_a_file_without_attributes(tmp_path, points, capsys):
    h2gpu.save(h2gpu.build(points, Exponential(), leaf_size=600), tmp_path / "plain.h5", attributes={"note": [1]})
    assert h2info.main([str(tmp_path / "plain.h5")]) == 0
    told = capsys.readouterr().out
    assert "unknown covariance" in told and "note          [1]" in told and "none: all blocks are dense" in told


def test_few_points(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(structure_plot, "DPI", 40)
    for n, dim in ((1, 1), (2, 3), (40, 2)):
        with h5py.File(tmp_path / "few.h5", "w") as file:
            file["points"] = np.zeros((n, dim))
        arguments = [str(tmp_path / "few.h5"), "-o", str(tmp_path / "out.h5"), "--plot", str(tmp_path / "p.png")]
        assert h2compress.main(arguments) == 0
        np.testing.assert_allclose(h2gpu.load(tmp_path / "out.h5").to_dense(), 1)


@pytest.mark.gpu
def test_the_gpu_gives_the_same_matrix(source, matrix_file, capsys):
    out, report = source.with_name("gpu.h5"), source.with_name("gpu.json")
    arguments = ["-o", str(out), "--device", "cuda", "--report", str(report)]
    assert h2compress.main([str(source), "--length-scale", "0.5", *FAST, *arguments]) == 0
    A, B, x = h2gpu.load(matrix_file), h2gpu.load(out), np.ones(500)
    np.testing.assert_allclose(B @ x, A @ x, rtol=3e-3)
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["device"]["kind"] == "cuda" and said["device"]["name"] and said["peak_memory"]["device"] > 0
    assert h2compress.main([str(matrix_file), "--rtol", "1e-2", *arguments]) == 0
    assert A.relative_error(h2gpu.load(out)) <= 1e-2
