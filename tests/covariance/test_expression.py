"""Covariances that callers write: as texts, compiled and evaluated alike, and as functions of arrays."""

import json
import pickle

import numpy as np
import nvrtc
import pytest
from every_instance import constants, pairwise_instance
from reference import streamed

import h2gpu
from h2gpu.batched.device import compiler
from h2gpu.covariance import (
    Exponential,
    Expression,
    Gaussian,
    Matern,
    Nugget,
    from_distance,
    from_function,
    from_parameters,
    on_sphere,
    pairwise,
)

DTYPES = [np.float64, np.float32]
SAME = [  # texts and what they say
    (Expression("exp(-r / length)", length=0.3), Exponential(1.0, 0.3)),
    (Expression("sill * exp(-0.5 * (r / l) * (r / l))", sill=2.0, l=0.2), Gaussian(2.0, 0.2)),
    (Expression("(1 + sqrt(3) * r / a) * exp(-sqrt(3) * r / a)", a=0.4), Matern(1.0, 0.4, 1.5)),
    (Expression("s * exp(-r / l) + (1 - s) * exp(-r / (3 * l))", s=0.25, l=0.1), None),
    (Expression("r < range ? 1 - 1.5 * r / range + 0.5 * pow(r / range, 3) : 0", range=0.4), None),
    (Expression("r > 0 ? sin(k * r) / (k * r) : 1", k=7), None),
    (Expression("exp(-fabs(x[0] - y[0]) / a - fabs(x[1] - y[1]) / b)", a=0.2, b=0.5), None),
    (Expression("exp(-r) * cos(x[0] - y[0])", dimension=2), None),
    (Expression("1/2"), None),
]
EXPRESSIONS = [cov for cov, _ in SAME]
BESIDE = Expression(
    "[&] { Real s = 0; for (int k = 0; k < 2; k++) s += fabs(x[k] - y[k]); return exp(-s / length); }()",
    function=lambda x, y, length: np.exp(-np.abs(x - y).sum(axis=-1) / length),
    dimension=2,
    length=0.3,
)


def name_of(cov):
    """The same in every process, as parallel tests need."""
    return getattr(cov, "text", type(cov).__name__)


def random_points(n=40, dim=2, seed=0):
    return np.random.default_rng(seed).random((n, dim))


# on the CPU


@pytest.mark.parametrize("cov", EXPRESSIONS, ids=repr)
def test_values_are_symmetric_keep_the_float_type_and_do_not_depend_on_chunks(cov):
    for dtype in DTYPES:
        x, y = random_points(3000).astype(dtype)[:, None], random_points(64, seed=1).astype(dtype)[None]
        C = cov.values(x, y)
        assert C.shape == (3000, 64) and C.dtype == dtype
        np.testing.assert_array_equal(C[-1:], cov.values(x[-1:], y))
        np.testing.assert_array_equal(cov.values(y, x[-5:]), C[-5:])
    np.testing.assert_array_equal(np.diag(cov(random_points())), cov.variance_at_zero)


@pytest.mark.parametrize(("cov", "named"), [pair for pair in SAME if pair[1] is not None], ids=repr)
def test_a_text_says_what_it_says(cov, named):
    for dim in (1, 2, 3):
        X = random_points(dim=dim)
        np.testing.assert_allclose(cov(X), named(X), rtol=1e-13)
    r = np.linspace(0, 2, 9)
    np.testing.assert_allclose(cov.at_distance(r), named.at_distance(r), rtol=1e-13)


def test_grammar_is_that_of_c_but_numbers_are_real():
    def value(text, r, **numbers):
        return float(Expression(text, **numbers).at_distance(np.array(r)))

    assert value("1/2", 0.0) == 0.5
    assert value("2 - 1 - 1 + 8 / 4 / 2", 0.0) == 1
    assert value("1 + 2 * 3 - -1", 0.0) == 8
    assert value("-r * -2 + .5 + 1.5e0 + 2.", 1.0) == 6
    assert [value("r < 1 ? 3 : r <= 2 ? 2 : 1", r) for r in (0.5, 2.0, 2.5)] == [3, 2, 1]
    assert [value("r >= 1 && r != 3 || !(r < 4) ? 0 : 1", r) for r in (0.0, 1.0, 3.0, 5.0)] == [1, 0, 1, 0]
    assert [value("r == 0 ? fmax(a, pow(2, 3)) : atan2(r, r)", r, a=9) for r in (0.0, 1.0)] == [9, np.arctan(1)]


def test_texts_compose_and_live_on_spheres():
    f, X = Expression("exp(-r / l)", l=0.3), random_points()
    g = Exponential(1.0, 0.3)
    np.testing.assert_allclose((2 * f + Nugget(0.1))(X), (2 * g + Nugget(0.1))(X), rtol=1e-14)
    np.testing.assert_allclose((f * Matern() + f)(X), (g * Matern() + g)(X), rtol=1e-14)
    lonlat = np.stack([np.linspace(-170, 170, 30), np.linspace(-80, 80, 30)], axis=1)
    np.testing.assert_allclose(on_sphere(f, 1.0)(lonlat), on_sphere(g, 1.0)(lonlat), rtol=1e-13)
    with pytest.raises(ValueError, match="of the distance alone"):
        on_sphere(Expression("exp(-fabs(x[0] - y[0]))"))


@pytest.mark.parametrize("cov", [*EXPRESSIONS[:7], from_distance(lambda r: 1 / (1 + r * r)), BESIDE], ids=name_of)
def test_a_change_of_units_rounds_nothing(cov):
    x, y = np.random.default_rng(0).random((2, 50, 2)) * 10
    both = Matern(1.0, (3.0, 100.0), 1.5) * cov
    units = np.array(both.units)
    there = both.in_units(both.units)
    np.testing.assert_array_equal(there.values(x / units, y / units), both.values(x, y))


def test_texts_are_values():
    for cov in EXPRESSIONS:
        for again in (pickle.loads(pickle.dumps(cov)), from_parameters(json.loads(json.dumps(cov.parameters())))):
            assert again == cov and hash(again) == hash(cov) and repr(again) == repr(cov)
        assert eval(repr(cov)) == cov
    assert Expression("r < a ? 1 : b", a=1, b=0) == Expression("r < a ? 1 : b", b=0.0, a=np.float64(1))
    with pytest.raises(ValueError, match="cannot be written"):
        (BESIDE + Nugget(1.0)).parameters()


def test_one_kernel_serves_all_numbers():
    one, other = (Expression("exp(-r / l)", l=l).pair_function.on_device(2, np.float64) for l in (1.0, 2.0))
    assert (one.type, one.definitions) == (other.type, other.definitions)
    assert one.type == "Expression<Text_950daadb05c5d658, Isotropic<2>>"  # in every process
    twice = (Expression("exp(-r)") + Expression("exp(-r)")).pair_function.on_device(2, np.float64)
    assert len(twice.definitions) == 1
    assert Expression("exp(-r / l)", l=1e200).pair_function.on_device(2, np.float32) is None


def test_a_function_beside_replaces_the_parser():
    X = random_points()
    expected = np.exp(-np.abs(X[:, None] - X).sum(axis=-1) / 0.3)
    np.testing.assert_allclose(BESIDE(X), expected, rtol=1e-14)
    of_r = Expression("my_own(r) * a", function=lambda r, a: a * np.exp(-r), a=2.0)
    assert of_r.isotropic and of_r.variance_at_zero == 2
    np.testing.assert_allclose(of_r(X), 2 * Exponential()(X), rtol=1e-14)
    with pytest.raises(ValueError, match="expected values of shape"):
        Expression("1", function=lambda r: 1.0)(X)


def test_from_distance_is_called_with_distances():
    cov, X = from_distance(lambda r: np.exp(-r)), random_points()
    np.testing.assert_allclose((2 * cov + Nugget(0.5))(X), (2 * Exponential() + Nugget(0.5))(X), rtol=1e-14)
    assert cov.variance_at_zero == 1 and cov.isotropic
    np.testing.assert_allclose(on_sphere(cov, 1.0)([[0.0, 0.0], [90.0, 0.0]])[0, 1], np.exp(-np.pi / 2))
    with pytest.raises(ValueError, match="expected a function of r"):
        from_distance(1.0)
    with pytest.raises(ValueError, match="expected values of shape"):
        from_distance(lambda r: r.sum())(X)
    with pytest.raises(ValueError, match="cannot be written"):
        cov.parameters()


@pytest.mark.parametrize(
    ("text", "numbers", "message"),
    [
        ("exp(-r ^ 2)", {}, r"expected \) at place 7, got \^; a power is pow\(a, b\)"),
        ("r ** 2", {}, r"at place 3, got \*; a power is pow"),
        ("r = 1 ? 1 : 0", {}, "an operator or the end at place 2, got =; equality is =="),
        ("exp(-r / lenght)", {"length": 1.0}, r"a number, r, x\[k\], y\[k\], length or a function .*got lenght"),
        ("exp(-r)", {"length": 1.0}, "length: given, but not in the expression"),
        ("exp(-r", {}, r"expected \) at place 6, got the end"),
        ("exp(r, r)", {}, r"expected \) at place 5, got ,"),
        ("pow(r)", {}, "expected , at place 5"),
        ("exp r", {}, r"expected \( at place 4"),
        ("r < 1", {}, "a number, not true or false, at place 0"),
        ("1 + (r < 1)", {}, "a number, not true or false, at place 4"),
        ("0 < r < 1 ? 1 : 0", {}, "a number, not true or false"),
        ("r ? 1 : 0", {}, "something true or false at place 0"),
        ("r < 1 ? 1", {}, "expected : at place 9"),
        ("x", {}, r"expected \[ at place 1"),
        ("x[0.5]", {}, "the number of a coordinate"),
        ("x[r]", {}, "the number of a coordinate"),
        ("x[2] * y[2]", {"dimension": 2}, "expected coordinates below 2, the dimension, got 2"),
        ("1 / r", {}, "finite value ≥ 0 at equal points, got inf; write the limit"),
        ("-1", {}, "finite value ≥ 0 at equal points"),
        ("1e999", {}, "expected a number"),
        ("r;", {}, "an operator or the end at place 1, got ;"),
        ("__import__(r)", {}, "got __import__"),
        ("(" * 40, {}, "at most 32 parentheses"),
        ("-" * 40 + "r", {}, "at most 32 parentheses and signs"),
        ("+".join("r" * 300), {}, "at most 400 signs"),
        ("", {}, "expected an ASCII text"),
        ("exp(−r)", {}, "expected an ASCII text"),
        (1.0, {}, "expected an ASCII text"),
        ("a * exp(-r)", {"a": np.nan}, "a: expected a finite number"),
        ("a * exp(-r)", {"a": True}, "a: expected a finite number"),
        ("exp(-r)", {"exp": 1.0}, "exp: expected a name"),
        ("exp(-r)", {"p": 1.0}, "p: expected a name"),
        ("exp(-r)", {"dimension": 0}, "dimension: expected a positive integer"),
        ("exp(-r)", {"function": 1.0}, "function: expected a function of r and the numbers"),
    ],
)  # fmt: skip
def test_wrong_texts_are_refused_in_one_line(text, numbers, message):
    with pytest.raises(ValueError, match=message) as error:
        Expression(text, **numbers)
    assert "\n" not in str(error.value)


def test_parameters_are_read_strictly():
    good = Expression("exp(-r / l)", l=1.0).parameters()
    for change in ({"numbers": [1.0]}, {"numbers": {"l": "1"}}, {"numbers": {"l": 1.0, "function": 1.0}}, {"text": 1},
                   {"dimension": "2"}, {"numbers": {}}, {"numbers": {"l": 1.0, "dimension": 1}}):  # fmt: skip
        with pytest.raises(ValueError, match="expected"):
            from_parameters(good | change)


def test_callers_covariances_become_matrices():
    X = random_points(900)
    for cov in (EXPRESSIONS[3], BESIDE, from_distance(lambda r: 1 / (1 + r)), Expression("exp(-r)") + Nugget(0.1)):
        A = h2gpu.covariance_matrix(X, cov, rtol=1e-5)
        exact = cov(X)
        assert np.linalg.norm(A @ np.eye(len(X)) - exact) <= 1e-5 * np.linalg.norm(exact)


# the compiler, without a GPU

needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc")


def compiled(cov, dtype, architecture="sm_90"):
    """Compiles the kernel of a covariance of points in the plane."""
    function, knobs = cov.pair_function.on_device(2, dtype), constants("covariance/pairs/cuda")
    name = pairwise_instance(cov, 2, dtype, knobs["THREADS"], knobs["ROWS"])
    header = "covariance/pairwise.cuh"
    source = compiler.program(header, function.definitions)
    return nvrtc.compiled(source, [*compiler.options(header), nvrtc.CUPYS_OWN, f"-arch={architecture}"], [name])


@needs_nvrtc
def test_texts_compile():
    composed = EXPRESSIONS[0] * EXPRESSIONS[0] + EXPRESSIONS[7] + Matern(1.0, 0.1, 1.2)
    units = (Matern(1.0, (0.1, 3.0), 1.5) + EXPRESSIONS[0]).in_units((1.0, 32.0))
    every = sum(EXPRESSIONS[1:], EXPRESSIONS[0])  # one program
    for cov in (composed, units, every, BESIDE):
        for dtype in DTYPES:
            assert compiled(cov, dtype)[0]


@needs_nvrtc
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_the_compiler_says_is_one_line_that_names_the_text(dtype):
    wrong = Expression('exp(-r / lenght) + "q"', function=lambda r, length: np.exp(-r / length), length=1.0)
    with pytest.raises(RuntimeError) as error:
        compiled(Exponential() + wrong, dtype)
    said = compiler.first_error(str(error.value))
    assert said == 'expression exp(-r / lenght) + "q"(1): identifier "lenght" is undefined'
    assert compiler.first_error("something else\nhere") == "something else"


# on the GPU


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cov", [*EXPRESSIONS, BESIDE], ids=name_of)
def test_gpu_agrees_with_cpu(cov, dtype):
    cupy = pytest.importorskip("cupy")
    X, tolerance = random_points(300).astype(dtype), 30 * np.finfo(dtype).eps
    pair = h2gpu.batched.MatrixBatch.from_rows(cupy.asarray(X), [0], [300])
    for value in (cov, 2 * cov + Matern(1.0, (0.1, 0.3), 1.1), (cov * Gaussian()).in_units((1.0, 4.0))):
        assert value.pair_function.on_device(2, X.dtype) is not None
        C = pairwise(value.pair_function, pair, pair)[0].get()
        np.testing.assert_allclose(C, value(X.astype(np.float64)), rtol=0, atol=tolerance * value.variance_at_zero)
    if cov is not BESIDE:
        np.testing.assert_allclose(cov(cupy.asarray(X)).get(), cov(X), rtol=0, atol=tolerance)


@pytest.mark.gpu
def test_matrices_on_the_gpu():
    """Of one order, so that few kernels are compiled: built as on the CPU, then compressed, couplings on the fly."""
    cupy = pytest.importorskip("cupy")
    X, v = random_points(1500), np.random.default_rng(2).random(1500)
    for cov in (EXPRESSIONS[3], BESIDE, from_distance(lambda r: 1 / (1 + r)), Matern(1.0, 0.2, 0.8),
                from_function(lambda x, y: 1 / (1 + ((x - y) ** 2).sum(-1)))):  # fmt: skip
        A = h2gpu.build(cupy.asarray(X), cov, order=4)
        y = h2gpu.build(X, cov, order=4) @ v
        np.testing.assert_allclose((A @ cupy.asarray(v)).get(), y, rtol=1e-11)
        z = h2gpu.compress(streamed(cupy.asarray(X), cov, order=4), rtol=1e-4) @ cupy.asarray(v)
        assert np.linalg.norm(z.get() - y) <= 1e-3 * np.linalg.norm(y)


@pytest.mark.gpu
def test_a_text_that_does_not_compile_is_one_line():
    cupy = pytest.importorskip("cupy")
    wrong = Expression("exp(-r / lenght)", function=lambda r, length: np.exp(-r / length), length=1.0)
    with pytest.raises(ValueError, match=r'expression exp\(-r / lenght\)\(1\): identifier "lenght" is undefined$'):
        h2gpu.build(cupy.asarray(random_points(500)), wrong, order=4)


@pytest.mark.parametrize("text", ["exp(\0\0 2)", "r \x1b[31m", "r + \x7f", "\n\x0b;"])
def test_signs_that_cannot_be_printed_are_refused_on_one_line(text):
    with pytest.raises(ValueError, match="at place") as caught:
        Expression(text)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "given",
    [
        {"name": "Matern", "\x1b[31m\n": 1},
        {"name": "Matern", 500 * "long": 1},
        {"name": "Expression", "text": "r", "dimension": None, "numbers": {"\x7f\n": 1.0}},
    ],
)
def test_keys_that_cannot_be_printed_are_refused_on_one_line(given):
    with pytest.raises(ValueError, match="expected") as caught:
        from_parameters(given)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400
