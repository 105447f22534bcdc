// copies/all_finite.cuh — found[0] = 1 where an entry is NaN or infinite; else it stays as it is.
#pragma once
#include "common/thread/constants.cuh"

namespace copies {
using namespace common;

// A: size   The grid may have any number of blocks.
template <typename Real>
__global__ void find_not_finite(const Real* A, long long size, int* found) {
    bool bad = false;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 4  // loads under way
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) bad |= !(A[i] - A[i] == 0);
    if (__syncthreads_or(bad) && threadIdx.x == 0) *found = 1;
}

}  // namespace copies
