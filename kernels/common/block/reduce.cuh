// common/block/reduce.cuh — sums over the threads of a block.
// Called by all threads of a block of Warps warps; every thread holds the result.   scratch: Warps, shared
#pragma once
#include "common/warp/reduce.cuh"

namespace common {

template <int Warps, typename Real>
__device__ Real block_sum(Real x, Real* scratch) {
    x = warp_sum(x);
    if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = x;
    __syncthreads();
    Real sum = 0;
    for (int w = 0; w < Warps; w++) sum += scratch[w];
    return sum;
}

}  // namespace common
