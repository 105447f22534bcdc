"""What all doors of h2gpu.batched do alike: leading dimensions, other types, bad arguments."""

import numpy as np
import pytest
from batches import assert_svd, close, ragged, stack

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch


def test_leading_dimensions_are_numpys():
    A, B = stack((2, 3, 5, 4)), stack((4, 6))
    close(batched.gemm(A, B), A @ B, 4)
    assert batched.gemm(A[0, 0], B).shape == (5, 6)
    Q, R = batched.qr(A)
    close(Q @ R, A, 5)
    U, s, Vt = batched.svd(A[0, 0])
    assert_svd(A[0, 0], U, s, Vt)
    assert batched.svd(A, vectors="none").shape == (2, 3, 4)


def test_integers_are_converted():
    A = np.arange(12).reshape(2, 3, 2)
    assert batched.qr(A)[0].dtype == np.float64
    close(batched.gemm(A, A, transa=True), (A.swapaxes(1, 2) @ A).astype(float), 3)


def test_the_order_of_bytes_does_not_matter():
    A = stack((2, 5, 3))
    np.testing.assert_array_equal(batched.qr(A.astype(">f8"))[1], batched.qr(A)[1])
    np.testing.assert_array_equal(
        batched.solve(A[:, :3].astype(">f8"), A[:, 4].astype(">f8")), batched.solve(A[:, :3], A[:, 4])
    )


def test_ragged_integers_are_converted_and_other_kinds_refused():
    A = np.array([[4, 2], [3, 5]])
    whole = MatrixBatch.from_matrices([A])
    for function in (batched.inv, batched.cholesky, lambda B: batched.qr(B)[1], lambda B: batched.svd(B)[1]):
        np.testing.assert_array_equal(function(whole)[0], function(whole.astype(np.float64))[0])
    assert abs(batched.det(whole)[0] - 14) < 1e-13
    half, imaginary = whole.astype(np.float16), whole.astype(complex)
    functions = batched.cholesky, batched.pivoted_qr, batched.frobenius_norms, batched.bidiagonalize
    for function in (*functions, lambda B: batched.rsvd(B, 1), lambda B: batched.truncated_svd(B, 0.1)):
        for other in (half, imaginary):
            with pytest.raises(ValueError, match=f"expected float32 or float64 matrices.*{other.dtype}"):
                function(other)
    for function in (batched.lu_factor, batched.qr, batched.svd):
        with pytest.raises(ValueError, match="expected float32 or float64 or complex64 or complex128"):
            function(half)
    for function in (batched.cholesky_qr, batched.svd_of_transposed):
        with pytest.raises(ValueError, match="expected real matrices"):
            function(np.ones((2, 3, 3), complex))
    with pytest.raises(ValueError, match='expected method "auto" for complex matrices'):
        batched.svd(np.ones((2, 3, 3), complex), "left", "shared")
    with pytest.raises(ValueError, match="gemm: expected A a MatrixBatch of floating-point numbers"):
        batched.gemm(whole, whole)


def test_numbers_that_a_product_cannot_hold(xp):
    A = xp.ones((2, 3, 3))
    single, vector = A.astype(np.float32), xp.ones((2, 3))
    for call, words in (
        (lambda: batched.gemm(A, A, A * 1j, beta=1), "gemm: expected C of the precision of A, float64, got complex128"),
        (lambda: batched.gemm(single, single, A, beta=1), "gemm: expected C of the precision of A, float32"),
        (lambda: batched.gemm(A, A, alpha=1 + 2j), "gemm: alpha: expected a number for matrices of float64"),
        (lambda: batched.gemm(A, A, alpha=[1, 2]), "gemm: alpha: expected a number"),
        (lambda: batched.gemv(A, vector, beta="2"), "gemv: beta: expected a number"),
        (lambda: batched.syrk(A, alpha=1j), "syrk: alpha: expected a number"),
        (lambda: batched.trsm(A, A, alpha=None), "trsm: alpha: expected a number"),
        (lambda: batched.axpy(A, A, [1j, 2]), "axpy: expected alpha real numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    np.testing.assert_array_equal(to_host(batched.axpy(A, A, [1.0, 3.0]))[:, 0, 0], [2, 4])
    C = xp.ones((3, 3), int)
    assert (to_host(batched.gemm(A, A, C, beta=1)) == 4).all()


A34, A43, A32_SINGLE = np.zeros((2, 3, 4)), np.zeros((2, 4, 3)), np.zeros((2, 4, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batched.qr(np.zeros(3)), r"A: expected float32 or float64 .* got shape \(3,\)"),
        (lambda: batched.pivoted_qr(A34.astype(complex)), "complex128"),
        (lambda: batched.qr(A34.astype(object)), "object"),
        (lambda: batched.qr(A34.astype(np.float16)), "float16"),
        (lambda: batched.qr(A34, mode="full"), 'qr: expected mode "reduced" or "r", got \'full\''),
        (lambda: batched.svd(A34, vectors="right"), "svd: expected vectors"),
        (lambda: batched.svd(A34, method="jacobi"), "svd: expected method one of auto, register"),
        (lambda: batched.svd(np.zeros(3)), "A: expected float32 or float64"),
        (lambda: batched.rsvd(A34, 0), "rsvd: expected an integer rank ≥ 1, got 0"),
        (lambda: batched.rsvd(A34, 2.0), "integer rank"),
        (lambda: batched.rsvd(A34, 2, oversample=-1), "integer oversample ≥ 0"),
        (lambda: batched.rsvd(A34, 2, power=-1), "integer power ≥ 0"),
        (lambda: batched.rsvd(np.zeros(3), 2), "A: expected float32 or float64"),
        (lambda: batched.gemm(A34, A34), "gemm: expected matching inner dimensions"),
        (lambda: batched.gemm(A34, A43, transa=True), "check transa and transb"),
        (lambda: batched.gemm(A34, A43, out=np.empty((3, 3, 4))), "gemm: expected out contiguous"),
        (lambda: batched.gemm(A34, A32_SINGLE), "precisions, got .* float64 and .* float32"),
        (lambda: batched.gemm(A34, np.zeros(4)), "B: expected float32 or float64"),
        (lambda: batched.gemm(A34, np.zeros((3, 4, 3))), "shape"),
        (lambda: batched.gemm(ragged([2], [3]), ragged([2], [3])), "gemm: matrices 0 do not match: .* 3 and 2"),
        (lambda: batched.gemm(ragged([2], [3]), ragged([3, 3], [2, 2])), "gemm: expected B a MatrixBatch of 1"),
        (lambda: batched.gemm(ragged([2], [3]), np.zeros((1, 3, 2))), "gemm: expected B a MatrixBatch"),
        (lambda: batched.gemm(ragged([2], [3]), ragged([3], [2], np.float32)), "of float64"),
        (
            lambda: batched.gemm(ragged([2], [3]), ragged([3], [2]), ragged([1], [2]), beta=1),
            "rows of C 1 and 2",
        ),
        (
            lambda: batched.gemm(ragged([2], [3]), ragged([3], [2]), out=ragged([2], [1])),
            "columns of out 1 and 2",
        ),
        (lambda: batched.gather(ragged([2], [3]), [1]), "gather: expected indices of 1 matrices, got 1"),
        (lambda: batched.leading(ragged([2], [3]), [3], [3]), "gather: expected out of 1 matrices no larger"),
        (lambda: batched.join([ragged([2], [3])], ragged([2, 2], [3, 3])), "join: expected out of 1 matrices"),
        (lambda: batched.join([ragged([2], [3]), ragged([2], [3], np.float32)]), "join: expected batches of float64"),
    ],
)
def test_bad_arguments_give_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
