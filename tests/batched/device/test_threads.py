"""Threads over the matrices of a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from h2gpu.batched.device.threads import one_blas_thread, parallel, pieces


@given(st.lists(st.integers(0, 50)), st.integers(0, 100))
def test_pieces_are_consecutive_and_no_heavier_than_one_item_beyond_the_target(weights, target):
    slices = pieces(weights, target)
    assert [i for piece in slices for i in range(piece.start, piece.stop)] == list(range(len(weights)))
    for piece in slices:
        own = weights[piece]
        assert own and (len(own) == 1 or sum(own[:-1]) < target)


def test_parallel_keeps_the_order_and_raises_the_first_error():
    assert parallel(lambda i: i * i, range(100)) == [i * i for i in range(100)]
    assert parallel(abs, []) == []

    def fail(i):
        if i % 10 == 7:
            raise KeyError(i)

    with pytest.raises(KeyError, match="7"):
        parallel(fail, range(50))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_runs_on_one_thread_inside_and_as_before_outside():
    before = blas_threads()
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
