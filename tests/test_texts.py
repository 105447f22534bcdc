"""Whatever a caller gave by mistake, the message is one line."""

import numpy as np
import pytest

import h2gpu
from h2gpu.covariance import Exponential
from h2gpu.statistics import Kriging, variogram
from h2gpu.texts import brief, plain

LONG = np.linspace(0.0, 1.0, 50).reshape(2, 25)
SITES = np.random.default_rng(0).random((40, 2))
VALUES = SITES.sum(axis=1)
MATRICES = h2gpu.batched.MatrixBatch.from_matrices([np.eye(3)] * 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Exponential(LONG),
        lambda: Kriging(Exponential(), nugget=LONG).fit(SITES, VALUES),
        lambda: Kriging(LONG).fit(SITES, VALUES),
        lambda: Kriging(Exponential(), neighbours=LONG).fit(SITES, VALUES),
        lambda: variogram(SITES, VALUES, direction=LONG),
        lambda: h2gpu.build(SITES, Exponential(), order=LONG),
        lambda: h2gpu.build(SITES, LONG),
        lambda: h2gpu.build(SITES, Exponential(), leaf_size=LONG),
        lambda: h2gpu.batched.trsm(MATRICES, LONG),
        lambda: h2gpu.batched.solve(MATRICES, LONG),
        lambda: h2gpu.batched.lstsq(MATRICES, MATRICES, rcond=LONG),
        lambda: h2gpu.batched.qr(MATRICES, mode=str(LONG)),
        lambda: h2gpu.solvers.vecchia(SITES, Exponential(), neighbours=LONG),
    ],
)
def test_messages_are_one_short_line(call):
    with pytest.raises(ValueError) as raised:
        call()
    message = str(raised.value)
    assert "expected" in message and "got" in message
    assert message.isprintable() and len(message) < 500


def test_values_are_told_as_python_writes_them():
    assert brief("a") == "'a'" and brief(None) == "None" and brief(1.5) == "1.5"
    assert brief("a\nb") == r"'a\nb'" and plain("a\nb\x1b[31m") == r"a\nb\x1b[31m"
    assert len(brief(list(range(1000)))) == 200 and brief("abcdef", 5) == "'abc…"
