"""The samples of the randomized SVD: normal, and the same on either back end."""

import numpy as np
import pytest

from h2gpu.arrays import to_host
from h2gpu.batched.products.gaussian import gaussian, philox

DTYPES = [np.float64, np.float32]


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_known_answers_of_its_authors(counter, key, words):
    counter, key, words = ([int(word, 16) for word in text.split()] for text in (counter, key, words))
    found = philox([np.array([word], np.uint32) for word in counter], np.array(key, np.uint32))
    assert found[:, 0].tolist() == words


def test_samples_are_normal(xp):
    z = to_host(gaussian(400, 500, 1, np.float64, xp)).ravel()
    assert abs(z.mean()) < 4 / np.sqrt(z.size) and abs(z.var() - 1) < 6 / np.sqrt(z.size)
    assert abs((z**4).mean() - 3) < 40 / np.sqrt(z.size) and abs((z[1:] * z[:-1]).mean()) < 4 / np.sqrt(z.size)
    assert len(np.unique(z)) == z.size


def test_float32_samples_have_eleven_bits(xp):
    """They are those of float64 to half a unit of the last, and half of that in float32 again."""
    z, exact = (to_host(gaussian(300, 40, 1, dtype, xp)).astype(np.float64) for dtype in DTYPES[::-1])
    mantissa, _ = np.frexp(z)
    assert (mantissa * 2**11 == np.rint(mantissa * 2**11)).all()
    assert (np.abs(z - exact) <= np.abs(exact) * (2.0**-11 + 2.0**-24)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sample_depends_on_seed_and_place_alone(dtype, xp):
    large = to_host(gaussian(30, 20, 5, dtype, xp))
    assert large.dtype == dtype
    assert (large[:7, :9] == to_host(gaussian(7, 9, 5, dtype, xp))).all()
    assert not (large == to_host(gaussian(30, 20, 6, dtype, xp))).any()
    assert np.mean(large == to_host(gaussian(30, 20, None, dtype, xp))) < 0.05  # some of few bits may agree


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_of_both_back_ends_agree(dtype):
    cupy = pytest.importorskip("cupy")
    X, Y = gaussian(300, 70, 9, dtype, np), to_host(gaussian(300, 70, 9, dtype, cupy))
    np.testing.assert_allclose(X, Y, rtol=0, atol=1e-14 if dtype == np.float64 else 1e-6)
