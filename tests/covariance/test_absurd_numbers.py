"""Numbers that no honest file holds are refused before anything is computed with them."""

import tracemalloc

import pytest

from h2gpu.apps import h2info
from h2gpu.covariance import Exponential, Expression, Matern, from_function, from_parameters

SAID = {"name": "Expression", "text": "exp(-r / l)", "numbers": {"l": 1.0}}


@pytest.mark.parametrize(
    "make",
    [
        lambda: from_parameters(SAID | {"dimension": 10_000_000}),
        lambda: Expression("exp(-fabs(x[9999999] - y[9999999]))"),
        lambda: from_function(lambda x, y: 0, 1001),
    ],
)
def test_a_dimension_of_millions_is_refused_and_takes_no_memory(make):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="dimension: expected a positive integer up to 1000 or None, got"):
            make()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_thousand_coordinates_are_taken():
    assert Expression("exp(-r / l)", dimension=1000, l=1.0).variance_at_zero == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Exponential(n, 1.0),
        lambda n: Exponential(1.0, (1.0, n)),
        lambda n: Matern(1.0, 1.0, n),
        lambda n: Exponential(1.0, (1.0, 2.0), rotation=n),
        lambda n: Expression("exp(-r / l)", l=n),
        lambda n: from_parameters({"name": "Exponential", "variance": n, "length_scale": 1.0}),
    ],
)
def test_an_integer_of_400_digits_is_refused(make):
    with pytest.raises(ValueError, match=r"finite (number|angle)") as caught:
        make(10**400)
    assert len(str(caught.value)) < 200


def test_h2info_calls_an_accuracy_of_400_digits_unknown():
    lines = "".join(h2info._attribute_lines({"rtol": 10**400, "error": {"exact": 10**400}}))
    assert "accuracy      unknown" in lines
