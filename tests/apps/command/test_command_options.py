"""Wrong options of h2compress and h2info: one line each."""

import os

import pytest
from commands import compressing_fails

from h2gpu.apps import h2compress, h2info
from h2gpu.apps.command import options
from h2gpu.apps.command.command import InputError
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget

BAD_OPTIONS = {
    "no input": ([], "required: INPUT.h5"),
    "unknown option": (["in", "--fast"], "unrecognized arguments: --fast"),
    "abbreviated option": (["in", "--len", "3"], "unrecognized arguments"),
    "covariance": (["in", "--covariance", "circular"], "invalid choice: 'circular'"),
    "negative length": (["in", "--length-scale", "-1"], "length-scale: expected"),
    "no length": (["in", "--length-scale", "1,,2"], "length-scale: expected a number, got ''"),
    "length in words": (["in", "--length-scale", "long"], "expected a number, got 'long'"),
    "infinite length": (["in", "--length-scale", "inf"], "expected a finite number above 0"),
    "lengths for 3D": (["in", "--length-scale", "1,2,3"], "expected 1 or 2 numbers for points in 2D, got 3"),
    "no variance": (["in", "--variance", "0"], "variance: expected a finite number above 0"),
    "negative nugget": (["in", "--nugget=-1"], "nugget: expected a finite number, 0 or above"),
    "nugget not a number": (["in", "--nugget", "nan"], "nugget: expected a finite number"),
    "smoothness of another": (["in", "--smoothness", "2"], "--smoothness: is for --covariance matern only"),
    "rtol zero": (["in", "--rtol", "0"], "rtol: expected a finite number above 0"),
    "rtol too small": (["in", "--rtol", "1e-17"], "rtol: expected a number from"),
    "rtol one": (["in", "--rtol", "1"], "rtol: expected a number from"),
    "rtol for float32": (["in", "--rtol", "1e-9", "--dtype", "float32"], "rtol: expected a number from"),
    "leaf size": (["in", "--leaf-size", "0"], "leaf-size: expected an integer above 0"),
    "leaf size half": (["in", "--leaf-size", "8.5"], "leaf-size: expected an integer above 0"),
    "order": (["in", "--order", "none"], "order: expected an integer above 0"),
    "absurd order": (["in", "--order", "1000"], "--order: expected at most 10000 interpolation points"),
    "eta": (["in", "--eta", "-2"], "eta: expected"),
    "method": (["in", "--method", "best"], "invalid choice: 'best'"),
    "svd": (["in", "--svd", "lapack"], "invalid choice: 'lapack'"),
    "split": (["in", "--split", "middle"], "invalid choice: 'middle'"),
    "device": (["in", "--device", "tpu"], "invalid choice: 'tpu'"),
    "dtype": (["in", "--dtype", "float16"], "invalid choice: 'float16'"),
    "memory": (["in", "--max-memory", "plenty"], "expected a size such as 8G"),
    "no memory": (["in", "--max-memory", "0"], "expected a size such as 8G"),
    "no names": (["in", "--points", "x,,y"], "expected names of datasets separated by commas"),
    "output is input": (["in", "-o", "in"], "--output: .* is the input too"),
    "report is output": (["in", "-o", "out.h5", "--report", "out.h5"], "--report: out.h5 is --output too"),
    "output a folder": (["in", "-o", "."], "--output: .* is a folder"),
    "output nowhere": (["in", "-o", "absent/out.h5"], "--output: .* does not exist"),
    "report nowhere": (["in", "--report", "absent/r.json"], "--report: .* does not exist"),
    "picture of a kind": (["in", "--plot", "picture.gif"], "--plot: expected a name that ends in .png"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_bad_options(name, source, monkeypatch, capsys):
    arguments, words = BAD_OPTIONS[name]
    monkeypatch.chdir(source.parent)
    compressing_fails([source if a == "in" else a for a in arguments], 2, words, capsys)
    assert os.listdir(source.parent) == [source.name]


def test_options_for_points_do_not_fit_a_matrix(matrix_file, capsys):
    arguments = [matrix_file, "--order", "3", "--covariance", "matern"]
    compressing_fails(arguments, 2, "--covariance, --order: for a file of points only", capsys)


@pytest.mark.parametrize("option", ["--help"])
def test_help_ends_well(option, capsys):
    for main in (h2compress.main, h2info.main):
        with pytest.raises(SystemExit) as caught:
            main([option])
        assert caught.value.code == 0 and "usage" in capsys.readouterr().out


def test_covariances_of_options():
    def covariance(*arguments, dim=2):
        return options.covariance(options.parser().parse_args(["in", *arguments]), dim)

    assert covariance() == Exponential()
    assert covariance("--covariance", "gaussian", "--length-scale", "2", "--variance", "3") == Gaussian(3.0, 2.0)
    assert covariance("--covariance", "matern", "--smoothness", "0.7") == Matern(1.0, 1.0, 0.7)
    assert covariance("--length-scale", "2,3", "--nugget", "0.5") == Exponential(1.0, (2.0, 3.0)) + Nugget(0.5)
    with pytest.raises(InputError, match="expected 1 or 3"):
        covariance("--length-scale", "2,3", dim=3)
