// warp/pivot.cuh — the search for a pivot among the lanes of a warp, or of a part of it.
//
// The largest magnitude wins, among equals the least position, as in LAPACK.
// Called by whole warps; every lane of a part holds the result.
#pragma once
#include "thread/constants.cuh"

constexpr int NOWHERE = 0x7fffffff;  // position of a lane that has no candidate

__device__ inline bool of_largest(float x) {
    const unsigned bits = __float_as_uint(x);
    return bits == __reduce_max_sync(EVERY_LANE, bits);
}

__device__ inline bool of_largest(double x) {
    const unsigned high = __double2hiint(x);
    const bool among = high == __reduce_max_sync(EVERY_LANE, high);
    const unsigned low = among ? __double2loint(x) : 0u;
    return low == __reduce_max_sync(EVERY_LANE, low) && among;
}

// magnitude ≥ 0, zero where position is NOWHERE
template <int Lanes, typename Real>
__device__ int pivot_position(Real magnitude, int position) {
    if constexpr (Lanes == WARP) {
        return __reduce_min_sync(EVERY_LANE, of_largest(magnitude) ? position : NOWHERE);
    } else {
#pragma unroll
        for (int distance = Lanes / 2; distance > 0; distance /= 2) {
            const Real other = __shfl_xor_sync(EVERY_LANE, magnitude, distance);
            const int there = __shfl_xor_sync(EVERY_LANE, position, distance);
            if (other > magnitude || (other == magnitude && there < position)) magnitude = other, position = there;
        }
        return position;
    }
}
