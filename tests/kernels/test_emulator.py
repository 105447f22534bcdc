"""Run by test_emulated.py, on the stand-in for CuPy: what the emulator tells of kernels with and without mistakes."""

import numpy as np
import pytest
from own_kernels import run_block

MISTAKES = """
__global__ void mistaken(double* out, int which) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* const shared = reinterpret_cast<double*>(memory);
    const int i = threadIdx.x;
    if (which == 1 && i < 16) __syncthreads();
    if (which == 1) __syncwarp();
    if (which == 2) shared[i + 1] = i;
    if (which == 3) copy_leading<16>(shared + 1, out, 16);
    if (which == 4) copy_leading<8>(shared + i, out + i, 8);
    if (which == 5) copy_leading<8>(shared + i, out + i, 8), copies_issued(), copies_arrived<0>();
    if (which == 6) shared[i] = i, out[i] = shared[i ^ 32];
    if (which == 7) shared[i] = i, __syncthreads(), out[i] = shared[i ^ 32];
    if (which == 8) out[i] = __shfl_sync(0xffff, double(i), 3);
    if (which == 9 && i < 16) out[i] = __reduce_max_sync(0xffff, i);
    if (which == 4 || which == 5) out[i] = shared[i] + 1;
}
"""
THREADS = 64

pytestmark = pytest.mark.gpu


def ran(which):
    return run_block("mistaken", MISTAKES, THREADS, which)


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (1, "threads wait for each other forever"),
        (2, "written behind 512 bytes of shared memory"),
        (3, "a copy is misaligned"),
        (8, "a lane waits for others that do not wait for it"),
    ],
)
def test_mistakes_are_told(which, words):
    with pytest.raises(RuntimeError, match=words):
        ran(which)


def test_numbers_come_no_earlier_than_waited_for():
    assert np.isnan(ran(4)).all() and (ran(5) == 1).all()
    assert np.isnan(ran(6)).any() and (ran(7) == np.arange(THREADS) ^ 32).all()


def test_lanes_that_are_named_exchange_by_themselves():
    assert (ran(9)[:16] == 15).all() and not ran(9)[16:].any()
