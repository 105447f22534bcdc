"""Arrays of other libraries at the doors: the numbers of NumPy, the same kind out."""

import array_api_strict
import numpy as np
import pytest

import h2gpu
from h2gpu import batched
from h2gpu.arrays import any_array
from h2gpu.statistics import Kriging, simulate

SITES = np.random.default_rng(5).random((200, 2))
VALUES = np.sin(5 * SITES[:, 0])
COV = h2gpu.covariance.Exponential(length_scale=0.3)
MATRIX = h2gpu.covariance_matrix(SITES, COV, 1e-4)
VECCHIA = h2gpu.solvers.vecchia(SITES, COV)
KRIGING = Kriging(COV, 0.1).fit(SITES, VALUES)
STACK = np.random.default_rng(6).standard_normal((5, 3, 3)) + 4 * np.eye(3)
DOORS = {
    "a covariance": lambda of: COV(of(SITES)),
    "a covariance of two sets": lambda of: COV(of(SITES), Y=of(SITES[:7])),
    "covariance_matrix": lambda of: h2gpu.covariance_matrix(of(SITES), COV, 1e-4).to_dense(),
    "A @ x": lambda of: MATRIX @ of(VALUES),
    "A @ X": lambda of: MATRIX @ of(SITES),
    "matvec": lambda of: MATRIX.matvec(of(VALUES)),
    "rmatvec": lambda of: MATRIX.rmatvec(of(VALUES)),
    "an inverse factor": lambda of: VECCHIA @ of(VALUES),
    "qr": lambda of: batched.qr(of(STACK)),
    "svd": lambda of: batched.svd(of(STACK)),
    "singular values": lambda of: batched.svd(of(STACK), vectors="none"),
    "gemm": lambda of: batched.gemm(of(STACK), of(STACK), transb=True),
    "lu_factor": lambda of: batched.lu_factor(of(STACK)),
    "lu_solve": lambda of: batched.lu_solve(tuple(map(of, batched.lu_factor(STACK))), of(STACK[:, 0])),
    "lstsq": lambda of: batched.lstsq(of(STACK), of(STACK[:, 0])),
    "cholesky": lambda of: batched.registers.cholesky(of(STACK @ STACK.transpose(0, 2, 1))),
    "fit and predict": lambda of: Kriging(COV, 0.1).fit(of(SITES), of(VALUES)).predict(of(SITES[:9])),
    "predict with std": lambda of: KRIGING.predict(X=of(SITES[:9]), return_std=True),
    "sample_y": lambda of: KRIGING.sample_y(of(SITES[:9]), 2),
    "simulate": lambda of: simulate(COV, of(SITES), random_state=0),
}


def libraries():
    """(name, function from NumPy's arrays, type): the strict one of the standard, and whatever else is installed."""
    yield "array_api_strict", array_api_strict.asarray, array_api_strict.asarray(0.0).__class__
    try:
        import torch
    except ImportError:
        yield pytest.param("torch", None, None, marks=pytest.mark.skip(reason="PyTorch is not installed"))
    else:
        yield "torch", torch.from_numpy, torch.Tensor
    try:
        import jax
    except ImportError:
        yield pytest.param("jax", None, None, marks=pytest.mark.skip(reason="JAX is not installed"))
    else:
        jax.config.update("jax_enable_x64", True)
        yield "jax", jax.numpy.asarray, jax.Array


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize(("library", "convert", "kind"), list(libraries()))
@pytest.mark.parametrize("door", DOORS)
def test_the_same_numbers_and_the_same_kind(door, library, convert, kind):
    expected, found = (parts(DOORS[door](of)) for of in (np.asarray, lambda a: convert(np.array(a))))
    assert len(found) == len(expected)
    for mine, theirs in zip(expected, found):
        assert door == "covariance_matrix" or isinstance(theirs, kind)  # the matrix is ours
        assert mine.dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(np.asarray(theirs), mine)


def test_numpy_arrays_lists_and_matrix_batches_pass_as_they_are():
    seen = any_array(lambda *args, **named: (args, named))
    batch = batched.MatrixBatch.from_stack(STACK)
    (a, b, c), named = seen(SITES, batch, [1.0, 2.0], x=VALUES)
    assert a is SITES and b is batch and c == [1.0, 2.0] and named["x"] is VALUES


def test_numbers_are_seen_where_they_lie():
    """No copy on the way in: the array that the function gets shares memory with the tensor."""
    tensor, got = array_api_strict.asarray(np.zeros(3)), []
    any_array(lambda x: got.append(x))(tensor)
    assert np.shares_memory(got[0], np.asarray(tensor))


def test_results_that_may_not_be_written_or_lie_apart_are_copied():
    transposed = any_array(lambda x: x.T)(array_api_strict.asarray(np.arange(6.0).reshape(2, 3)))
    np.testing.assert_array_equal(np.asarray(transposed), np.arange(6.0).reshape(2, 3).T)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert any_array(lambda x: frozen)(array_api_strict.asarray(VALUES)).shape == (3,)


class Tensor:
    """What has DLPack's methods and nothing behind them."""

    requires_grad = False

    def __init__(self, device):
        self.device = device

    def __dlpack__(self):
        raise AssertionError("nothing is to be taken")

    def __dlpack_device__(self):
        return self.device, 0


def test_a_device_that_is_no_cpu_and_no_cuda_is_refused():
    with pytest.raises(ValueError, match="CPU or a CUDA device, got DLPack's kind 10; move them"):
        MATRIX @ Tensor(10)


def test_a_tensor_with_gradients_is_refused():
    tensor = Tensor(1)
    tensor.requires_grad = True
    with pytest.raises(ValueError, match=r"requires them; pass tensor.detach\(\)"):
        batched.qr(tensor)
