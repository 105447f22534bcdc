// Sums over a warp of Count numbers at once: halving exchanges what each half of the lanes goes on with,
//
//     lane l ends with   total of values[l · Count / 32]
//
// Count − 1 + log2(32 / Count) exchanges instead of 5 · Count: 5 instead of 20 for four sums.
// Called by all 32 lanes together; lane l holds the total number l · Count / 32.
#pragma once

#include "warp/reduce.cuh"

template <int Count, typename Real>
__device__ Real sum_each(Real (&values)[Count]) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int half = Count / 2, distance = WARP / 2; half > 0; half /= 2, distance /= 2) {
        bool upper = lane & distance;
#pragma unroll
        for (int i = 0; i < half; i++) {
            Real given = upper ? values[i] : values[i + half];
            Real kept = upper ? values[i + half] : values[i];
            values[i] = kept + __shfl_xor_sync(EVERY_LANE, given, distance);
        }
    }
    Real total = values[0];
#pragma unroll
    for (int distance = WARP / Count / 2; distance > 0; distance /= 2) total += __shfl_xor_sync(EVERY_LANE, total, distance);
    return total;
}
