"""The doors that all arrays pass: what is masked is refused everywhere, and the GPU after a fork."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

import h2gpu
from h2gpu import arrays, batched
from h2gpu.statistics import Kriging, log_likelihood

POINTS = np.random.default_rng(3).random((80, 2))
VALUES = np.sin(5 * POINTS[:, 0])
COV = h2gpu.covariance.Exponential(length_scale=0.3)
MATRIX = h2gpu.build(POINTS, COV, order=4)
SQUARE = np.eye(3) + np.ones((4, 3, 3))


def masked(array):
    """The array with its first entry masked; the number under the mask is absurd."""
    found = np.ma.array(array, mask=np.zeros(array.shape, bool))
    found[(0,) * array.ndim] = 1e6
    found[(0,) * array.ndim] = np.ma.masked
    return found


DOORS = {
    "covariance": lambda array: COV(array(POINTS)),
    "second points of a covariance": lambda array: COV(POINTS, array(POINTS)),
    "at_distance": lambda array: COV.at_distance(array(VALUES**2)),
    "build": lambda array: h2gpu.build(array(POINTS), COV, order=4),
    "covariance_matrix": lambda array: h2gpu.covariance_matrix(array(POINTS), COV, 1e-3),
    "col_points": lambda array: h2gpu.build(POINTS, COV, col_points=array(POINTS), order=4),
    "sampled_error": lambda array: h2gpu.sampled_error(MATRIX, array(POINTS), COV),
    "A @ x": lambda array: MATRIX @ array(VALUES),
    "x @ A": lambda array: MATRIX.rmatvec(array(VALUES)),
    "sites of Kriging": lambda array: Kriging(COV, 0.1).fit(array(POINTS), VALUES),
    "values of Kriging": lambda array: Kriging(COV, 0.1).fit(POINTS, array(VALUES)),
    "weights of Kriging": lambda array: Kriging(COV, 0.1).fit(POINTS, VALUES, sample_weight=array(1 + VALUES**2)),
    "targets of Kriging": lambda array: Kriging(COV, 0.1).fit(POINTS, VALUES).predict(array(POINTS)),
    "likelihood": lambda array: log_likelihood(COV, POINTS, array(VALUES), nugget=0.1),
    "vecchia": lambda array: h2gpu.solvers.vecchia(array(POINTS), COV),
    "conjugate gradients": lambda array: h2gpu.solvers.conjugate_gradients(MATRIX, array(VALUES)),
    "qr": lambda array: batched.qr(array(SQUARE)),
    "svd": lambda array: batched.svd(array(SQUARE)),
    "lu_factor": lambda array: batched.lu_factor(array(SQUARE)),
    "solve": lambda array: batched.solve(SQUARE, array(SQUARE)),
    "gemm": lambda array: batched.gemm(SQUARE, array(SQUARE)),
    "gemv": lambda array: batched.gemv(SQUARE, array(SQUARE[..., 0])),
    "registers": lambda array: batched.registers.cholesky(array(SQUARE)),
    "lstsq": lambda array: batched.lstsq(array(SQUARE), SQUARE[..., 0]),
}


@pytest.mark.parametrize("door", DOORS)
def test_masked_entries_are_refused(door):
    with pytest.raises(ValueError, match="expected arrays without masked entries, got 1 masked of"):
        DOORS[door](masked)


@pytest.mark.parametrize("door", DOORS)
def test_masked_arrays_without_masked_entries_are_arrays(door):
    """Readers of netCDF files return such arrays."""
    DOORS[door](np.ma.array)


@pytest.mark.parametrize(("said", "found"), [(None, True), ("0", False)])
def test_headers_are_read_once_unless_the_user_says_otherwise(said, found, monkeypatch):
    monkeypatch.delenv("CUPY_NVRTC_USE_PCH", raising=False)
    if said is not None:
        monkeypatch.setenv("CUPY_NVRTC_USE_PCH", said)
    compiler = SimpleNamespace(_use_pch=False)
    arrays._read_headers_once(SimpleNamespace(cuda=SimpleNamespace(compiler=compiler)))
    arrays._read_headers_once(SimpleNamespace(cuda=SimpleNamespace()))  # of another release
    assert compiler._use_pch == found


def test_arrays_that_are_moved_together_are_what_they_were(xp, monkeypatch):
    record, large = np.zeros(3, [("a", np.int64), ("b", np.int32)]), np.arange(arrays.ALONE // 8 + 1)
    some = [
        np.arange(5, dtype=np.int32),
        np.zeros((0, 2)),
        np.arange(12.0).reshape(3, 4).T,
        large,
        record.view(np.uint8),
    ]
    to_device, copies = arrays.to_device, []
    monkeypatch.setattr(arrays, "to_device", lambda array, xp: copies.append(array.nbytes) or to_device(array, xp))
    found = arrays.moved_together(xp, *some)
    assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in some]
    assert all(np.array_equal(arrays.to_host(a), b) for a, b in zip(found, some))
    if xp is not np:
        small = [a for a in found if 0 < a.nbytes < arrays.ALONE]
        assert sorted(filter(None, copies)) == [len(small) * arrays.APART, large.nbytes]  # small ones by one copy
        assert len({a.data.ptr % arrays.APART for a in small}) == 1


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # threads run: the child takes none of them
def test_a_forked_process_is_told_that_the_gpu_is_its_parents():
    import cupy

    points, stack = cupy.asarray(POINTS), cupy.asarray(SQUARE)  # a view of either in the child would ask CUDA
    before = h2gpu.build(points, COV, order=4) @ points
    child = os.fork()
    if not child:
        told = []
        for door in (lambda: COV(points), lambda: batched.qr(stack), lambda: arrays.module_of_device("cuda")):
            try:
                door()
            except RuntimeError as error:
                told.append(str(error).startswith("the GPU was in use before this process was forked"))
        right = told == [True] * 3 and np.array_equal(MATRIX @ VALUES, MATRIX @ VALUES)
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (h2gpu.build(points, COV, order=4) @ points == before).all()
