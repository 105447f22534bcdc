"""Wrong numbers, points, compositions and parameters of covariances are refused."""

import math

import numpy as np
import pytest

from h2gpu.covariance import (
    Constant,
    Exponential,
    Gaussian,
    Matern,
    Nugget,
    Sum,
    from_function,
    from_parameters,
    on_sphere,
)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None, True, 1j])
def test_numbers_are_checked(bad):
    makers = [
        lambda: Exponential(variance=bad),
        lambda: Gaussian(length_scale=bad),
        lambda: Exponential(length_scale=(1.0, bad)),
        lambda: Matern(smoothness=bad),
        lambda: Constant(bad),
        lambda: on_sphere(Exponential(), radius=bad),
        lambda: Matern.from_range(1.0, 1.0, bad),
    ]
    makers += [] if bad == 0 else [lambda: Nugget(bad)]
    makers += [] if not isinstance(bad, (int, float)) else [lambda: bad * Exponential(), lambda: Nugget(1.0) * bad]
    for make in makers:
        with pytest.raises(ValueError, match=r"expected a finite number"):
            make()


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 2.0], r"expected shape \(n, dim\), got \(2,\); write points\[:, None\]"),
        (np.zeros((2, 2, 2)), r"expected shape \(n, dim\)"),
        (np.zeros((2, 0)), r"expected shape \(n, dim\)"),
        ([["a", "b"]], "expected real numbers"),
        ([[1j, 2]], "expected real numbers"),
        ([[np.nan, 1]], "expected finite"),
        ([[np.inf, 1]], "expected finite"),
        ([[1.0, 2.0, 3.0]], "expected 2 coordinates a point .* got 3"),
    ],
)
def test_points_are_checked(points, message):
    with pytest.raises(ValueError, match=message):
        Exponential(length_scale=(1.0, 2.0))(points)


def test_wrong_compositions_are_refused():
    sphere = on_sphere(Exponential())
    for wrong, message in [
        (lambda: Exponential() + sphere, "of one embedding"),
        (lambda: sphere * on_sphere(Exponential(), radius=1.0), "of one embedding"),
        (lambda: Exponential(1, (1, 2)) + Exponential(1, (1, 2, 3)), "of one dimension, got 2 and 3"),
        (lambda: on_sphere(sphere), "not yet on a sphere"),
        (lambda: on_sphere(Exponential(1, (1, 2))), "of the distance alone"),
        (lambda: on_sphere(from_function(np.minimum)), "of the distance alone"),
        (lambda: on_sphere(1.0), "expected a covariance such as"),
        (lambda: on_sphere(Exponential(), distance="euclid"), "expected one of great-circle, chordal"),
        (lambda: sphere([[0.0, 91.0]]), "latitudes within ±90"),
        (lambda: sphere([[0.0, 9.0, 1.0]]), "expected 2 coordinates"),
        (lambda: Exponential(1, (1, 2)).at_distance(1.0), "of the distance alone"),
        (lambda: Exponential(1, (1, 2)).values(np.zeros((4, 3)), np.zeros((4, 3))), "expected 2 coordinates"),
        (lambda: Exponential().values(np.zeros((4, 3)), np.zeros((4, 2))), "expected 3 coordinates"),
        (lambda: Exponential(length_scale=()), "got none"),
        (lambda: Sum(()), "at least one"),
        (lambda: Sum((1.0,)), "expected covariances"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError):
        Exponential() + 1.0
    with pytest.raises(TypeError):
        Exponential() * "2"


def test_parameters_are_read_strictly():
    good = Exponential().parameters()
    deep = good
    for _ in range(40):
        deep = {"name": "Sum", "terms": [deep]}
    for bad, message in [
        ("Exponential", "expected a dictionary"),
        ({}, "expected a name of"),
        ({"name": "Covariance"}, "expected a name of"),
        ({"name": ["Exponential"]}, "expected a name of"),
        (good | {"smoothness": 1.0}, "expected the keys"),
        ({"name": "Exponential", "variance": 1.0}, "expected the keys"),
        (good | {"variance": "1.0"}, "variance: expected a finite number"),
        (good | {"length_scale": "12"}, "length_scale: expected a finite number"),
        (good | {"length_scale": {"1": 2}}, "length_scale: expected a finite number"),
        (good | {"length_scale": [[1.0]]}, "length_scale: expected a finite number"),
        ({"name": "Sum", "terms": good}, "list of terms"),
        ({"name": "Sum", "terms": []}, "at least one"),
        ({"name": "Product", "terms": [1.0]}, "expected a dictionary"),
        (deep, "nested at most"),
        (on_sphere(Exponential()).parameters() | {"covariance": 1}, "expected a dictionary"),
        (on_sphere(Exponential()).parameters() | {"distance": 1}, "expected one of great-circle"),
        (on_sphere(Exponential()).parameters() | {"distance": []}, "expected one of great-circle"),
    ]:
        with pytest.raises(ValueError, match=message):
            from_parameters(bad)
