"""Run by test_emulated.py with RACES set: what the emulator tells of threads that do not wait for each other."""

import pytest
from own_kernels import run_block

RACES = """
__global__ void racing(double* out, int which) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* const shared = reinterpret_cast<double*>(memory);
    const int i = threadIdx.x, lane = i % WARP;
    const auto meet = [](int threads) { asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); };
    if (which == 10 || which == 0) copy_leading<8>(shared + i, out + i, 8), copies_issued(), copies_arrived<0>();
    else shared[i] = i;
    if (which == 0 || which == 5) __syncthreads();
    if (which == 1 || which == 11) __syncwarp();
    if (which == 2 && i < 64) meet(64);
    if (which == 12 && i < 64) meet(64);
    if (which == 3 && i < 64) meet(64);
    if (which == 3) __syncthreads();
    if (which == 13) out[i] = __shfl_sync(~0u, shared[i], 0);
    if (which == 2 && i >= 64) return;
    out[i] = shared[which == 1 || which == 13 ? i ^ 1 : which == 2 ? i ^ 32 : which == 4 ? i : i ^ 64];
    if (which == 5) shared[lane] = 1;
}
"""
THREADS = 128

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("which", [0, 1, 2, 3, 4], ids=["block", "warp", "some", "some-then-block", "own"])
def test_what_waits_is_no_race(which):
    run_block("racing", RACES, THREADS, which)


@pytest.mark.parametrize("which", [5, 10, 11, 12, 13], ids=["write-behind-read", "copy", "warp", "some", "shuffle"])
def test_what_does_not_is_told_in_any_order(which):
    with pytest.raises(
        RuntimeError, match=r"a race: byte \d+ of shared memory is (read|written) at 0x\w+ beside thread \d+"
    ):
        run_block("racing", RACES, THREADS, which)
