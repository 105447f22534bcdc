// common/warp/part_sums.cuh — sums over lanes that lie From, 2 From, … apart, up to a distance of To, real and complex; in each of them.
// Called by all lanes of a warp together.
#pragma once
#include "common/thread/field.cuh"

namespace common {

template <typename Real>
__device__ Real of_lane_across(Real x, int distance) { return __shfl_xor_sync(EVERY_LANE, x, distance); }
template <typename Real>
__device__ Complex<Real> of_lane_across(Complex<Real> x, int distance) {
    return {of_lane_across(x.re, distance), of_lane_across(x.im, distance)};
}

template <int From, int To, typename Scalar>
__device__ Scalar part_sum(Scalar x) {
#pragma unroll
    for (int distance = From; distance < To; distance *= 2) x = plus(x, of_lane_across(x, distance));
    return x;
}

}  // namespace common
