"""Kriging refuses bad parameters, data, weights and covariances."""

import numpy as np
import pytest
from kriging_problems import COV, problem
from sklearn.gaussian_process import kernels

from h2gpu.covariance import Exponential, Gaussian, Matern, from_distance, on_sphere
from h2gpu.statistics import Kriging, log_likelihood


@pytest.mark.parametrize("arguments, words", [
    ({"cov": "exponential"}, "cov: expected a covariance"),
    ({"cov": kernels.DotProduct()}, "kernel: expected scikit-learn's"),
    ({"nugget": -1.0}, "nugget: expected a finite number"),
    ({"rtol": 0}, "rtol: expected a finite number > 0"),
    ({"rtol": 5}, "rtol: expected a number below 1"),
    ({"rtol": "a"}, "rtol: expected a finite number"),
    ({"std_rtol": -1}, "std_rtol: expected a finite number ≥ 0"),
    ({"neighbours": 0}, "neighbours: expected a positive integer"),
    ({"mean": np.nan}, "mean: expected a finite number"),
    ({"mean": (1.0, 2.0)}, "mean: expected a finite number, got"),
    ({"random_state": "a"}, "random_state: expected an integer ≥ 0, a NumPy generator or None, got 'a'"),
    ({"trend": "cubic"}, "trend: expected None"),
    ({"trend": [5]}, "trend: expected names or indices of the 2 columns"),
    ({"trend": ["elevation"]}, "trend: expected names or indices of the 2 columns"),
    ({"trend": [0, 1]}, "some columns of X to remain as coordinates"),
    ({"trend": lambda X: X[:3]}, "trend: expected a function that returns"),
    ({"trend": lambda X: X * np.nan}, "trend: expected a function that returns finite"),
    ({"fit_parameters": ["range"]}, "parameters: expected some of variance, length_scale"),
])  # fmt: skip
def test_bad_parameters_are_refused(arguments, words):
    X, y, _ = problem(20)
    with pytest.raises(ValueError, match=words):
        Kriging(**{"cov": COV, **arguments}).fit(X, y)


@pytest.mark.parametrize("change, words", [
    (lambda X, y: (X, np.where(np.arange(20) == 3, np.nan, y)), "y: .* got NaN .* in 1 of 20 rows, first in row 3; "),
    (lambda X, y: (np.where(np.arange(40).reshape(20, 2) == 9, np.nan, X), y), "X: .* first in row 4; leave those r"),
    (lambda X, y: (np.where(X > 0.9, np.inf, X), y), "infinity"),
    (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    (lambda X, y: (X[:, 0], y), r"X: expected shape \(n, dim\), got \(20,\). Reshape your data: X\[:, None\] for"),
    (lambda X, y: (X[:, 0].tolist(), y), r"X: expected shape \(n, dim\), got \(20,\)"),
    (lambda X, y: (X, [f"{z}" for z in y]), "y: expected numbers, got text, '.*'; convert"),
    (lambda X, y: (X[:0], y[:0]), "0 sample"),
], ids=["NaN", "NaN in X", "infinity", "lengths", "one dimension", "list", "text", "nothing"])  # fmt: skip
def test_bad_data_are_refused(change, words):
    X, y, _ = problem(20)
    with pytest.raises(ValueError, match=words):
        Kriging(COV).fit(*change(X, y))


def test_a_mean_that_a_trend_takes_the_place_of_is_told():
    X, y, _ = problem(20)
    with pytest.warns(UserWarning, match="mean: 3.0 is not used, as trend='constant' is estimated; take trend=None"):
        told = Kriging(COV, mean=3.0).fit(X, y)
    np.testing.assert_array_equal(told.predict(X), Kriging(COV).fit(X, y).predict(X))


@pytest.mark.parametrize("weights, words", [
    (np.ones(3), "expected 20 finite numbers ≥ 0"), (-np.ones(20), "≥ 0"), (np.zeros(20), "zero for all"),
])  # fmt: skip
def test_bad_weights_are_refused(weights, words):
    X, y, _ = problem(20)
    with pytest.raises(ValueError, match=words):
        Kriging(COV, 0.1).fit(X, y, sample_weight=weights)


def test_an_invalid_covariance_is_refused():
    X = np.column_stack([np.random.default_rng(0).uniform(-180, 180, 200), np.linspace(-80, 80, 200)])
    for smooth in (Gaussian(1.0, 20000.0), Matern(1.0, 5000.0, 2.5)):  # eigenvalues below −1 and of −3e-4
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            Kriging(on_sphere(from_distance(smooth.at_distance)), 1e-4).fit(X, X[:, 1])
    with pytest.raises(ValueError, match="smoothness: expected a covariance of the chord to estimate it"):
        Kriging(on_sphere(Matern(1.0, 900.0, 0.4)), fit_parameters=["smoothness"]).fit(X, X[:, 1])


def test_an_array_in_place_of_a_covariance_is_refused_on_one_line():
    with pytest.raises(ValueError, match="cov: expected a covariance such as") as caught:
        log_likelihood(np.random.default_rng(0).random((90, 2)), Exponential(), np.ones(90))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300
