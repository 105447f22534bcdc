// Sums of Count numbers over lanes at once, all of them in every lane: halves of the lanes exchange what each half adds up, and
// give each other the totals on the way back.
//
//     2 (Count − 1) exchanges for Count = 2 Distance, in place of Count log2(2 Distance)
//
// Distance: half of the lanes that share a sum, those which differ in the bits below 2 · Distance of their number.
// Called by all 32 lanes together; every lane holds the results. One number of each lane alone: common/warp/reduce_many.cuh.
#pragma once
#include "common/warp/reduce.cuh"

namespace bidiagonal {
using namespace common;

template <int Distance, int Count, typename Real>
__device__ __forceinline__ void sum_all(Real (&values)[Count]) {
    if constexpr (Distance > 0 && Count == 1) {
#pragma unroll
        for (int distance = Distance; distance > 0; distance /= 2)
            values[0] += __shfl_xor_sync(EVERY_LANE, values[0], distance);
    } else if constexpr (Distance > 0) {
        constexpr int HALF = (Count + 1) / 2;
        const bool upper = threadIdx.x & Distance;
        Real part[HALF];
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const Real other = i + HALF < Count ? values[i + HALF < Count ? i + HALF : 0] : Real(0);
            const Real given = upper ? values[i] : other;
            part[i] = (upper ? other : values[i]) + __shfl_xor_sync(EVERY_LANE, given, Distance);
        }
        sum_all<Distance / 2>(part);
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const Real given = __shfl_xor_sync(EVERY_LANE, part[i], Distance);
            values[i] = upper ? given : part[i];
            if (i + HALF < Count) values[i + HALF < Count ? i + HALF : 0] = upper ? part[i] : given;
        }
    }
}

}  // namespace bidiagonal
