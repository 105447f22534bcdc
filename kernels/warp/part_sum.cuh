// warp/part_sum.cuh — sums over parts of Lanes neighbouring lanes of a warp, real or complex.
// Called by whole warps; every lane holds the sum of its part.
#pragma once
#include "thread/field.cuh"

template <int Lanes, typename Real>
__device__ Real part_sum(Real x) {
#pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(EVERY_LANE, x, distance);
    return x;
}
template <int Lanes, typename Real>
__device__ Complex<Real> part_sum(Complex<Real> x) { return {part_sum<Lanes>(x.re), part_sum<Lanes>(x.im)}; }
