// common/warp/reduce.cuh — sums over the lanes of a warp by shuffles.
// Called by a whole warp; every lane holds the result.
#pragma once
#include "common/thread/constants.cuh"

namespace common {

template <typename Real>
__device__ Real warp_sum(Real x) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(EVERY_LANE, x, distance);
    return x;
}

}  // namespace common
