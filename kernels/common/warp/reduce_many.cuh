// Sums over a warp of Count numbers at once: halving exchanges what each half of the lanes goes on with,
//
//     lane l ends with   total of values[l · Count / 32]
//
// Count − 1 + log2(32 / Count) exchanges instead of 5 · Count: 5 instead of 20 for four sums.
// Called by all 32 lanes together; lane l holds the total number l · Count / 32.
#pragma once

#include "common/warp/reduce.cuh"

namespace common {

// values[i] of this half of the lanes ← its sum over both halves, for i < Half; then the same within quarters …
template <int Half, int Distance, int Count, typename Real>
__device__ void exchange_halves(Real (&values)[Count]) {
    if constexpr (Half > 0) {
        bool upper = threadIdx.x & Distance;
#pragma unroll
        for (int i = 0; i < Half; i++) {
            Real given = upper ? values[i] : values[i + Half];
            Real kept = upper ? values[i + Half] : values[i];
            values[i] = kept + __shfl_xor_sync(EVERY_LANE, given, Distance);
        }
        exchange_halves<Half / 2, Distance / 2>(values);
    }
}

template <int Count, typename Real>
__device__ Real sum_each(Real (&values)[Count]) {
    exchange_halves<Count / 2, WARP / 2>(values);
    Real total = values[0];
#pragma unroll
    for (int distance = WARP / Count / 2; distance > 0; distance /= 2) total += __shfl_xor_sync(EVERY_LANE, total, distance);
    return total;
}

}  // namespace common
