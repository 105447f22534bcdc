"""Two precisions and computed nearfields: the promise holds, memory tells the truth, products are those of float64."""

from dataclasses import replace

import numpy as np
import pytest
from reference import dense_of, difference, points_of

import h2gpu
from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse import BlockSparse, MixedBlocks
from h2gpu.covariance import Exponential, Nugget, from_function
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.compression import precision
from h2gpu.h2matrix.compression.squares import squares_of
from h2gpu.h2matrix.construction import deferred
from h2gpu.h2matrix.nearfield import EvaluatedNearfield
from h2gpu.h2matrix.norms import MEASURES, block_measures, nearfield_square

COVARIANCE = Exponential(1.0, 0.2) + Nugget(0.1)
BACK_ENDS = ["numpy", pytest.param("cupy", marks=pytest.mark.gpu)]


@pytest.fixture(params=BACK_ENDS)
def xp(request):
    return pytest.importorskip(request.param)


def points(n=1000, seed=0):
    return np.random.default_rng(seed).random((n, 2))


def built(cols=None, nearfield="stored", n=1000, xp=np, cov=COVARIANCE, order=6):
    others = None if cols is None else xp.asarray(points(cols, 1))
    return h2gpu.build(xp.asarray(points(n)), cov, col_points=others, leaf_size=30, order=order, nearfield=nearfield)


def blocks(symmetric=True, seed=0, clusters=30):
    """A ragged BlockSparse of a band and how many rows it has."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 20, clusters)
    columns, rows = np.nonzero(np.abs(np.subtract.outer(np.arange(clusters), np.arange(clusters))) < 4)
    if symmetric:
        columns, rows = columns[rows >= columns], rows[rows >= columns]
    D = MatrixBatch.empty(sizes[rows], sizes[columns], np.float64)
    D.buffer[:] = rng.standard_normal(D.buffer.size)
    for b in np.flatnonzero((rows == columns) & symmetric):
        D[b][...] += D[b].T.copy()
    starts = offsets_of(sizes)
    return BlockSparse(D, rows, columns, starts[:-1], starts[:-1], symmetric), int(starts[-1])


# Blocks in two precisions


@pytest.mark.parametrize("chosen", ["none", "some", "all"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("sides", [1, 5, 19])
def test_products_are_those_of_the_rounded_blocks_in_float64(symmetric, chosen, sides, xp):
    A, n = blocks(symmetric)
    narrowed = np.random.default_rng(1).random(len(A)) < {"none": 0, "some": 0.5, "all": 2}[chosen]
    B = MixedBlocks.of(A.to(xp), narrowed)
    rounded = A.blocks.buffer.copy()
    single = np.repeat(narrowed, A.sizes)
    rounded[single] = rounded[single].astype(np.float32)
    assert B.nbytes == A.nbytes - 4 * single.sum() and len(B) == len(A) and (B.sizes == A.sizes).all()
    C = BlockSparse(
        MatrixBatch(rounded, A.blocks.offsets, A.blocks.rows, A.blocks.columns),
        *(getattr(A, name) for name in ("rows", "columns", "row_starts", "col_starts", "symmetric")),
    )
    x = np.random.default_rng(2).standard_normal((n, sides))
    for transpose in (False, True):
        y, again = (batched.to_host(B.multiply(xp.asarray(x), n, transpose)) for _ in range(2))
        np.testing.assert_allclose(y, C.multiply(x, n, transpose), atol=1e-12)
        np.testing.assert_allclose(batched.to_host(B.T.multiply(xp.asarray(x), n, not transpose)), y, atol=1e-12)
        assert y.tobytes() == again.tobytes()


def test_selected_blocks_are_copies_in_float64(xp):
    A, _ = blocks(False)
    B = MixedBlocks.of(A.to(xp), np.arange(len(A)) % 3 == 0)
    for index in (slice(3, 11), np.array([5, 2, 2, 40]), xp.arange(7)):
        host = batched.to_host(index) if isinstance(index, xp.ndarray) else index
        found, exact = B.select(index), A.select(host)
        for b, M in enumerate(exact.matrices()):
            np.testing.assert_allclose(batched.to_host(found[b]), M, rtol=2.0**-24)


def test_rounding_errors(xp):
    A, _ = blocks(clusters=200)  # more entries than are rounded at a time
    D = A.blocks.buffer
    D[:2] = 1e300, 1e-300
    errors = batched.to_host(batched.rounding_errors(A.to(xp).blocks))
    with np.errstate(over="ignore"):
        exact = [np.linalg.norm(M - M.astype(np.float32)) for M in A.blocks.matrices()]
    assert np.isinf(errors).sum() == 1
    np.testing.assert_allclose(errors, exact, rtol=1e-12)


# The promise


@pytest.mark.parametrize("cols", [None, 700])
@pytest.mark.parametrize("rtol", [1e-2, 1e-5, 1e-6, 1e-7, 3e-8, 1e-8, 1e-10])
def test_the_error_is_at_most_rtol_and_nearly_all_of_it_is_used(cols, rtol, xp):
    A = built(cols, xp=xp)
    B = h2gpu.compress(A, rtol)
    assert 0.5 * rtol <= A.relative_error(B) <= rtol and B.dtype == np.float64
    if xp is np:
        assert difference(dense_of(A), dense_of(B)) <= rtol * (1 + 1e-6)


@pytest.mark.parametrize("method", ["weighted", "basis"])
def test_squares_of_discarded_and_of_rounded_add_up(method):
    A, rtol = built(), 1e-7
    B = h2gpu.compress(A, rtol, method=method)
    C = h2gpu.compress(A, np.sqrt(0.9) * rtol, method=method, storage="full")
    assert np.hypot(A.relative_error(C), C.relative_error(B)) == pytest.approx(A.relative_error(B), rel=1e-4)


@pytest.mark.parametrize("allowed", [0.0, 0.5, 3.0, 10.0, 35.0])
def test_columns_of_least_error_an_entry_are_rounded_as_far_as_they_fit(allowed):
    """All that is less dear than the first that no longer fits, and nothing else; equals go together."""
    dear, sizes = np.array([4.0, 1.0, 2.0, 2.0, 0.5, 3.0]), np.array([2, 5, 4, 1, 8, 3])
    squares = dear * sizes
    chosen = precision._least(dear, squares, allowed)
    assert squares[chosen].sum() <= allowed
    left = np.flatnonzero(~chosen)
    first = dear[left].min()
    assert chosen.tolist() == (dear < first).tolist()
    assert squares[chosen].sum() + squares[dear == first].sum() > allowed


def test_what_is_rounded_depends_on_the_accuracy():
    A = built()
    kept = {rtol: h2gpu.compress(A, rtol) for rtol in (1e-4, 1e-7, 1e-12)}
    assert kept[1e-4].row_basis.leaf.dtype == np.float32 and kept[1e-4].row_basis.dtype == np.float64
    assert kept[1e-7].row_basis.leaf.dtype == np.float64
    for rtol in (1e-4, 1e-7):
        assert kept[rtol].memory["nearfield"] * 2 == A.memory["nearfield"]
        assert all(part.narrowed.all() for part in (kept[rtol].nearfield, kept[rtol].couplings))
    assert kept[1e-12].nearfield is A.nearfield and isinstance(kept[1e-12].couplings, BlockSparse)
    assert h2gpu.compress(A, 1e-4, storage="full").nearfield is A.nearfield


def test_float32_matrices_and_the_least_rtol_are_left_alone():
    A = h2gpu.build(points().astype(np.float32), COVARIANCE, leaf_size=30, order=4)
    B = h2gpu.compress(A, 1e-3)
    assert B.nearfield is A.nearfield and B.dtype == np.float32
    A = built()
    assert h2gpu.compress(A, 8 * np.finfo(float).eps).nearfield is A.nearfield


@pytest.mark.parametrize("cols", [pytest.param(None, marks=pytest.mark.slow), 700])
def test_a_matrix_in_two_precisions_does_what_others_do(cols, xp):
    A = h2gpu.compress(built(cols, n=900, xp=xp), 1e-4)
    dense, shape = dense_of(A), A.shape
    assert batched.to_host(A.to_dense()) == pytest.approx(dense, abs=1e-12)
    x = xp.asarray(np.random.default_rng(0).standard_normal(shape[0]))
    assert batched.to_host(A.T @ x) == pytest.approx(dense.T @ batched.to_host(x), abs=1e-11)
    assert A.nbytes == sum(size for part, size in A.memory.items() if part != "total") < 0.6 * built(cols, n=900).nbytes
    if cols is None:
        np.testing.assert_array_equal(batched.to_host(A.diagonal()), np.diag(dense))
    B = h2gpu.compress(A, 1e-2)
    assert A.relative_error(B) <= 1e-2 and B.row_basis.ranks.sum() < A.row_basis.ranks.sum()
    assert A.to_device("cpu").relative_error(A.to_device("cpu")) < 1e-14


def test_solvers_take_it():
    x = points()
    C = h2gpu.covariance_matrix(x, COVARIANCE, 1e-7)
    assert isinstance(C.nearfield, MixedBlocks)
    b = np.sin(9 * x[:, 0])
    solution = h2gpu.solvers.conjugate_gradients(C, b, h2gpu.solvers.vecchia(x, COVARIANCE)).checked()
    assert np.linalg.norm(C @ solution - b) <= 1e-6 * np.linalg.norm(b)


# Sums of squares


@pytest.mark.parametrize("symmetric", [True, False])
def test_sums_of_squares_are_those_of_the_whole_matrix(symmetric, xp, monkeypatch):
    """Each block as often as it occurs; a GPU is read once, other numbers come with them; single blocks sum to it."""
    D, n = blocks(symmetric)
    dense = D.multiply(np.eye(n), n)
    reads = []

    def read(array):
        reads.extend([] if isinstance(array, np.ndarray) else [array])
        return batched.to_host(array)

    monkeypatch.setattr("h2gpu.h2matrix.compression.squares.to_host", read)
    asked = {"once": (D.to(xp), MEASURES), "thrice": (D.to(xp), MEASURES[:1])}
    found, others = squares_of(asked, {"thrice": 3.0}, [xp.asarray(7.0)])
    assert others == [7.0] and len(reads) == (xp is not np)
    (norms, errors), (thrice,) = found["once"], found["thrice"]
    rounded = dense - dense.astype(np.float32)
    for measured, square in ((norms, dense**2), (errors, rounded**2)):
        assert measured.total == pytest.approx(square.sum(), rel=1e-12)
        assert measured.each.sum() == pytest.approx(measured.total, rel=1e-12)
    some = np.arange(len(D)) % 3 == 0
    assert norms.of(some) + norms.of(~some) == pytest.approx(norms.of(some | True), rel=1e-12)
    assert thrice.total == pytest.approx(3 * norms.total, rel=1e-12)
    np.testing.assert_allclose(thrice.each, 3 * norms.each)


@pytest.mark.parametrize("first", [0, 3])
def test_a_counterpart_lies_as_its_batch(first, xp):
    """Wherever the first matrix begins; a device that knows the one's numbers knows the other's."""
    A = MatrixBatch.empty(np.arange(1, 9), 5, np.float64, xp)
    (A,) = MatrixBatch.place(A)
    B = A[first:].counterpart(np.float32)
    begins = A.offsets[first:] - A.offsets[first]
    np.testing.assert_array_equal(B.offsets, begins)
    assert B.buffer.size == A[first:].sizes.sum() and B.is_packed and B.dtype == np.float32
    np.testing.assert_array_equal(batched.to_host(B.number(0)), begins)


@pytest.mark.gpu
@pytest.mark.parametrize("rtol, early", [(1e-6, 2), (1e-9, 0)])
def test_room_in_float32_is_made_before_a_gpu_is_waited_for(rtol, early, monkeypatch):
    """Where all blocks are expected to be rounded; the copies lie in it, and are those made without."""
    cupy = pytest.importorskip("cupy")
    B, accuracy = h2gpu.compress(built(xp=cupy), rtol, storage="full"), Accuracy.of(rtol, np.float64)
    done, counterpart = [], MatrixBatch.counterpart

    def noted(what, result):
        done.append(what)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(MatrixBatch, "counterpart", lambda A, dtype: noted(dtype, counterpart(A, dtype)))
        patch.setattr("h2gpu.h2matrix.compression.squares.to_host", lambda a: noted("read", batched.to_host(a)))
        C = precision.rounded(B, accuracy)
    assert done[: early + 1] == early * [np.float32] + ["read"]
    monkeypatch.setattr(precision, "_room_early", lambda *_: {})
    D = precision.rounded(B, accuracy)
    for found, right in ((C.nearfield, D.nearfield), (C.couplings, D.couplings)):
        assert type(found) is type(right)
        if early:
            assert not len(found.wide) and found.narrow.dtype == np.float32
            np.testing.assert_array_equal(found.narrow.blocks.buffer.get(), right.narrow.blocks.buffer.get())


# Computed nearfields


def test_nobody_waits_for_the_square_of_an_evaluated_nearfield(xp, monkeypatch):
    """Nothing comes to the host before its measures are asked for; they are taken once."""

    def here(array):
        assert isinstance(array, np.ndarray)
        return array

    sites = Sites.of(xp.asarray(points_of("clustered", 600, 2)), COVARIANCE)
    D = deferred(sites, leaf_size=30, order=3, split="mean", nearfield="computed").nearfield
    with monkeypatch.context() as patch:
        for room in ("norms", "nearfield"):
            patch.setattr(f"h2gpu.h2matrix.{room}.to_host", here)
        square = nearfield_square(D)
    assert isinstance(square, xp.ndarray if xp is not np else np.floating)
    monkeypatch.setattr(EvaluatedNearfield, "into", None)
    assert float(square) == pytest.approx(squares_of({"near": (D, MEASURES[:1])})[0]["near"][0].total, rel=1e-12)


@pytest.mark.parametrize("cols", [None, 700])
def test_an_evaluated_nearfield_is_measured_selected_and_rounded_as_a_stored_one(cols, xp, monkeypatch):
    """Piece by piece, wherever sizes are; leaves differ in size, some are of no points."""
    monkeypatch.setattr("h2gpu.h2matrix.norms.piece_entries", lambda xp, on_host: 5000)
    monkeypatch.setattr("h2gpu.blocksparse.mixed.piece_entries", lambda xp, on_host: 5000)
    sites = Sites.of(xp.asarray(points_of("clustered", 600, 2)), COVARIANCE, cols and xp.asarray(points(cols, 1)))
    D = deferred(sites, leaf_size=30, order=3, split="mean", nearfield="computed").nearfield
    stored = D.stored()
    for measure, both in zip(MEASURES, block_measures(stored, *MEASURES), strict=True):
        both, found, again = map(batched.to_host, (both, *block_measures(D, measure), *block_measures(stored, measure)))
        np.testing.assert_allclose(found, both, rtol=1e-12)
        np.testing.assert_array_equal(again, both)
    assert float(nearfield_square(replace(D))) == pytest.approx(float(nearfield_square(stored)), rel=1e-12)
    some = np.flatnonzero(np.arange(len(D)) % 3 == 0)
    for index in (slice(2, 20), some, xp.asarray(some)):
        found, right = (
            D.select(index).on_host(),
            stored.blocks[index if isinstance(index, slice) else batched.to_host(index)],
        )
        for A, B in zip(found.matrices(), right.matrices(), strict=True):
            np.testing.assert_array_equal(batched.to_host(A), batched.to_host(B))
    for chosen in (np.arange(len(D)) % 3 > 0, np.ones(len(D), bool)):
        M, N = (MixedBlocks.of(A, chosen) for A in (D, stored))
        for part in ("wide", "narrow"):
            A, B = getattr(M, part).blocks, getattr(N, part).blocks
            np.testing.assert_array_equal(batched.to_host(A.buffer), batched.to_host(B.buffer))
            np.testing.assert_array_equal(A.offsets, B.offsets)


@pytest.mark.parametrize("cov", [COVARIANCE, from_function(lambda x, y: 1 / (1 + ((x - y) ** 2).sum(-1)))])
@pytest.mark.parametrize("cols", [None, 700])
def test_a_computed_nearfield_multiplies_as_a_stored_one(cols, cov, xp, monkeypatch):
    monkeypatch.setattr("h2gpu.h2matrix.nearfield.piece_entries", lambda xp, on_host: 5000)
    A, B = (built(cols, kind, n=600, xp=xp, cov=cov, order=3) for kind in ("stored", "computed"))
    assert isinstance(B.nearfield, EvaluatedNearfield) and len(B.nearfield._pieces()) > 5
    rng = np.random.default_rng(3)
    for M, N in ((A, B), (A.T, B.T)):
        for sides in (1, 3):
            x = xp.asarray(rng.standard_normal((N.shape[1], sides)))
            y = N @ x
            assert batched.to_host(y) == pytest.approx(batched.to_host(M @ x), abs=1e-11)
            assert batched.to_host(N @ x).tobytes() == batched.to_host(y).tobytes()
    assert A.relative_error(B) < 1e-14
    assert B.memory["nearfield"] == 16 * (600 + (cols or 0)) and A.memory["nearfield"] > 10 * B.memory["nearfield"]
    if cols is None:
        assert (A.diagonal() == B.diagonal()).all()


@pytest.mark.parametrize("cols", [None, 700])
@pytest.mark.parametrize("storage", ["auto", "full"])
def test_compression_keeps_or_stores_a_computed_nearfield(storage, cols, xp):
    stored, A = built(cols, n=900, xp=xp), built(cols, "computed", n=900, xp=xp)
    for nearfield, kinds in ((None, EvaluatedNearfield), ("stored", (BlockSparse, MixedBlocks))):
        B = h2gpu.compress(A, 1e-6, storage=storage, nearfield=nearfield)
        assert isinstance(B.nearfield, kinds) and stored.relative_error(B) <= 1e-6 and A.relative_error(B) <= 1e-6
    assert h2gpu.compress(A, 1e-6, nearfield="stored").nbytes == h2gpu.compress(stored, 1e-6).nbytes


@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 5e-8, 1e-9])
@pytest.mark.parametrize("cols", [None, 700])
def test_a_nearfield_to_be_rounded_is_evaluated_once_and_is_what_rounding_makes_of_it(cols, rtol, monkeypatch):
    stored, A, met, select = built(cols), built(cols, "computed"), [], EvaluatedNearfield.select
    monkeypatch.setattr(EvaluatedNearfield, "select", lambda D, index: met.append(index) or select(D, index))
    B, C = (h2gpu.compress(M, rtol, nearfield="stored").nearfield for M in (A, stored))
    if rtol == 1e-9:
        assert isinstance(B, BlockSparse) and B.blocks.buffer.tobytes() == C.blocks.buffer.tobytes()
        return
    wide = np.flatnonzero(~B.narrowed)
    found = np.bincount(np.concatenate(met), minlength=len(B))
    assert (B.narrowed == C.narrowed).all() and (found == np.where(B.narrowed, 1, 2)).all()
    assert len(wide) < len(B) and (len(wide) > 0) == (rtol == 5e-8)
    for part in ("wide", "narrow"):
        one, other = (getattr(M, part).blocks.buffer for M in (B, C))
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()


def test_covariance_matrix_passes_both_on():
    x = points()
    kept = {(s, k): h2gpu.covariance_matrix(x, COVARIANCE, 1e-5, storage=s, nearfield=k) for s, k in
            (("auto", "stored"), ("full", "stored"), ("auto", "computed"))}  # fmt: skip
    assert isinstance(kept["auto", "stored"].nearfield, MixedBlocks)
    assert isinstance(kept["full", "stored"].nearfield, BlockSparse)
    assert isinstance(kept["auto", "computed"].nearfield, EvaluatedNearfield)
    for B in kept.values():
        assert h2gpu.sampled_error(B, x, COVARIANCE) <= 1e-5


def test_a_computed_nearfield_is_not_saved(tmp_path):
    B = h2gpu.compress(built(nearfield="computed"), 1e-5)
    with pytest.raises(ValueError, match="save: expected a stored nearfield"):
        h2gpu.save(B, tmp_path / "matrix.h5")
    h2gpu.save(B.replace(nearfield=B.nearfield.stored()), tmp_path / "matrix.h5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"storage": "half"}, 'storage: expected "auto" or "full"'),
        ({"nearfield": "none"}, 'nearfield: expected "stored" or "computed"'),
        ({"nearfield": "computed"}, "nearfield: that of A is stored"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        h2gpu.compress(built(n=60), 1e-3, **arguments)
    if arguments != {"nearfield": "computed"}:
        with pytest.raises(ValueError, match=message):
            h2gpu.covariance_matrix(points(60), COVARIANCE, 1e-3, **arguments)
